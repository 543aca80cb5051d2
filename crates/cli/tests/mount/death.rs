//! Ends: of readers, of the daemon, of the source, clean and otherwise.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;

use super::{
    Mounted, bytes, eventually, folder, forerun, has_fusermount, is_mounted, run, skipped, start,
    wait,
};

/// How long the daemon waits for open files after a signal: see `docs/MOUNT.md`.
const GRACE: Duration = Duration::from_secs(5);

fn with_file() -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(3_000_000, 1)).unwrap();
    folder
}

pub(crate) fn open_files(control: &std::path::Path) -> usize {
    let (code, said) = forerun(&["ctl".as_ref(), control.as_ref(), "stats".as_ref()]);
    assert_eq!(code, 0, "{said}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    report["open_files"].as_array().unwrap().len()
}

#[test]
fn a_killed_reader_leaves_nothing_open() {
    let folder = with_file();
    let control = folder.path().join("control");
    let slow = [
        "--emulate",
        "switching=20ms,rate=1MB/s",
        "--control",
        control.to_str().unwrap(),
    ];
    let Some(mounted) = Mounted::of(folder, &slow) else {
        return;
    };
    let mut reader = Command::new("cat")
        .arg(mounted.point("a"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    reader
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 10_000])
        .unwrap();
    assert_eq!(open_files(&control), 1);
    reader.kill().unwrap();
    reader.wait().unwrap();
    eventually("the file is closed", || open_files(&control) == 0);
    let file = File::open(mounted.point("a")).unwrap();
    let mut buffer = [0; 100];
    file.read_exact_at(&mut buffer, 2_000_000).unwrap();
    assert_eq!(buffer, bytes(3_000_000, 1)[2_000_000..2_000_100]);
}

#[test]
fn a_killed_daemon_leaves_readers_an_error_and_can_be_started_again() {
    let folder = with_file();
    let control = folder.path().join("control");
    let socket = ["--control", control.to_str().unwrap()];
    let flags = [&socket[..], &["--passthrough", "never"]].concat();
    let Some(mut mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let file = File::open(mounted.point("a")).unwrap();
    mounted.daemon.kill().unwrap();
    mounted.daemon.wait().unwrap();
    let gone = |error: std::io::Error| {
        let errno = Errno::from_io_error(&error);
        assert!(
            matches!(errno, Some(Errno::NOTCONN | Errno::CONNABORTED)),
            "{error}"
        );
    };
    gone(file.read_at(&mut [0; 10], 1_000_000).unwrap_err());
    // The kernel's cache of names and attributes holds for another second.
    eventually("the attributes go", || {
        fs::metadata(mounted.point("a")).is_err()
    });
    gone(fs::metadata(mounted.point("a")).unwrap_err());
    mounted.daemon = start(mounted.folder.path(), &flags);
    assert!(fs::read(mounted.point("a")).unwrap() == bytes(3_000_000, 1));
    // The kernel tells of it after `close` has returned.
    eventually("the file is closed", || open_files(&control) == 0);
    let point = mounted.point("");
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    assert!(!is_mounted(&point), "the dead mount is still there");
    let left: Vec<_> = fs::read_dir(mounted.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "source" && name != "point")
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn signals_and_fusermount_end_a_mount_cleanly() {
    for end in ["TERM", "INT", "fusermount3", "umount"] {
        if end == "fusermount3" && !has_fusermount() {
            skipped("no fusermount3");
            continue;
        }
        let Some(mut mounted) = Mounted::of(with_file(), &[]) else {
            return;
        };
        let point = mounted.folder.path().join("point");
        assert!(fs::read(mounted.point("a")).unwrap().len() == 3_000_000);
        match end {
            "TERM" => mounted.signal(Signal::TERM),
            "INT" => mounted.signal(Signal::INT),
            "umount" => drop(run("umount", &[point.as_ref()])),
            _ => drop(run("fusermount3", &["-u".as_ref(), point.as_ref()])),
        }
        assert!(mounted.ended().success(), "{end}");
        assert!(!is_mounted(&point), "{end}");
        assert_eq!(fs::read_dir(&point).unwrap().count(), 0);
    }
}

#[test]
fn an_open_file_survives_the_signal_for_a_while() {
    let Some(mut mounted) = Mounted::of(with_file(), &[]) else {
        return;
    };
    let file = File::open(mounted.point("a")).unwrap();
    let point = mounted.folder.path().join("point");
    let signalled = Instant::now();
    mounted.signal(Signal::TERM);
    wait::mounts("the path is free", || !is_mounted(&point));
    let mut buffer = [0; 100];
    match file.read_exact_at(&mut buffer, 2_000_000) {
        Ok(()) => assert_eq!(buffer, bytes(3_000_000, 1)[2_000_000..2_000_100]),
        // Where this thread came late the while is over, but never before its time.
        Err(error) => {
            assert!(signalled.elapsed() >= GRACE, "{error}");
            skipped("the machine is too busy to read within the time of grace");
        }
    }
    drop(file);
    assert!(mounted.ended().success());
}

#[test]
fn the_journal_of_a_mount_replays() {
    let folder = with_file();
    fs::write(folder.path().join("source/b"), bytes(40_000_000, 2)).unwrap();
    let journal = folder.path().join("journal");
    let flags = ["--journal", journal.to_str().unwrap(), "--memory", "16MiB"];
    let Some(mut mounted) = Mounted::of(folder, &flags[..2]) else {
        return;
    };
    std::thread::scope(|scope| {
        for name in ["a", "b", "a", "b"] {
            let path = mounted.point(name);
            scope.spawn(move || fs::read(path).unwrap());
        }
    });
    fs::write(mounted.source("a"), "changed").unwrap();
    assert_eq!(fs::read(mounted.point("a")).unwrap(), b"changed");
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    let (code, said) = forerun(&["replay".as_ref(), journal.as_ref()]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("the same decisions"), "{said}");
}

#[test]
fn a_source_that_was_unmounted_lazily_is_served_on() {
    let folder = folder();
    let source = folder.path().join("source");
    if !super::can_mount() {
        return;
    }
    let mounted = run(
        "mount",
        &[
            "-t".as_ref(),
            "tmpfs".as_ref(),
            "none".as_ref(),
            source.as_ref(),
        ],
    );
    if !mounted.status.success() {
        skipped("no tmpfs");
        return;
    }
    fs::write(source.join("a"), "a").unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    run("umount", &["-l".as_ref(), source.as_ref()]);
    assert_eq!(fs::read(mounted.point("a")).unwrap(), b"a");
}

/// The source of one mount is another one, whose daemon dies, like a network file system whose
/// server is gone for good.
#[test]
fn a_source_that_died_gives_errors_and_never_the_end_of_a_file() {
    let below = folder();
    let content = bytes(30_000_000, 2);
    fs::write(below.path().join("source/a"), &content).unwrap();
    let slow = ["--emulate", "switching=1ms,rate=20MB/s"];
    let Some(mut below) = Mounted::of(below, &slow) else {
        return;
    };
    let above = folder();
    fs::remove_dir(above.path().join("source")).unwrap();
    std::os::unix::fs::symlink(below.point(""), above.path().join("source")).unwrap();
    let Some(mut above) = Mounted::of(above, &[]) else {
        return;
    };
    let mut file = File::open(above.point("a")).unwrap();
    let mut begin = vec![0; 100_000];
    file.read_exact(&mut begin).unwrap();
    assert!(begin == content[..100_000]);
    below.daemon.kill().unwrap();
    below.daemon.wait().unwrap();
    let gone = |error: &std::io::Error| {
        let errno = Errno::from_io_error(error);
        let known = [Errno::NOTCONN, Errno::CONNABORTED, Errno::IO];
        assert!(errno.is_some_and(|errno| known.contains(&errno)), "{error}");
    };
    let mut rest = Vec::new();
    gone(&file.read_to_end(&mut rest).unwrap_err());
    assert!(
        rest == content[100_000..100_000 + rest.len()],
        "bytes differ"
    );
    gone(&fs::metadata(above.point("b")).unwrap_err());
    gone(&File::open(above.point("a")).unwrap_err());
    above.signal(Signal::TERM);
    drop(file);
    assert!(above.ended().success());
}
