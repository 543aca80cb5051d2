//! Limits of the daemon's process: few descriptors, little address space, a full disk for the
//! journal. The mount works within them, or names the missing resource before it mounts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::silent::apart;
use super::wait::PATIENCE;
use super::{Mounted, bytes, can_mount, eventually, folder, forerun, is_mounted, run, wait};

/// A daemon of this folder under a limit of the shell.
fn limited(folder: &Path, limit: &str, flags: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"])
        .arg(cargo_bin!("forerun"))
        .args(["mount", "--memory", "32MiB"])
        .args(flags)
        .args([folder.join("source"), folder.join("point")])
        .stdin(Stdio::null());
    command
}

/// A mount under a limit of the shell; none if this machine cannot.
fn mounted(folder: TempDir, limit: &str) -> Option<Mounted> {
    if !can_mount() {
        return None;
    }
    let point = folder.path().join("point");
    let daemon: Child = limited(folder.path(), limit, &["--foreground"])
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &daemon, || {
        is_mounted(&point) && rustix::fs::statfs(&point).is_ok()
    });
    Some(Mounted { folder, daemon })
}

/// A tree of so many folders with a file each.
fn tree(folders: usize) -> TempDir {
    let folder = folder();
    for number in 0..folders {
        let path = folder.path().join(format!("source/d{number}"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), number.to_string()).unwrap();
    }
    folder
}

/// Walks a tree, then reads each file and lists each folder of it.
#[allow(clippy::print_stdout, reason = "part of tests")]
fn a_tree_is_walked(folders: usize, descriptors_max: &str, threads: usize) {
    let limit = format!("-n {descriptors_max}");
    let Some(mounted) = mounted(tree(folders), &limit) else {
        return;
    };
    let walked = run("find", &[mounted.point("").as_ref()]);
    assert!(walked.status.success());
    let names = walked.stdout.split(|byte| *byte == b'\n').count();
    assert_eq!(names, 2 * folders + 2);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let mounted = &mounted;
            scope.spawn(move || {
                for number in (thread..folders).step_by(threads) {
                    let path = mounted.point(format!("d{number}"));
                    let content = fs::read_to_string(path.join("x"));
                    assert_eq!(content.unwrap(), number.to_string());
                    assert_eq!(fs::read_dir(path).unwrap().count(), 1);
                }
            });
        }
    });
}

#[test]
fn more_folders_than_descriptors_are_walked_and_read() {
    a_tree_is_walked(1500, "1024", 8);
}

#[test]
fn a_mount_works_with_very_few_descriptors() {
    a_tree_is_walked(200, "64", 4);
    a_tree_is_walked(50, "20", 1);
}

/// The mount in the background is refused for this reason, and leaves nothing behind.
fn is_refused(folder: &TempDir, limit: &str, reason: &str) {
    let mut command = limited(folder.path(), limit, &[]);
    let output: Output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{limit}: {said}");
    assert!(said.contains(reason), "{limit}: {said}");
    assert!(!is_mounted(&folder.path().join("point")));
}

#[test]
fn too_little_of_something_is_said_before_anything_is_mounted() {
    if !can_mount() {
        return;
    }
    let folder = tree(1);
    is_refused(&folder, "-n 16", "ulimit -n");
    for kib in [150_000, 200_000, 400_000] {
        is_refused(&folder, &format!("-v {kib}"), "ulimit -v");
    }
}

#[test]
fn a_mount_that_address_space_suffices_for_serves() {
    let Some(mounted) = mounted(tree(10), "-v 1000000") else {
        return;
    };
    let walked = run("find", &[mounted.point("").as_ref()]);
    assert!(walked.status.success());
    assert_eq!(fs::read_to_string(mounted.point("d3/x")).unwrap(), "3");
}

#[test]
fn a_mount_bound_below_its_own_source_is_not_looked_into() {
    let folder = tree(3);
    let point = folder.path().join("source/m");
    fs::create_dir(&point).unwrap();
    fs::create_dir(folder.path().join("source/b")).unwrap();
    if !can_mount() {
        return;
    }
    fs::remove_dir(folder.path().join("point")).unwrap();
    std::os::unix::fs::symlink(&point, folder.path().join("point")).unwrap();
    let daemon = limited(folder.path(), "-n 1024", &["--foreground"])
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &daemon, || is_mounted(&point));
    let mounted = Mounted { folder, daemon };
    let bound = mounted.source("b");
    let bind = run(
        "mount",
        &["--bind".as_ref(), point.as_ref(), bound.as_ref()],
    );
    assert!(bind.status.success());
    let root = point.clone();
    let walk = apart(move || run("find", &[root.as_ref(), "-size".as_ref(), "-1M".as_ref()]));
    let walked = walk.recv_timeout(PATIENCE);
    let daemon = rustix::process::Pid::from_raw(mounted.daemon.id().cast_signed()).unwrap();
    if walked.is_err() {
        // Nothing else ends it.
        rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
    }
    let open = fs::read_dir(point.join("b")).map(Iterator::count);
    run("umount", &["-l".as_ref(), bound.as_ref()]);
    let walked = walked.expect("find ends");
    let said = String::from_utf8_lossy(&walked.stderr);
    assert!(said.contains("symbolic links"), "{said}");
    let error = open.unwrap_err();
    assert_eq!(
        rustix::io::Errno::from_io_error(&error),
        Some(rustix::io::Errno::LOOP)
    );
    assert_eq!(fs::read_to_string(point.join("d1/x")).unwrap(), "1");
    run("umount", &["-l".as_ref(), point.as_ref()]);
    drop(mounted);
}

