//! A mount that cannot work is refused with code 2 and a line that says why, in the background and
//! in the foreground, and leaves nothing behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use snapbox::cmd::cargo_bin;

use super::{Mounted, can_mount, folder, forerun, is_mounted};

#[test]
fn what_cannot_be_mounted_is_named() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("file"), "").unwrap();
    fs::create_dir(path("full")).unwrap();
    fs::write(path("full/a"), "").unwrap();
    fs::create_dir(path("point/inside")).unwrap();
    for (source, point, more, why) in [
        ("missing", "point", "", "missing: no such directory"),
        ("file", "point", "", "file: is not a directory"),
        (
            "point/inside",
            "point",
            "",
            "point/inside: is inside the mount point",
        ),
        ("point", "point", "", "point: is SOURCE and MOUNTPOINT"),
        ("source", "missing", "", "missing: no such directory"),
        ("source", "file", "", "file: is not a directory"),
        (
            "source",
            "full",
            "",
            "full: is not empty (--nonempty mounts over it)",
        ),
        (
            "source",
            "/proc",
            "",
            "/proc: something is mounted here already",
        ),
        (
            "source",
            "point",
            "--memory=1",
            "--memory 1B: must be at least",
        ),
        (
            "source",
            "point",
            "-omemory=1",
            "--memory 1B: must be at least",
        ),
        (
            "source",
            "point",
            "-onosuch=1",
            "unexpected argument '-o nosuch=1'",
        ),
        ("source", "point", "-opreset=nosuch", "nosuch"),
        (
            "source",
            "point",
            "--kernel-readahead=256",
            "must be a multiple of 4KiB, a page of the kernel, from 0 to 64MiB",
        ),
        ("source", "point", "-okernel-readahead=1GiB", "to 64MiB"),
        (
            "source",
            "point",
            "--profile=missing",
            "missing: no such file",
        ),
        (
            "source",
            "point",
            "--metrics=1.2.3.4:1",
            "--metrics 1.2.3.4:1: ",
        ),
        (
            "source",
            "point",
            "--control=/missing/c",
            "/missing/c: no such directory",
        ),
        (
            "source",
            "point",
            "--journal=/missing/j",
            "/missing/j: no such directory",
        ),
    ] {
        if source == "source" && point == "point" {
            let _ = fs::remove_dir(path("point/inside"));
        }
        for foreground in [true, false] {
            let mut words = vec!["mount".to_owned()];
            words.extend(foreground.then(|| "--foreground".to_owned()));
            words.extend(Some(more.to_owned()).filter(|more| !more.is_empty()));
            let paths = [path(source), path(point)];
            words.extend(paths.map(|path| path.to_str().unwrap().to_owned()));
            let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
            let (code, said) = forerun(&words);
            assert!(code == 2 && said.contains(why), "{words:?}: {code}, {said}");
            assert!(!is_mounted(&path("point")), "{words:?} left a mount");
        }
    }
}

/// Arguments of a mount in this folder, its flags first.
fn refused(folder: &Path, flags: &[&str]) -> String {
    let paths = ["source", "point"].map(|name| folder.join(name).display().to_string());
    let words = ["mount", "--foreground"].iter().chain(flags).copied();
    let words: Vec<_> = words.chain(paths.iter().map(String::as_str)).collect();
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let (code, said) = forerun(&words);
    assert_eq!(code, 2, "{flags:?}: {said}");
    said
}

#[test]
fn a_journal_replaces_no_other_file_and_lies_in_neither_folder() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("source/film"), "film").unwrap();
    fs::write(path("film"), "film").unwrap();
    symlink(path("source/film"), path("link")).unwrap();
    symlink(path("source"), path("way")).unwrap();
    symlink("source/absent", path("dangling")).unwrap();
    let inside = "lies in SOURCE or below MOUNTPOINT";
    for (file, why) in [
        ("film", "film: exists already and is no journal"),
        ("source/film", inside),
        ("source/new", inside),
        ("link", inside),
        ("way/new", inside),
        ("dangling", inside),
        ("point/j", inside),
    ] {
        for option in ["--journal", "--record"] {
            let why = match (file, option) {
                ("film", "--record") => "film: exists already: a record is a new file",
                _ => why,
            };
            let said = refused(folder.path(), &[option, &path(file)]);
            assert!(said.contains(why), "{said}");
        }
    }
    symlink(path("both"), path("to-both")).unwrap();
    for record in ["both", "to-both"] {
        let flags = ["--journal", &path("both"), "--record", &path(record)];
        let said = refused(folder.path(), &flags);
        assert!(said.contains("is written to already"), "{said}");
        assert!(!fs::exists(path("both")).unwrap());
    }
    for (name, count) in [("source", 1), ("point", 0)] {
        assert_eq!(fs::read_dir(path(name)).unwrap().count(), count, "{name}");
    }
    for name in ["film", "source/film"] {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), "film");
    }
}

#[test]
fn a_control_socket_that_the_mount_would_hide_is_refused() {
    let folder = folder();
    let point = folder.path().join("point");
    symlink(&point, folder.path().join("way")).unwrap();
    for name in ["point/control", "way/control"] {
        let socket = folder.path().join(name);
        let said = refused(folder.path(), &["--control", socket.to_str().unwrap()]);
        assert!(said.contains("control: lies below MOUNTPOINT"), "{said}");
    }
    assert_eq!(fs::read_dir(point).unwrap().count(), 0);
}

