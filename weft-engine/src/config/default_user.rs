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
        let (name, rules) = arguments.split_first()?;
        let (mut on, mut keys, mut channels, mut commands) = (false, false, false, false);
        let (mut without_password, mut with_password) = (false, false);
        for rule in rules {
            match *rule {
                b"on" => on = true,
                b"nopass" => without_password = true,
                b"~*" | b"allkeys" => keys = true,
                b"&*" | b"allchannels" => channels = true,
                b"+@all" | b"allcommands" => commands = true,
                b"sanitize-payload" => {}
                // The digest of a password.
                [b'#', digits @ ..] if digits.len() == 64 => with_password = true,
                _ => return None,
            }
        }
        if *name != b"default" || !(on && keys && channels && commands) {
            return None;
        }
        match (without_password, with_password) {
            (true, false) => Some(DefaultUser::WithoutPassword),
            (false, true) => Some(DefaultUser::WithPassword),
            _ => None,
        }
    }
}
