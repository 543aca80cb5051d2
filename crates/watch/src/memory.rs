//! Memory: how much the kernel can leave to the files of a reader.
//!
//! A group of readers shares the memory that its control groups and the system leave for page cache: the limit of each
//! group above it less what it uses for other things, and the system's `MemAvailable`. Readers with the same innermost
//! limit are one domain, with an engine of their own.
//!
//! ```text
//! /a (limit 8 GiB) / b (256 MiB, of which programs use 20)    236 MiB, domain /a/b
//! /c (no limit)                                               MemAvailable, domain of the system
//! ```
//!
//! Both versions of control groups, where they are usually mounted.

use std::fs;
use std::path::{Path, PathBuf};

use forerun_core::Bytes;

use crate::process::Program;

/// A limit beyond is none: version 1 writes the largest multiple of a page.
const UNLIMITED: u64 = 1 << 60;

/// Readers that share a memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Domain {
    /// The groups with a limit, the innermost first; none is the system.
    groups: Vec<PathBuf>,
}

/// The names of a version's files.
struct Names {
    limit: &'static str,
    usage: &'static str,
    cache: [&'static str; 2],
}

const VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file", "total_active_file"],
};
const VERSION_2: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    cache: ["inactive_file", "active_file"],
};

impl Domain {
    /// That of a program.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let of = |group: &crate::process::Group| {
            let is_memory = group.controllers.split(',').any(|name| name == "memory");
            let roots: &[&str] = match (is_memory, group.controllers.is_empty()) {
                (true, _) => &["/sys/fs/cgroup/memory"],
                (_, true) => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                _ => &[],
            };
            let below = group
                .path
                .strip_prefix("/")
                .unwrap_or(&group.path)
                .to_owned();
            roots
                .iter()
                .map(move |root| limited(Path::new(root), &below))
        };
        let mut groups = program.groups.iter().flat_map(of);
        let groups = groups.find(|groups| !groups.is_empty()).unwrap_or_default();
        Self { groups }
    }

    /// Its memory for files now.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        let groups = self.groups.iter().filter_map(|group| left(group));
        let least = groups.chain(available()).min();
        Bytes(least.unwrap_or(u64::MAX))
    }
}

/// The groups of a path that have a limit, the innermost first.
fn limited(root: &Path, below: &Path) -> Vec<PathBuf> {
    let above = below
        .ancestors()
        .filter(|part| !part.as_os_str().is_empty());
    let folders = above.map(|part| root.join(part));
    folders.filter(|folder| limit(folder).is_some()).collect()
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn limit(group: &Path) -> Option<(u64, &'static Names)> {
    let of = |names: &'static Names| Some((number(&group.join(names.limit))?, names));
    let found = of(&VERSION_2).or_else(|| of(&VERSION_1));
    found.filter(|(limit, _)| *limit < UNLIMITED)
}

/// Memory that a group's limit leaves beside its other uses.
fn left(group: &Path) -> Option<u64> {
    let (limit, names) = limit(group)?;
    let used = number(&group.join(names.usage))?;
    let stat = fs::read_to_string(group.join("memory.stat")).ok()?;
    let value = |name: &&str| {
        let mut lines = stat.lines();
        lines.find_map(|line| {
            line.strip_prefix(*name)?
                .strip_prefix(' ')?
                .parse::<u64>()
                .ok()
        })
    };
    let cache: u64 = names.cache.iter().filter_map(value).sum();
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// `MemAvailable`.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, names: &Names, limit: &str, used: u64, cache: u64) {
        fs::create_dir_all(folder).unwrap();
        let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        write(names.limit, limit.to_owned());
        write(names.usage, used.to_string());
        let [inactive, active] = names.cache;
        write(
            "memory.stat",
            format!("cache 7\n{inactive} {cache}\n{active} 10\n"),
        );
    }

    #[test]
    fn a_group_leaves_its_limit_but_for_what_is_no_cache() {
        for names in [&VERSION_1, &VERSION_2] {
            let folder = tempfile::tempdir().unwrap();
            let (outer, inner) = (folder.path().join("a"), folder.path().join("a/b"));
            group(&outer, names, "max", 0, 0);
            group(&inner, names, "1000\n", 800, 590);
            let groups = limited(folder.path(), Path::new("a/b"));
            assert_eq!(groups.len(), 1, "the outer one has no limit");
            assert_eq!(groups[0], inner);
            assert_eq!(left(&inner), Some(800));
            group(&outer, names, "500", 490, 0);
            let domain = Domain {
                groups: limited(folder.path(), Path::new("a/b")),
            };
            assert_eq!(domain.groups, [inner, outer]);
            assert_eq!(domain.bytes(), Bytes(20));
        }
    }

    #[test]
    fn the_system_has_memory() {
        assert!(available().unwrap() > 1 << 20);
        assert_eq!(Domain::default().bytes().0 >> 40, 0);
    }
}
