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
