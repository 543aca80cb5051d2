//! Installing: the output of `make install` and `make package` is installed in a copy of this
//! system's root and used there (`packaging/try.sh`). Where there is no root, no overlayfs or no
//! `/dev/fuse` the script says so, and the test passes.
//!
//! The binary is the one that the tests run; that it builds statically is seen by `make package`.

#[path = "../../store/tests/signed/mod.rs"]
#[expect(dead_code, reason = "services that give keys are the clients'")]
mod signed;
#[path = "../../skipped.rs"]
mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use skipped::skipped;
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

/// The same where a server that checks signatures has the object `s3://b/k`.
fn run_beside_store(script: &str, arguments: &[&Path]) -> Output {
    let store = signed::Server::start();
    store.take("AKIDTRIED", "secret/of+it", None);
    let url = store.url("");
    let variables = [
        ("TRY_STORE", Path::new(&url)),
        ("AWS_ACCESS_KEY_ID", Path::new("AKIDTRIED")),
        ("AWS_SECRET_ACCESS_KEY", Path::new("secret/of+it")),
    ];
    run(script, arguments, &variables)
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
        skipped(said);
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
        "opt/forerun/share/doc/forerun/fast.conf",
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
    let left: Vec<_> = fs::read_dir(stage).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn folders_that_were_there_and_files_of_others_stay_when_it_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let stage = folder.path();
    let variables = [("DESTDIR", stage), ("PREFIX", "/opt".as_ref())];
    let (before, other) = (stage.join("opt/share/man"), stage.join("opt/lib/other"));
    fs::create_dir_all(&before).unwrap();
    // An installation over one that is there knows the folders that the first has made.
    for _ in 0..2 {
        let installed = run("install.sh", &[cargo_bin!("forerun")], &variables);
        assert!(installed.status.success(), "{}", said(&installed));
    }
    fs::write(&other, "").unwrap();
    let removed = run("install.sh", &["--uninstall".as_ref()], &variables);
    assert!(removed.status.success(), "{}", said(&removed));
    let mut left = Vec::new();
    files_below(stage, &mut left);
    assert_eq!(left, [other]);
    let names = |below: &str| {
        let entries = fs::read_dir(stage.join(below)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("opt"), ["lib", "share"]);
    assert_eq!(names("opt/share"), ["man"]);
    assert!(names("opt/share/man").is_empty());
}

#[test]
fn the_link_of_another_installation_stays_when_one_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let stage = folder.path();
    let of = |prefix| [("DESTDIR", stage), ("PREFIX", Path::new(prefix))];
    let (first, second) = (of("/first"), of("/second"));
    for variables in [&first, &second] {
        let installed = run("install.sh", &[cargo_bin!("forerun")], variables);
        assert!(installed.status.success(), "{}", said(&installed));
    }
    let link = || fs::read_link(stage.join("sbin/mount.forerun"));
    for (variables, left) in [(&first, Some("/second/bin/forerun")), (&second, None)] {
        let removed = run("install.sh", &["--uninstall".as_ref()], variables);
        assert!(removed.status.success(), "{}", said(&removed));
        assert_eq!(link().ok().as_deref(), left.map(Path::new));
    }
}

#[test]
fn the_link_goes_with_its_binary_however_the_folders_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let (binary, stage) = (folder.path().join("forerun"), folder.path().join("stage"));
    program(&binary, "echo whole");
    let link = stage.join("sbin/mount.forerun");
    let with = |name, value, arguments: &[&Path]| {
        let variables = [
            ("DESTDIR", &*stage),
            ("PREFIX", Path::new("/usr")),
            (name, Path::new(value)),
        ];
        let done = run("install.sh", arguments, &variables);
        assert!(done.status.success(), "{}", said(&done));
    };
    for (name, value) in [("PREFIX", "/usr/"), ("BINDIR", "/programs")] {
        with(name, value, &[&binary]);
        assert!(link.is_symlink(), "{name}={value}");
        with("PREFIX", "/usr", &["--uninstall".as_ref()]);
        assert!(!link.is_symlink(), "{name}={value}");
    }
}

#[test]
fn users_enter_the_folders_whatever_the_umask_of_the_one_who_installs() {
    let folder = tempfile::tempdir().unwrap();
    let stage = folder.path().join("stage");
    let installed = Command::new("sh")
        .args(["-c", "umask 077; exec \"$0\" \"$1\""])
        .arg(repository().join("packaging/install.sh"))
        .arg(cargo_bin!("forerun"))
        .envs([("DESTDIR", &*stage), ("PREFIX", Path::new("/usr"))])
        .output()
        .unwrap();
    assert!(installed.status.success(), "{}", said(&installed));
    let mut files = Vec::new();
    files_below(&stage, &mut files);
    assert!(files.len() > 10, "{files:?}");
    for path in files.iter().flat_map(|file| file.ancestors()) {
        if path.starts_with(&stage) && !path.is_symlink() {
            let mode = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o044, 0o044, "{}: {mode:o}", path.display());
            assert!(
                !path.is_dir() || mode & 0o011 == 0o011,
                "{}: {mode:o}",
                path.display()
            );
        }
    }
}

