//! What a bed needs of the machine, checked before anything is made.
//!
//! Asked by `up` and `table`. All that is missing is named at once, with what would give it;
//! nothing is ever installed or loaded.

use std::path::Path;

use crate::bed::{Bed, Kind};
use crate::failure::Failure;

/// Checks that the bed can be made here.
///
/// # Errors
/// Everything that is missing.
pub fn check(bed: &Bed) -> Result<(), Failure> {
    let missing = missing(bed, rustix::process::geteuid().is_root(), &has, &is_program);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::Missing(missing))
    }
}

fn missing(
    bed: &Bed,
    is_root: bool,
    has: &dyn Fn(&str) -> bool,
    is_program: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut missing = Vec::new();
    let mut need = |there: bool, what: &str| {
        if !there {
            missing.push(what.to_owned());
        }
    };
    let (file_system, mkfs, package) = match bed.file_system.kind {
        Kind::Ext4 => ("ext4", "mkfs.ext4", "e2fsprogs"),
        Kind::BtrfsRaid0 => ("btrfs", "mkfs.btrfs", "btrfs-progs"),
    };
    need(is_root, "not root: mounts and loop devices need it");
    need(has("/dev/fuse"), "no /dev/fuse: the kernel lacks FUSE");
    need(
        has("/dev/loop-control"),
        "no /dev/loop-control: the kernel lacks loop devices",
    );
    need(
        has("/dev/shm"),
        "no /dev/shm: a tmpfs there holds the images",
    );
    need(
        has(&format!("/sys/fs/{file_system}")),
        &format!("the kernel lacks {file_system}, or its module is not loaded"),
    );
    need(
        is_program("losetup"),
        "no program losetup (package util-linux)",
    );
    need(
        is_program("ionice"),
        "no program ionice (package util-linux)",
    );
    need(
        is_program(mkfs),
        &format!("no program {mkfs} (package {package})"),
    );
    missing
}

fn has(path: &str) -> bool {
    Path::new(path).exists()
}

fn is_program(name: &str) -> bool {
    // The standard library looks a name up in PATH; `--version` makes none of them do anything,
    // and how it ends does not matter.
    let mut command = std::process::Command::new(name);
    let command = command.arg("--version").stdin(std::process::Stdio::null());
    command.output().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let raid = bed::parse(include_str!("../beds/raid0.toml")).unwrap();
        let no = |_: &str| false;
        let said = Failure::Missing(missing(&raid, false, &no, &no)).to_string();
        for part in [
            "root",
            "/dev/fuse",
            "loop",
            "tmpfs",
            "lacks btrfs",
            "util-linux",
            "btrfs-progs",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(missing(&raid, true, &|_| true, &|_| true).is_empty());
    }
}