#[test]
fn a_mount_that_fails_leaves_its_files_as_they_were() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let journal = "forerun-journal 5\nof before\n";
    fs::write(path("old"), journal).unwrap();
    for flags in [
        ["--metrics", "1.2.3.4:1"],
        ["--metrics", &taken],
        ["--control", &path("old")],
        ["--profile", "missing"],
        ["--backend", "nosuch"],
    ] {
        for files in [
            ["--journal", "new"],
            ["--journal", "old"],
            ["--record", "new"],
        ] {
            let files = [files[0], &path(files[1])];
            refused(folder.path(), &[&flags[..], &files].concat());
            assert!(!Path::new(&path("new")).exists(), "{flags:?} {files:?}");
            assert_eq!(
                fs::read_to_string(path("old")).unwrap(),
                journal,
                "{flags:?}"
            );
        }
    }
}

#[test]
fn a_mount_point_in_use_is_refused_and_goes_on() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    fs::write(mounted.source("a"), "a").unwrap();
    let (source, point) = (mounted.source(""), mounted.point(""));
    let (code, said) = forerun(&["mount".as_ref(), source.as_ref(), point.as_ref()]);
    assert!(
        code == 2 && said.contains("something is mounted here already"),
        "{said}"
    );
    assert_eq!(fs::read(mounted.point("a")).unwrap(), b"a");
}

#[test]
fn a_control_socket_in_use_or_not_a_socket_is_refused() {
    let folder = folder();
    let (socket, file) = (folder.path().join("control"), folder.path().join("file"));
    fs::write(&file, "").unwrap();
    fs::create_dir(folder.path().join("other")).unwrap();
    let Some(mounted) = Mounted::of(folder, &["--control", socket.to_str().unwrap()]) else {
        return;
    };
    let other = mounted.folder.path().join("other");
    for (path, why) in [
        (&socket, "another mount or watch listens here"),
        (&file, "is there, and is no socket"),
    ] {
        let (code, said) = forerun(&[
            "mount".as_ref(),
            "--control".as_ref(),
            path.as_ref(),
            mounted.source("").as_ref(),
            other.as_ref(),
        ]);
        assert!(code == 2 && said.contains(why), "{said}");
    }
    for command in ["ctl", "top"] {
        let (code, said) = forerun(&[
            command.as_ref(),
            file.as_ref(),
            (if command == "ctl" { "stats" } else { "--once" }).as_ref(),
        ]);
        assert!(
            code == 2 && said.contains("no mount or watch listens here"),
            "{said}"
        );
    }
}

#[test]
fn a_mount_with_a_socket_of_its_own_is_found_by_that_socket_and_the_refusal_says_so() {
    let folder = folder();
    let socket = folder.path().join("control");
    let Some(mounted) = Mounted::of(folder, &["--control", socket.to_str().unwrap()]) else {
        return;
    };
    let (folder, run) = (mounted.folder.path(), mounted.folder.path().join("run"));
    for (path, code) in [(&*mounted.point(""), 2), (folder, 2), (&*socket, 0)] {
        let output = Command::new(cargo_bin!("forerun"))
            .arg("ctl")
            .args([path, Path::new("limits")])
            .env("FORERUN_RUNTIME_DIR", &run)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        let names = |word: &str| code == 0 || said.contains(word);
        assert!(
            names(run.to_str().unwrap()) && names("--control SOCKET"),
            "{said}"
        );
    }
}

/// The memory, in MiB, that a refusal names as the least.
fn least_of(said: &str) -> u64 {
    let (_, least) = said.split_once("must be at least ").unwrap();
    least.split_once("MiB").unwrap().0.parse().unwrap()
}

#[test]
fn a_running_mount_is_told_to_use_no_less_than_one_can_be_started_with() {
    if !can_mount() {
        return;
    }
    let least = least_of(&refused(folder().path(), &["--memory", "1MiB"]));
    for more in [0, 1, 2, 3, 100] {
        let memory = format!("{}MiB", least + more);
        let folder = folder();
        let control = folder.path().join("control").display().to_string();
        let flags = ["--memory", &memory, "--control", &control];
        let Some(_mounted) = Mounted::of(folder, &flags) else {
            return;
        };
        let set = |mib: u64| {
            let size = format!("{mib}MiB");
            let words = ["ctl", &control, "set", "--memory", &size];
            forerun(&words.map(AsRef::as_ref))
        };
        let (code, said) = set(least - 1);
        assert_eq!(code, 2, "{memory}: {said}");
        let named = format!("--memory {}MiB: must be at least ", least - 1);
        let most = format!("at most {memory}");
        assert!(said.contains(&named) && said.contains(&most), "{said}");
        let own = least_of(&said);
        assert!(own >= least && own <= least + more, "{memory}: {said}");
        for (mib, code) in [
            (own - 1, 2),
            (own, 0),
            (least + more, 0),
            (least + more + 1, 2),
        ] {
            let (ended, said) = set(mib);
            assert_eq!(ended, code, "{memory}, {mib}: {said}");
        }
    }
}
