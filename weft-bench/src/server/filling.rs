//! Data that is there before a measurement begins.
//!
//! Owns the sending of many commands at once. Knows none of them. Invariant: an error in answer to one of them is told, for a
//! measurement of a half-filled server would mislead.

use weft_client::{Connection, Reply};

/// So many commands are sent at once, and their answers read.
const AT_ONCE: usize = 512;

/// So much of an error is told: some repeat the whole command.
const SHOWN_BYTES: usize = 100;

/// Sends all commands.
///
/// # Errors
/// The first error that the server answers, or that the connection broke.
pub fn fill(
    connection: &mut Connection,
    commands: impl IntoIterator<Item = Vec<Vec<u8>>>,
) -> Result<(), String> {
    let mut commands = commands.into_iter();
    loop {
        let some: Vec<Vec<Vec<u8>>> = commands.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return Ok(());
        }
        let replies = connection
            .pipeline(&some)
            .map_err(|error| format!("filling the server: {error}"))?;
        for (reply, command) in replies.iter().zip(&some) {
            if let Reply::Error(text) | Reply::BulkError(text) = &reply.reply {
                return Err(format!(
                    "filling the server: {} is answered with {}",
                    String::from_utf8_lossy(command.first().map_or(b"", |name| name)),
                    String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)])
                ));
            }
        }
    }
}
