//! What the figures were measured on. A figure without it is a rumour.

use serde::Serialize;

/// The machine.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: usize,
    /// The processor's own name, where the system tells.
    pub processor: String,
    /// Main memory in MiB; 0 where the system does not tell.
    pub memory_mib: u64,
    /// Operating system and kernel.
    pub system: String,
    /// Whether our own code was optimised; a figure of a debug build is no figure.
    pub build: &'static str,
}

impl Machine {
    /// Asks the system.
    pub fn look() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| -> Option<String> {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once([':', '='])?.1.trim().trim_matches('"').to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib: u64 = memory.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            memory_mib: kib / 1024,
            system: format!(
                "{}, kernel {}",
                field(&read("/etc/os-release"), "PRETTY_NAME")
                    .unwrap_or_else(|| std::env::consts::OS.to_owned()),
                read("/proc/sys/kernel/osrelease").trim()
            ),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

/// Memory of one process that is in RAM now and at its highest, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    pub rss_kib: u64,
    pub peak_rss_kib: u64,
}

impl Memory {
    /// Of a running process; zeros where the system does not tell.
    pub fn of(pid: u32) -> Self {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
    }

    /// Of a server: its main process and all its sessions. They share most of their pages, so here each page is counted
    /// once (`Pss`, which divides a shared page among those who share it), in KiB.
    pub fn of_tree(root: u32) -> u64 {
        let children =
            std::fs::read_to_string(format!("/proc/{root}/task/{root}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        children.chain([root]).map(proportional_kib).sum()
    }

    fn parse(status: &str) -> Self {
        Self { rss_kib: kib(status, "VmRSS:"), peak_rss_kib: kib(status, "VmHWM:") }
    }
}

fn proportional_kib(pid: u32) -> u64 {
    kib(&std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default(), "Pss:")
}

/// `name   123 kB` → 123; 0 when there is no such line.
fn kib(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn memory_is_read_from_the_kernels_own_words() {
        let status = "Name:\tconverge\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\nThreads:\t3\n";
        assert_eq!(Memory::parse(status), Memory { rss_kib: 10_240, peak_rss_kib: 20_480 });
        assert_eq!(Memory::parse(""), Memory::default());
    }
}
