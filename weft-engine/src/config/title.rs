//! The process title: text with placeholders, checked when it is set and filled in when it is shown.
//!
//! Pure: knows the placeholders of `proc-title-template` and the settings they stand for, not how a title is shown.

use super::settings::Settings;
use super::table::ParameterId;

/// What a placeholder stands for.
#[derive(Clone, Copy)]
enum Part<'a> {
    Text(&'a [u8]),
    Title,
    ListenAddress,
    ServerMode,
    Port,
    TlsPort,
    UnixSocket,
    ConfigFile,
}

/// Whether this is a template: every brace opens a known placeholder, and something is left even if the title and the mode
/// are empty, as the reference demands.
pub(super) fn is_template(text: &[u8]) -> bool {
    parts(text).is_some_and(|parts| {
        parts.iter().any(|part| match part {
            Part::Text(text) => !text.trim_ascii().is_empty(),
            Part::Title | Part::ServerMode => false,
            _ => true,
        })
    })
}

/// The title that the settings ask for, of a program started under the name `program`; none if they ask for none.
pub fn process_title(
    settings: &Settings,
    program: &[u8],
    config_file: Option<&[u8]>,
) -> Option<Vec<u8>> {
    if !settings.flag(ParameterId::SetProcTitle) {
        return None;
    }
    let mut title = Vec::new();
    for part in parts(settings.text(ParameterId::ProcTitleTemplate))? {
        match part {
            Part::Text(text) => title.extend_from_slice(text),
            Part::Title => title.extend_from_slice(program),
            Part::ListenAddress => title.extend(listen_address(settings)),
            // Neither a cluster node nor a sentinel.
            Part::ServerMode => {}
            Part::Port => title.extend(settings.show(ParameterId::Port)),
            Part::TlsPort => title.extend(settings.show(ParameterId::TlsPort)),
            Part::UnixSocket => title.extend_from_slice(settings.unixsocket().unwrap_or_default()),
            Part::ConfigFile => title.extend_from_slice(config_file.unwrap_or(b"-")),
        }
    }
    Some(title.trim_ascii().to_vec()).filter(|title| !title.is_empty())
}

/// The first address and the port; the Unix socket where there is no port.
fn listen_address(settings: &Settings) -> Vec<u8> {
    if settings.port() == 0
        && let Some(path) = settings.unixsocket()
    {
        return [b"unixsocket:", path].concat();
    }
    let first = settings.bind().first().map_or(&b"*"[..], |first| first);
    [first, b":", &settings.show(ParameterId::Port)].concat()
}

fn parts(template: &[u8]) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.iter().position(|&byte| byte == b'{') {
        let inside = &rest[open + 1..];
        if inside.first() == Some(&b'{') {
            // Two braces are one that opens nothing.
            parts.push(Part::Text(&rest[..=open]));
            rest = &inside[1..];
            continue;
        }
        let close = inside.iter().position(|&byte| byte == b'}')?;
        parts.push(Part::Text(&rest[..open]));
        parts.push(match &inside[..close] {
            b"title" => Part::Title,
            b"listen-addr" => Part::ListenAddress,
            b"server-mode" => Part::ServerMode,
            b"port" => Part::Port,
            b"tls-port" => Part::TlsPort,
            b"unixsocket" => Part::UnixSocket,
            b"config-file" => Part::ConfigFile,
            _ => return None,
        });
        rest = &inside[close + 1..];
    }
    parts.push(Part::Text(rest));
    Some(parts)
}
