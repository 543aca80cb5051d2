//! The memory that the kernel could give to the cache of the files that this process reads.
//!
//! The least of what the system has available and of the limits of this process's memory cgroup and those above it, in
//! either version of cgroups:
//!
//! ```text
//! /proc/self/cgroup  4:memory:/a/b   /sys/fs/cgroup/memory/a/b/memory.limit_in_bytes, /a/.., /..
//!                    0::/a/b         /sys/fs/cgroup/a/b/memory.max, ..
//! ```

use std::fs;
use std::path::Path;

use forerun_core::Bytes;

/// Where the system does not tell: the memory of a small machine.
const UNKNOWN: Bytes = Bytes(1 << 30);

/// See the [module](self).
#[must_use]
pub fn available() -> Bytes {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let system = of_meminfo(&read("/proc/meminfo")).unwrap_or(UNKNOWN);
    of_cgroups(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"))
        .map_or(system, |limit| limit.min(system))
}

fn of_meminfo(text: &str) -> Option<Bytes> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(Bytes(kib << 10))
}

/// The least limit of the groups that a process is in.
fn of_cgroups(groups: &str, root: &Path) -> Option<Bytes> {
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (root, name) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let path = Path::new(path.trim_start_matches('/'));
        let limit = |group: &Path| {
            let text = fs::read_to_string(root.join(group).join(name)).ok()?;
            text.trim().parse().ok()
        };
        path.ancestors().filter_map(limit).min()
    });
    limits.min().map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_those_above_it_holds() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("a/b/memory.max", "max\n");
        put("a/memory.max", "5000000\n");
        put("memory/c/memory.limit_in_bytes", "4000000\n");
        let of = |groups: &str| of_cgroups(groups, root.path());
        assert_eq!(of("0::/a/b\n"), Some(Bytes(5_000_000)));
        assert_eq!(of("0::/a/b\n4:cpu,memory:/c/d\n"), Some(Bytes(4_000_000)));
        assert_eq!(of("3:cpu:/c\n0::/none\nno line\n"), None);
    }

    #[test]
    fn the_system_tells_in_kib() {
        let text = "MemTotal:  9 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(of_meminfo(text), Some(Bytes(2 << 20)));
        assert_eq!(of_meminfo("MemTotal: 9 kB\n"), None);
    }
}
