//! What the kernel tells of a process. Zeros where it does not tell: on another system, or of a process that has ended.

use serde::Serialize;

/// Memory of one process that is in RAM now and at its highest, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    pub rss_kib: u64,
    pub peak_rss_kib: u64,
}

impl Memory {
    pub fn of(pid: u32) -> Self {
        let status = read(pid, "status");
        Self { rss_kib: kib(&status, "VmRSS:"), peak_rss_kib: kib(&status, "VmHWM:") }
    }
}

/// Processor time of one process, in seconds: its own, and that of children that have ended.
pub fn cpu_seconds(pid: u32) -> f64 {
    let (own, ended) = ticks(&read(pid, "stat"));
    seconds(own + ended)
}

/// Processor time of a server: its main process, all its sessions, and the sessions that have ended, which the main
/// process has waited for. A session that ends between the two reads is counted once or not at all.
pub fn cpu_seconds_of_tree(root: u32) -> f64 {
    children(root).map(cpu_seconds).sum::<f64>() + cpu_seconds(root)
}

/// Memory of a server: its main process and all its sessions. They share most of their pages, so here each page is
/// counted once (`Pss`, which divides a shared page among those who share it), in KiB.
pub fn proportional_kib_of_tree(root: u32) -> u64 {
    children(root).chain([root]).map(|pid| kib(&read(pid, "smaps_rollup"), "Pss:")).sum()
}

/// The parent of a process that runs the program `name` here.
pub fn parent_of(pid: u32, name: &str) -> Option<u32> {
    let status = read(pid, "status");
    let field = |field: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(value.trim().to_owned())
    };
    (field("Name:")? == name).then(|| field("PPid:")?.parse().ok()).flatten()
}

fn children(root: u32) -> impl Iterator<Item = u32> {
    let children = read(root, &format!("task/{root}/children"));
    let pids: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    pids.into_iter()
}

fn read(pid: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// `name   123 kB` → 123; 0 when there is no such line.
fn kib(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// User and system time of the process, and of its children that have ended. The program's name, the second word,
/// stands in parentheses and may hold anything, so counting starts behind the last one.
fn ticks(stat: &str) -> (u64, u64) {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    (field(14) + field(15), field(16) + field(17))
}

#[expect(clippy::cast_precision_loss, reason = "ticks far below 2^52")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_kernels_own_words() {
        let status = "Name:\tconverge\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\nThreads:\t3\n";
        assert_eq!((kib(status, "VmRSS:"), kib(status, "VmHWM:")), (10_240, 20_480));
        assert_eq!(kib("", "VmRSS:"), 0);
    }

    #[test]
    fn processor_time_is_read_behind_whatever_the_program_is_called() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 5";
        assert_eq!(ticks(stat), (33, 77));
        assert_eq!(ticks(""), (0, 0));
    }

    #[test]
    fn a_process_that_works_costs_time() {
        let before = cpu_seconds(std::process::id());
        let start = std::time::Instant::now();
        let mut sum = 0_u64;
        while start.elapsed().as_millis() < 60 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        if cfg!(target_os = "linux") {
            assert!(cpu_seconds(std::process::id()) > before);
        }
    }
}
