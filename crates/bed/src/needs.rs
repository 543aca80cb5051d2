//! Requirements of a bed, checked before any of it is made.
//!
//! Asked by `up`, `table`, `small` and `servers`. All that is missing is named at once, with its
//! remedy; nothing is ever installed or loaded.

use std::path::Path;

use crate::bed::{Bed, Kind};
use crate::failure::Failure;
use crate::servers::{Server, search};

/// The programs that `small` measures, and the packages they are in.
const MEASURED: &[(&str, &str)] = &[("tar", "tar"), ("grep", "grep"), ("find", "findutils")];

/// Checks that the bed can be made here.
///
/// # Errors
/// Everything that is missing.
pub fn check(bed: &Bed) -> Result<(), Failure> {
    answer(of_bed(bed, is_root(), &has, &is_program))
}

/// Checks that the bed can be made here and small files be measured on it.
///
/// # Errors
/// Everything that is missing.
pub fn check_small(bed: &Bed) -> Result<(), Failure> {
    let mut missing = of_bed(bed, is_root(), &has, &is_program);
    missing.extend(of_small(bed, &has, &is_program));
    answer(missing)
}

/// Checks that the bed can be made here and the server with its clients run on it.
///
/// # Errors
/// Everything that is missing.
pub fn check_server(bed: &Bed, server: &Server) -> Result<(), Failure> {
    let mut missing = of_bed(bed, is_root(), &has, &is_program);
    missing.extend(of_server(server, &is_program, &imports));
    answer(missing)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn answer(missing: Vec<String>) -> Result<(), Failure> {
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::Missing(missing))
    }
}

fn of_small(
    bed: &Bed,
    has: &dyn Fn(&str) -> bool,
    is_program: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut missing = Vec::new();
    // The bed itself has named it if its disks are emulated.
    if bed.disks.is_local() && !has("/dev/fuse") {
        missing.push(NO_FUSE.to_owned());
    }
    let absent = MEASURED.iter().filter(|(program, _)| !is_program(program));
    let named = absent.map(|(program, package)| no_program(program, package));
    missing.extend(named);
    missing
}

fn of_server(
    server: &Server,
    is_program: &dyn Fn(&str) -> bool,
    imports: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let programs: &[(&str, &str)] = match server {
        Server::Media => &[
            ("nginx", "nginx-light"),
            ("wrk", "wrk"),
            ("setpriv", "util-linux"),
            ("find", "findutils"),
        ],
        Server::Search { .. } => &[
            ("xapian-compact", "xapian-tools"),
            (search::PYTHON, "python3-minimal"),
            ("setpriv", "util-linux"),
        ],
    };
    let absent = programs.iter().filter(|(program, _)| !is_program(program));
    let mut missing: Vec<String> = absent
        .map(|(program, package)| no_program(program, package))
        .collect();
    if matches!(server, Server::Search { .. }) && !imports("xapian") {
        let text = format!(
            "{} has no module xapian (package python3-xapian)",
            search::PYTHON
        );
        missing.push(text);
    }
    missing
}

fn imports(module: &str) -> bool {
    let mut command = std::process::Command::new(search::PYTHON);
    let command = command.args(["-c", &format!("import {module}")]);
    command.output().is_ok_and(|output| output.status.success())
}

const NO_FUSE: &str = "no /dev/fuse: the kernel lacks FUSE";

fn no_program(program: &str, package: &str) -> String {
    format!("no program {program} (package {package})")
}

fn of_bed(
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
        Kind::BtrfsRaid0 | Kind::BtrfsRaid10 | Kind::BtrfsRaid5 => {
            ("btrfs", "mkfs.btrfs", "btrfs-progs")
        }
    };
    need(is_root, "not root: mounts and loop devices need it");
    need(
        has("/dev/loop-control"),
        "no /dev/loop-control: the kernel lacks loop devices",
    );
    if !bed.disks.is_local() {
        need(has("/dev/fuse"), NO_FUSE);
        need(
            has("/dev/shm"),
            "no /dev/shm: a tmpfs there holds the images",
        );
    }
    need(
        has(&format!("/sys/fs/{file_system}")),
        &format!("the kernel lacks {file_system}, or its module is not loaded"),
    );
    for (program, package) in [
        ("losetup", "util-linux"),
        ("ionice", "util-linux"),
        (mkfs, package),
    ] {
        need(is_program(program), &no_program(program, package));
    }
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
        let said = Failure::Missing(of_bed(&raid, false, &no, &no)).to_string();
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
        assert!(of_bed(&raid, true, &|_| true, &|_| true).is_empty());
    }

    #[test]
    fn a_local_disk_needs_no_emulation_and_small_files_need_their_programs() {
        let local = bed::parse(include_str!("../beds/small_local.toml")).unwrap();
        let no = |_: &str| false;
        let bed = of_bed(&local, false, &no, &no).join(" ");
        assert!(!bed.contains("FUSE") && !bed.contains("shm"), "{bed}");
        let small = of_small(&local, &no, &no).join(" ");
        for part in ["/dev/fuse", "tar", "grep", "findutils"] {
            assert!(small.contains(part), "{part}: {small}");
        }
        let slow = bed::parse(include_str!("../beds/small_disk.toml")).unwrap();
        assert_eq!(of_small(&slow, &no, &no).len(), 3);
        assert!(of_small(&slow, &|_| true, &|_| true).is_empty());
    }

    #[test]
    fn a_server_that_is_missing_is_named_with_its_package() {
        let no = |_: &str| false;
        let said = of_server(&Server::Media, &no, &no).join(" ");
        assert!(said.contains("package nginx-light") && said.contains("package wrk"));
        let search = Server::Search {
            index: "/var/tmp".into(),
            documents: 1,
        };
        let said = of_server(&search, &no, &no).join(" ");
        assert!(said.contains("xapian-tools") && said.contains("python3-xapian"));
        assert!(of_server(&search, &|_| true, &|_| true).is_empty());
    }
}
