//! Installing: the output of `make install` and `make package` is installed in a copy of this
//! system's root and used there (`packaging/try.sh`). Where there is no root, no overlayfs or no
//! `/dev/fuse` the script says so, and the test passes.
//!
//! The binary is the one that the tests run; that it builds statically is seen by `make package`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::cmd::cargo_bin;

/// How `try.sh` ends where it cannot be tried.
const UNTRIED: i32 = 77;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(script: &str, arguments: &[&Path], variables: &[(&str, &Path)]) -> Output {
    Command::new(repository().join("packaging").join(script))
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Whether it was done; says so if it could not be.
#[allow(clippy::print_stdout, reason = "part of tests")]
fn tried(output: &Output) -> bool {
    let said = said(output);
    println!("{said}");
    if output.status.code() == Some(UNTRIED) {
        assert!(said.contains("NOT TRIED"), "{said}");
        return false;
    }
    assert!(output.status.success(), "{said}");
    true
}

#[test]
fn what_make_install_puts_there_works_and_make_uninstall_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let (stage, prefix) = (folder.path(), Path::new("/opt/forerun"));
    let variables = [
        ("DESTDIR", stage),
        ("PREFIX", prefix),
        ("SBINDIR", Path::new("/sbin")),
    ];
    let binary = cargo_bin!("forerun");
    let installed = run("install.sh", &[binary], &variables);
    assert!(installed.status.success(), "{}", said(&installed));
    for file in [
        "opt/forerun/bin/forerun",
        "opt/forerun/share/man/man1/forerun.1",
        "opt/forerun/share/man/man8/mount.forerun.8",
        "opt/forerun/share/bash-completion/completions/forerun",
        "opt/forerun/lib/systemd/system/forerun@.service",
        "opt/forerun/share/doc/forerun/LICENSE-MIT",
    ] {
        assert!(stage.join(file).is_file(), "{file}");
    }
    let link = fs::read_link(stage.join("sbin/mount.forerun")).unwrap();
    assert_eq!(link, prefix.join("bin/forerun"));
    let unit =
        fs::read_to_string(stage.join("opt/forerun/lib/systemd/system/forerun-mount.service"));
    let unit = unit.unwrap();
    assert!(
        unit.contains("ExecStart=/opt/forerun/bin/forerun mount"),
        "{unit}"
    );
    assert!(
        unit.contains("NoNewPrivileges=yes") && !unit.contains("DIR@"),
        "{unit}"
    );
    let removed = run("install.sh", &["--uninstall".as_ref()], &variables);
    assert!(removed.status.success(), "{}", said(&removed));
    let mut left = Vec::new();
    files_below(stage, &mut left);
    assert!(left.is_empty(), "{left:?}");
}

fn files_below(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path(), into),
            false => into.push(entry.path()),
        }
    }
}

#[test]
fn an_installation_mounts_by_hand_by_fstab_and_with_the_rights_of_its_units() {
    let binary = cargo_bin!("forerun");
    tried(&run("try.sh", &[binary], &[]));
}

#[test]
fn the_packages_are_small_and_each_works_where_it_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let binary = cargo_bin!("forerun");
    let made = run("package.sh", &[folder.path(), binary], &[]);
    if !tried(&made) {
        return;
    }
    let names = fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = names
        .map(|n| n.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with(".tar.gz")),
        "{names:?}"
    );
    let has_deb = names.iter().any(|name| name.ends_with(".deb"));
    assert!(
        has_deb || said(&made).contains("NOT DONE: the .deb"),
        "{names:?}"
    );
}

#[test]
fn systemd_finds_the_units_exposed_as_little_as_a_mount_allows() {
    let folder = tempfile::tempdir().unwrap();
    let binary = cargo_bin!("forerun");
    let variables = [("DESTDIR", folder.path()), ("PREFIX", Path::new("/usr"))];
    let installed = run("install.sh", &[binary], &variables);
    assert!(installed.status.success(), "{}", said(&installed));
    let unit = folder
        .path()
        .join("usr/lib/systemd/system/forerun-mount.service");
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=65"])
        .arg(&unit)
        .output();
    match output {
        Ok(output) => assert!(output.status.success(), "{}", said(&output)),
        Err(_) => println!("not tried: needs systemd-analyze"),
    }
}
