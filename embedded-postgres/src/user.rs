//! Chooses the user that the server runs as. PostgreSQL refuses to run as root, and a container usually is root,
//! so a root process has to lend the server somebody else's identity. Users are chosen, never created: a tool
//! that edits the account database to show a demo would not be forgiven.

use std::process::{Command, Stdio};

use crate::EmbeddedError;

/// Who the server runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerUser {
    /// The user that runs this program; nothing has to be switched.
    Myself,
    /// An existing unprivileged user; this program is root.
    Other {
        /// User id, never 0.
        uid: u32,
        /// Group id.
        gid: u32,
        /// For messages.
        name: String,
    },
}

impl ServerUser {
    /// An ordinary user runs the server itself. Root lends it to the person behind `sudo`, else to `postgres`
    /// (the account that the distribution's package made for this purpose), else to `nobody`.
    ///
    /// # Errors
    /// [`EmbeddedError::NoUnprivilegedUser`] when root finds none of the three.
    pub fn choose() -> Result<Self, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Myself);
        }
        let sudo = |name: &str| std::env::var(name).ok().and_then(|id| id.parse().ok());
        from_sudo(sudo("SUDO_UID"), sudo("SUDO_GID"))
            .or_else(|| from_accounts("postgres"))
            .or_else(|| from_accounts("nobody"))
            .ok_or(EmbeddedError::NoUnprivilegedUser)
    }

    /// The ids to switch to, if any.
    pub(crate) fn ids(&self) -> Option<(u32, u32)> {
        match self {
            Self::Myself => None,
            Self::Other { uid, gid, .. } => Some((*uid, *gid)),
        }
    }

    /// A command that will run as this user. The standard library switches the group, clears the supplementary
    /// groups and switches the user, in this order, in the child.
    pub(crate) fn command(&self, program: &std::path::Path) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        if let Some((uid, gid)) = self.ids() {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl std::fmt::Display for ServerUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Myself => f.write_str("the current user"),
            Self::Other { name, .. } => f.write_str(name),
        }
    }
}

/// `sudo -i` from a root shell sets `SUDO_UID=0`, which helps nobody.
fn from_sudo(uid: Option<u32>, gid: Option<u32>) -> Option<ServerUser> {
    let uid = uid.filter(|uid| *uid != 0)?;
    Some(ServerUser::Other { uid, gid: gid.unwrap_or(uid), name: format!("user {uid}") })
}

/// Asks `id`, which knows directory services too and exists on every system; the C function behind it would
/// need `unsafe`.
fn from_accounts(name: &str) -> Option<ServerUser> {
    let ask = |flag: &str| -> Option<u32> {
        let output =
            Command::new("id").args([flag, name]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    };
    let uid = ask("-u").filter(|uid| *uid != 0)?;
    Some(ServerUser::Other { uid, gid: ask("-g")?, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_person_behind_sudo_is_used_but_never_root() {
        let person = ServerUser::Other { uid: 1000, gid: 1001, name: "user 1000".to_owned() };
        assert_eq!(from_sudo(Some(1000), Some(1001)), Some(person));
        assert_eq!(from_sudo(Some(0), Some(0)), None);
        assert_eq!(from_sudo(None, None), None);
    }

    #[test]
    fn an_account_that_does_not_exist_is_not_invented() {
        assert_eq!(from_accounts("no-such-account-here"), None);
        assert_eq!(from_accounts("root"), None);
    }

    #[test]
    fn the_chosen_user_is_never_root() {
        match ServerUser::choose().unwrap() {
            ServerUser::Myself => assert!(!rustix::process::geteuid().is_root()),
            ServerUser::Other { uid, .. } => assert_ne!(uid, 0),
        }
    }
}
