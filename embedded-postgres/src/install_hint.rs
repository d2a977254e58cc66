//! Says how to install PostgreSQL's server on this very system. A hint that must be translated to one's own
//! distribution first is no hint, so the package manager is taken from `/etc/os-release`.

use std::path::Path;

/// The command that installs a server on the running system.
pub(crate) fn install_command() -> String {
    if cfg!(target_os = "macos") {
        return "brew install postgresql@17".to_owned();
    }
    let os_release = std::fs::read_to_string(Path::new("/etc/os-release")).unwrap_or_default();
    let as_root = rustix::process::geteuid().is_root();
    command_for(&os_release, as_root)
}

/// The rule itself, apart from the machine: `ID` decides, then the families in `ID_LIKE`, in order.
fn command_for(os_release: &str, as_root: bool) -> String {
    let sudo = if as_root { "" } else { "sudo " };
    let ids = ["ID", "ID_LIKE"].into_iter().filter_map(|key| value_of(os_release, key));
    for id in ids.flat_map(|ids| ids.split_whitespace().map(str::to_owned).collect::<Vec<_>>()) {
        match id.as_str() {
            "debian" | "ubuntu" => {
                return format!("{sudo}apt-get update && {sudo}apt-get install -y postgresql");
            }
            "fedora" | "rhel" | "centos" => return format!("{sudo}dnf install -y postgresql-server"),
            "alpine" => return format!("{sudo}apk add postgresql17"),
            "arch" => return format!("{sudo}pacman -S --noconfirm postgresql"),
            "suse" | "opensuse" => return format!("{sudo}zypper install -y postgresql-server"),
            "nixos" => return "nix-shell -p postgresql".to_owned(),
            _ => {}
        }
    }
    "your package manager: the package is usually called postgresql or postgresql-server".to_owned()
}

/// One value of an os-release file, unquoted.
fn value_of(os_release: &str, key: &str) -> Option<String> {
    os_release
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::command_for;

    #[test]
    fn the_distribution_itself_decides() {
        assert_eq!(command_for("ID=debian\n", true), "apt-get update && apt-get install -y postgresql");
        assert_eq!(command_for("NAME=x\nID=\"alpine\"\n", true), "apk add postgresql17");
    }

    #[test]
    fn an_unknown_distribution_is_treated_as_its_family() {
        let rocky = "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n";
        assert_eq!(command_for(rocky, false), "sudo dnf install -y postgresql-server");
    }

    #[test]
    fn an_ordinary_user_is_told_to_use_sudo_for_every_step() {
        assert_eq!(
            command_for("ID=ubuntu\nID_LIKE=debian\n", false),
            "sudo apt-get update && sudo apt-get install -y postgresql"
        );
    }

    #[test]
    fn an_unknown_system_gets_the_name_of_the_package() {
        assert!(command_for("ID=plan9\n", false).contains("postgresql-server"));
    }
}
