//! The `user default` line that CONFIG REWRITE of the reference leaves in a file.
//!
//! There are no access control lists yet, but that line says no more than `requirepass` does, so it need not stop a start.

/// What CONFIG REWRITE of the reference writes about the one user there is: it may do everything, with the password of
/// `requirepass`, or with none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultUser {
    WithPassword,
    WithoutPassword,
}

impl DefaultUser {
    /// None for a line about another user, or with other rules.
    pub(super) fn of(arguments: &[&[u8]]) -> Option<DefaultUser> {
        let (b"default", rules) = arguments.split_first()? else {
            return None;
        };
        let has = |names: [&[u8]; 2]| rules.iter().any(|rule| names.contains(rule));
        let is_hash = |rule: &[u8]| rule.len() == 65 && rule[0] == b'#';
        let known = |rule: &&[u8]| {
            const KNOWN: [&[u8]; 9] = [
                b"on",
                b"nopass",
                b"sanitize-payload",
                b"~*",
                b"allkeys",
                b"&*",
                b"allchannels",
                b"+@all",
                b"allcommands",
            ];
            KNOWN.contains(rule) || is_hash(rule)
        };
        let may_everything = has([b"on", b"on"])
            && has([b"~*", b"allkeys"])
            && has([b"&*", b"allchannels"])
            && has([b"+@all", b"allcommands"]);
        if !may_everything || !rules.iter().all(known) {
            return None;
        }
        match (
            has([b"nopass", b"nopass"]),
            rules.iter().any(|rule| is_hash(rule)),
        ) {
            (true, false) => Some(DefaultUser::WithoutPassword),
            (false, true) => Some(DefaultUser::WithPassword),
            _ => None,
        }
    }
}