#[test]
fn a_file_larger_than_blocks_can_be_numbered_is_refused_as_too_large() {
    let folder = folder();
    if !can_mount() {
        return;
    }
    let source = folder.path().join("source");
    let words = ["-t", "tmpfs", "none"].map(str::as_ref);
    let tmpfs = run("mount", &[words[0], words[1], words[2], source.as_ref()]);
    if !tmpfs.status.success() {
        crate::skipped::skipped("needs tmpfs");
        return;
    }
    for (name, tebibytes) in [("fits", 15), ("huge", 17)] {
        let file = fs::File::create(source.join(name)).unwrap();
        file.set_len(tebibytes << 40).unwrap();
    }
    let mounted = Mounted::of(folder, &[]).unwrap();
    let mut byte = [1];
    let file = fs::File::open(mounted.point("fits")).unwrap();
    std::os::unix::fs::FileExt::read_at(&file, &mut byte, (15 << 40) - 1).unwrap();
    assert_eq!(byte, [0]);
    let error = fs::File::open(mounted.point("huge")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
    assert_eq!(
        fs::metadata(mounted.point("huge")).unwrap().size(),
        17 << 40
    );
    drop(file);
    drop(mounted);
    run("umount", &["-l".as_ref(), source.as_ref()]);
}

/// A journal on a file system of a few pages, and a mount in the background, without a terminal.
#[test]
fn a_journal_whose_disk_is_full_is_reported_by_a_mount_in_the_background() {
    let folder = folder();
    if !can_mount() {
        return;
    }
    let (disk, control) = (folder.path().join("disk"), folder.path().join("control"));
    fs::create_dir(&disk).unwrap();
    let words = ["-t", "tmpfs", "-o", "size=64k", "none"].map(str::as_ref);
    let tmpfs = run("mount", &[&words[..], &[disk.as_ref()]].concat());
    if !tmpfs.status.success() {
        crate::skipped::skipped("needs tmpfs");
        return;
    }
    fs::write(folder.path().join("source/a"), bytes(20_000_000, 1)).unwrap();
    let journal = disk.join("journal");
    let flags = [
        "--journal",
        journal.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
        "--passthrough",
        "never",
    ];
    let started = limited(folder.path(), "-n 1024", &flags).status().unwrap();
    assert!(started.success());
    let point = folder.path().join("point");
    let stats = || {
        let (_, said) = forerun(&["ctl".as_ref(), control.as_os_str(), "stats".as_ref()]);
        serde_json::from_str::<serde_json::Value>(&said).unwrap()
    };
    assert_eq!(stats()["journal_error"], serde_json::Value::Null);
    eventually("the journal's disk is full", || {
        // Data is unharmed, again and again.
        assert!(fs::read(point.join("a")).unwrap() == bytes(20_000_000, 1));
        let file = fs::File::options()
            .write(true)
            .open(folder.path().join("source/a"));
        file.unwrap()
            .set_modified(std::time::SystemTime::now())
            .unwrap();
        !stats()["journal_error"].is_null()
    });
    let error = stats()["journal_error"].to_string();
    assert!(error.contains("No space left"), "{error}");
    run("umount", &["-l".as_ref(), point.as_ref()]);
    eventually("the daemon ends", || !control.exists());
    run("umount", &["-l".as_ref(), disk.as_ref()]);
}

#[test]
fn names_of_trusted_attributes_are_shown_to_the_privileged_only() {
    use std::os::unix::process::CommandExt;
    let folder = folder();
    let path = folder.path().join("source/a");
    fs::write(&path, "a").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    for name in ["user.a", "trusted.secret"] {
        if let Err(error) = rustix::fs::setxattr(&path, name, b"1", flags) {
            crate::skipped::skipped(format!("needs extended attributes: {error}"));
            return;
        }
    }
    let Some(mounted) = Mounted::of(folder, &["--allow-other"]) else {
        return;
    };
    let names = |path: &Path, user: u32| {
        let script = "import os, sys; print(sorted(os.listxattr(sys.argv[1])))";
        let mut python = Command::new("python3");
        let output = python
            .args(["-c", script])
            .arg(path)
            .uid(user)
            .gid(user)
            .output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    let Ok(all) = names(&point, 0) else {
        crate::skipped::skipped("needs python3");
        return;
    };
    assert_eq!(all.trim(), "['trusted.secret', 'user.a']");
    assert_eq!(names(&point, 54_321).unwrap().trim(), "['user.a']");
    for user in [0, 54_321] {
        assert_eq!(names(&point, user).unwrap(), names(&source, user).unwrap());
    }
}

#[test]
fn a_mount_that_nobody_reads_has_few_threads_and_descriptors() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    fs::read_dir(mounted.point("")).unwrap().count();
    let of = |what: &str| {
        let entries = fs::read_dir(format!("/proc/{}/{what}", mounted.daemon.id())).unwrap();
        entries.count()
    };
    // Sixteen take requests, each by a descriptor of its own. One answers; others begin when it is
    // busy. The rest waits: for the end of the session, a signal, a completion, a change, a client, the time,
    // pages to drop. Those that look at files once a second end at once.
    eventually("few threads and descriptors", || {
        let (threads, descriptors) = (of("task"), of("fd"));
        println!("{threads} threads, {descriptors} descriptors");
        threads <= 16 + 1 + 9 && descriptors <= 16 + 16
    });
}
