//! The server as such: TIME, SHUTDOWN.

use weft_data::number;

use super::options::is;
use crate::action::{Action, Shutdown};
use crate::command::{Argument, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "time",
        arity: 1,
        flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
        tips: &["nondeterministic_output"],
        group: "server",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Tells the server's clock.",
        handler: time,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "shutdown",
        arity: -1,
        flags: Flags::ADMIN
            .with(Flags::NO_SCRIPT)
            .with(Flags::LOADING)
            .with(Flags::STALE)
            .with(Flags::NO_MULTI)
            .with(Flags::ALLOW_BUSY),
        group: "server",
        since: "1.0.0",
        complexity: "O(N) when saving, otherwise O(1)",
        summary: "Stops the server, saving first if so configured.",
        history: &[("7.0.0", "Takes NOW, FORCE and ABORT.")],
        arguments: &[
            Argument::one_of(
                "save-selector",
                &[
                    Argument::word("nosave", "NOSAVE"),
                    Argument::word("save", "SAVE"),
                ],
            )
            .optional(),
            Argument::word("now", "NOW").optional().since("7.0.0"),
            Argument::word("force", "FORCE").optional().since("7.0.0"),
            Argument::word("abort", "ABORT").optional().since("7.0.0"),
        ],
        handler: shutdown,
        ..CommandRow::DEFAULT
    },
];

fn time(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let now = cx.unit.clock_us();
    cx.reply.array(2);
    cx.reply
        .bulk(number::format_u64(now / 1_000_000).as_bytes());
    cx.reply
        .bulk(number::format_u64(now % 1_000_000).as_bytes());
    Ok(())
}

fn shutdown(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let mut options = Shutdown::default();
    let mut abort = false;
    for word in cx.args.iter().skip(1) {
        match word {
            _ if is(word, "NOSAVE") && options.save != Some(true) => options.save = Some(false),
            _ if is(word, "SAVE") && options.save != Some(false) => options.save = Some(true),
            _ if is(word, "NOW") => options.now = true,
            _ if is(word, "FORCE") => options.force = true,
            _ if is(word, "ABORT") => abort = true,
            _ => return Err(CommandError::Syntax),
        }
    }
    if abort && options != Shutdown::default() {
        return Err(CommandError::Syntax);
    }
    if abort {
        return Err(CommandError::Text("ERR No shutdown in progress."));
    }
    if options.cannot_save() {
        let reason = format!("SHUTDOWN: {}", Shutdown::CANNOT_SAVE);
        cx.worker.actions.push(Action::Warn(reason));
        return Err(CommandError::Text(
            "ERR Errors trying to SHUTDOWN. Check logs.",
        ));
    }
    cx.worker.actions.push(Action::Shutdown(options));
    cx.client.close_after_reply();
    Ok(())
}