/// A program that says that it is whole, whose pages are there, and whose words for completions are these.
fn program(path: &Path, completions: &str) {
    let text = format!(
        "#!/bin/sh\ncase $1 in\nversion) echo 'left out   none' ;;\nman) echo > \"$3/forerun.1\" ;;\n*) {completions} ;;\nesac\n"
    );
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn completions_that_fail_in_the_middle_end_the_installation() {
    let folder = tempfile::tempdir().unwrap();
    let (binary, stage) = (folder.path().join("forerun"), folder.path().join("stage"));
    for (completions, is_whole) in [("echo part; exit 3", false), ("echo whole", true)] {
        program(&binary, completions);
        let variables = [("DESTDIR", &*stage), ("PREFIX", Path::new("/usr"))];
        let installed = run("install.sh", &[&binary], &variables);
        assert_eq!(installed.status.success(), is_whole, "{}", said(&installed));
        let there = stage.join("usr/share/bash-completion/completions/forerun");
        assert_eq!(there.exists(), is_whole);
    }
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
    let output = run_beside_store("try.sh", &[binary]);
    if tried(&output) {
        let said = said(&output);
        assert!(
            said.contains("a signed store by hand, unit and fstab"),
            "{said}"
        );
    }
}

#[test]
fn the_packages_are_small_and_each_works_where_it_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let binary = cargo_bin!("forerun");
    let older = [
        "forerun-0.0.1-x86_64-linux.tar.gz",
        "forerun_0.0.1_amd64.deb",
    ];
    for name in older {
        fs::write(folder.path().join(name), "of another version").unwrap();
    }
    let stale = format!("forerun_{}_mips.deb", env!("CARGO_PKG_VERSION"));
    fs::write(folder.path().join(&stale), "of an older binary").unwrap();
    let made = run_beside_store("package.sh", &[folder.path(), binary]);
    if !tried(&made) {
        return;
    }
    let stores = said(&made).matches("a signed store by hand").count();
    let names = fs::read_dir(folder.path()).unwrap();
    let (old, names): (Vec<_>, Vec<_>) = names
        .map(|n| n.unwrap().file_name().into_string().unwrap())
        .partition(|name| older.contains(&&**name));
    assert_eq!(old.len(), older.len(), "{}", said(&made));
    assert!(!names.contains(&stale), "{names:?}");
    assert_eq!(stores, names.len(), "{}", said(&made));
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
fn documents_name_the_packages_of_this_version_beside_which_older_ones_may_lie() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let version = env!("CARGO_PKG_VERSION");
    for (page, names) in [
        ("README.md", &["forerun_VERSION_*.deb"][..]),
        (
            "docs/INSTALL.md",
            &["forerun_VERSION_*.deb", "forerun-VERSION-*.tar.gz"],
        ),
        ("packaging/INSTALL", &["forerun-VERSION-*.tar.gz"]),
    ] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let ends = [".deb", ".tar.gz"];
        let words = text
            .split_whitespace()
            .map(|word| word.trim_start_matches("./"));
        let found: Vec<&str> = words
            .filter(|word| {
                word.starts_with("forerun") && ends.iter().any(|end| word.ends_with(end))
            })
            .collect();
        let names: Vec<String> = names
            .iter()
            .map(|name| name.replace("VERSION", version))
            .collect();
        assert_eq!(found, names, "{page}");
    }
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
        Err(_) => skipped("needs systemd-analyze"),
    }
}

/// A user without rights, and arguments that name no place, are told so before the first file is written.
#[test]
fn an_installation_that_cannot_be_made_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let binary = cargo_bin!("forerun");
    let absent = folder.path().join("absent");
    let refused = run("install.sh", &[&absent], &[("DESTDIR", folder.path())]);
    let words = said(&refused);
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("make build"), "{words}");
    for prefix in ["usr", "./usr", "~user/x"] {
        let variables = [("PREFIX", Path::new(prefix))];
        let refused = run("install.sh", &[binary], &variables);
        let words = said(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words}");
        assert!(words.contains(&format!("PREFIX={prefix}")), "{words}");
    }
    for odd in ["/a b", "/a&b", "/a|b", "/a\\b", "/a%b", "/a\"b", "/a$b"] {
        for name in ["PREFIX", "BINDIR"] {
            let variables = [("DESTDIR", folder.path()), (name, Path::new(odd))];
            let refused = run("install.sh", &[binary], &variables);
            let words = said(&refused);
            assert_eq!(refused.status.code(), Some(2), "{words}");
            let begin = format!("{name}={odd}: must be without blanks");
            assert!(words.contains(&begin), "{words}");
        }
    }
    // A binary that a user built without object stores.
    let small = folder.path().join("small");
    fs::write(
        &small,
        "#!/bin/sh\necho 'forerun 0.1.0'\necho 'left out   object-store'\n",
    )
    .unwrap();
    fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = run("install.sh", &[&small], &[("DESTDIR", folder.path())]);
    let words = said(&refused);
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("without object-store"), "{words}");
    let mut left = Vec::new();
    files_below(folder.path(), &mut left);
    assert_eq!(left, [small]);
}

#[test]
fn a_user_installs_below_the_home() {
    let home = tempfile::tempdir().unwrap();
    let binary = cargo_bin!("forerun");
    let none = home.path().join("none");
    fs::write(&none, "").unwrap();
    // In the file that is in its place no helper of mount(8) can be made, as in /sbin of another user.
    let sbin = none.join("sbin");
    let variables = [
        ("HOME", home.path()),
        ("PREFIX", Path::new("~/.local")),
        ("SBINDIR", &sbin),
    ];
    let installed = run("install.sh", &[binary], &variables);
    let words = said(&installed);
    assert!(installed.status.success(), "{words}");
    assert!(words.contains("NOT INSTALLED"), "{words}");
    let there = home.path().join(".local/bin/forerun");
    let version = Command::new(&there)
        .args(["version", "-v"])
        .output()
        .unwrap();
    let words = said(&version);
    assert!(
        version.status.success() && words.contains("left out   none"),
        "{words}"
    );
    let removed = run("install.sh", &["--uninstall".as_ref()], &variables);
    assert!(
        removed.status.success() && !there.exists(),
        "{}",
        said(&removed)
    );
}
