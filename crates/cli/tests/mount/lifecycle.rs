//! The daemon's own mount and no other, its end, and clients and files that must not hold it up.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use snapbox::cmd::cargo_bin;

use super::{
    Mounted, bytes, can_mount, eventually, folder, forerun, is_mounted, run, skipped, start_of,
    wait,
};

/// The types of the mounts on a path, the lowest first.
fn kinds_on(point: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let on = |line: &&str| line.split(' ').nth(4).map(Path::new) == Some(point);
    let kind = |line: &str| {
        line.split(" - ")
            .nth(1)?
            .split(' ')
            .next()
            .map(str::to_owned)
    };
    mounts.lines().filter(on).filter_map(kind).collect()
}

fn mount_tmpfs(point: &Path) {
    let words = ["-t", "tmpfs", "none"].map(OsStr::new);
    let mounted = run("mount", &[&words[..], &[point.as_ref()]].concat());
    assert!(mounted.status.success(), "{mounted:?}");
}

fn take_off(point: &Path) {
    let taken = run("umount", &["-l".as_ref(), point.as_ref()]);
    assert!(taken.status.success(), "{taken:?}");
}

#[test]
fn a_signal_takes_off_no_mount_that_came_after_ours() {
    let Some(mut mounted) = Mounted::new(&[]) else {
        return;
    };
    let point = mounted.folder.path().join("point");
    fs::write(mounted.source("a"), "a").unwrap();
    // Open files keep the daemon when its mount is taken off.
    let open = File::open(mounted.point("a")).unwrap();
    take_off(&point);
    mount_tmpfs(&point);
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    assert_eq!(kinds_on(&point), ["tmpfs"]);
    drop(open);
    take_off(&point);
}

#[test]
fn a_signal_leaves_a_mount_that_lies_over_ours() {
    let Some(mut mounted) = Mounted::new(&[]) else {
        return;
    };
    let point = mounted.folder.path().join("point");
    mount_tmpfs(&point);
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    assert_eq!(kinds_on(&point), ["fuse.forerun", "tmpfs"]);
    take_off(&point);
    // The next mount clears away the rest of ours.
    mounted.daemon = super::start(mounted.folder.path(), &[]);
    assert_eq!(kinds_on(&point), ["fuse.forerun"]);
}

#[test]
fn a_mount_that_is_in_use_when_it_is_cut_off_leaves_its_path_and_fails() {
    let Some(mut mounted) = Mounted::new(&[]) else {
        return;
    };
    let point = mounted.folder.path().join("point");
    fs::write(mounted.source("a"), "a").unwrap();
    let held = File::open(mounted.point("a")).unwrap();
    // The kernel cuts the connection first, and then finds the open file.
    let forced = rustix::mount::unmount(&point, UnmountFlags::FORCE);
    let ended = mounted.ended();
    assert_eq!(kinds_on(&point), [""; 0], "{forced:?}");
    assert_eq!(ended.code(), Some(1), "{forced:?}");
    drop(held);
}

#[test]
fn a_mount_whose_channel_does_not_arrive_is_taken_off() {
    const STRANGER: u32 = 54_321;
    if !can_mount() {
        return;
    }
    if fs::metadata("/dev/fuse").unwrap().mode() & 0o006 != 0o006 {
        return skipped("needs a /dev/fuse that users may open");
    }
    let folder = folder();
    let at = |name| folder.path().join(name);
    fs::copy(cargo_bin!("forerun"), at("forerun")).unwrap();
    // Says that it mounted, and passes nothing.
    fs::write(at("fusermount3"), "#!/bin/sh\necho \"$@\" >> \"$CALLS\"\n").unwrap();
    fs::set_permissions(at("fusermount3"), Permissions::from_mode(0o755)).unwrap();
    fs::write(at("calls"), "").unwrap();
    for name in ["point", "calls"] {
        chown(at(name), Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = Command::new(at("forerun"))
        .args(["mount", "--foreground", "--memory", "16MiB"])
        .args([at("source"), at("point")])
        .env("PATH", path)
        .env("CALLS", at("calls"))
        .uid(STRANGER)
        .gid(STRANGER)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("fusermount3 passed no channel"), "{said}");
    let calls = fs::read_to_string(at("calls")).unwrap();
    let last = format!("-u -z -- {}", at("point").display());
    assert_eq!(calls.lines().nth(1), Some(&*last), "{calls}");
}

#[test]
fn a_folder_above_that_is_swapped_leads_to_no_other_mount() {
    for by_link in [false, true] {
        let folder = folder();
        let above = folder.path().join("above");
        let (point, moved) = (above.join("point"), folder.path().join("moved"));
        fs::create_dir_all(&point).unwrap();
        fs::remove_dir(folder.path().join("point")).unwrap();
        symlink(&point, folder.path().join("point")).unwrap();
        if !can_mount() {
            return;
        }
        let other = folder.path().join("other");
        fs::create_dir_all(other.join("point")).unwrap();
        mount_tmpfs(&other.join("point"));
        let daemon = Command::new(cargo_bin!("forerun"))
            .args(["mount", "--foreground", "--memory", "16MiB"])
            .args([&folder.path().join("source"), &point])
            .env("FORERUN_RUNTIME_DIR", folder.path().join("run"))
            .spawn()
            .unwrap();
        wait::mounts_while("the mount appears", &daemon, || is_mounted(&point));
        // The folder above is another user's, for all that root knows.
        fs::rename(&above, &moved).unwrap();
        match by_link {
            true => symlink(&other, &above).unwrap(),
            false => fs::rename(&other, &above).unwrap(),
        }
        let there = above.join("point").canonicalize().unwrap();
        let mut mounted = Mounted { folder, daemon };
        mounted.signal(Signal::TERM);
        assert!(mounted.ended().success());
        assert_eq!(kinds_on(&there), ["tmpfs"], "by link: {by_link}");
        assert!(kinds_on(&moved.join("point")).is_empty(), "it is gone");
        take_off(&there);
    }
}

#[test]
fn mounts_at_once_are_one_on_their_path() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let mount = || {
        Command::new(cargo_bin!("forerun"))
            .args(["mount", "--memory", "16MiB"])
            .args([path("source"), path("point")])
            .env("FORERUN_RUNTIME_DIR", path("run"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    for after_a_dead_one in [false, true].repeat(15) {
        if after_a_dead_one {
            let mut dead = super::start(folder.path(), &[]);
            dead.kill().unwrap();
            dead.wait().unwrap();
        }
        let started: Vec<Child> = (0..6).map(|_| mount()).collect();
        let ended = started.into_iter().map(|mut child| {
            let ended = wait::end(&mut child).expect("a mount works or does not");
            ended.code()
        });
        let mut codes: Vec<_> = ended.collect();
        codes.sort_unstable();
        assert_eq!(
            codes,
            [0, 2, 2, 2, 2, 2].map(Some),
            "dead: {after_a_dead_one}"
        );
        assert_eq!(
            kinds_on(&path("point")).len(),
            1,
            "dead: {after_a_dead_one}"
        );
        let taken = forerun(&["umount".as_ref(), path("point").as_ref()]);
        assert_eq!(taken.0, 0, "{}", taken.1);
    }
}

#[test]
fn a_closed_terminal_ends_a_mount_cleanly() {
    if !can_mount() {
        return;
    }
    for signal in [Signal::HUP, Signal::QUIT] {
        // Also where the tests run without a terminal, with both ignored.
        let mut mounted = after(&["env", "--default-signal=HUP,QUIT"]);
        mounted.signal(signal);
        assert!(mounted.ended().success(), "{signal:?}");
        assert!(!is_mounted(&mounted.folder.path().join("point")));
    }
}

/// A mount by a daemon that this program becomes.
fn after(program: &[&str]) -> Mounted {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let daemon = Command::new(program[0])
        .args(&program[1..])
        .arg(cargo_bin!("forerun"))
        .args(["mount", "--foreground", "--memory", "16MiB"])
        .args([path("source"), path("point")])
        .env("FORERUN_RUNTIME_DIR", path("run"))
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &daemon, || is_mounted(&path("point")));
    Mounted { folder, daemon }
}

#[test]
fn a_signal_that_is_ignored_ends_nothing() {
    if !can_mount() {
        return;
    }
    let mut mounted = after(&["sh", "-c", "trap '' HUP && exec \"$@\"", "sh"]);
    mounted.signal(Signal::HUP);
    fs::write(mounted.source("a"), "a").unwrap();
    assert_eq!(fs::read(mounted.point("a")).unwrap(), b"a");
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
}

#[test]
fn a_source_with_a_long_path_is_mounted() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let names = ["x".repeat(200), "y".repeat(200)];
    let long = names
        .iter()
        .fold(folder.path().to_owned(), |at, name| at.join(name));
    fs::create_dir_all(&long).unwrap();
    fs::write(long.join("a"), "a").unwrap();
    let daemon = start_of(&long, folder.path(), &[], &[]);
    let mounted = Mounted { folder, daemon };
    assert_eq!(fs::read(mounted.point("a")).unwrap(), b"a");
}

#[test]
fn a_mount_of_another_process_ends_with_it() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let mut daemon = Command::new(cargo_bin!("forerun"))
        .args([
            "mount",
            "--foreground",
            "--until-input-ends",
            "--memory",
            "16MiB",
        ])
        .args([path("source"), path("point")])
        .env("FORERUN_RUNTIME_DIR", path("run"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &daemon, || is_mounted(&path("point")));
    // As the kernel does when a process is killed.
    drop(daemon.stdin.take());
    assert!(wait::end(&mut daemon).unwrap().success());
    assert!(!is_mounted(&path("point")));
}

/// Holds write leases on files `0` to `count`, until it is killed.
fn holds_leases(folder: &Path, count: usize) -> Option<Child> {
    const PROGRAM: &str = "
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = [os.open(f'{sys.argv[1]}/{i}', os.O_RDWR) for i in range(int(sys.argv[2]))]
for fd in held: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()";
    let child = Command::new("python3")
        .args(["-c", PROGRAM])
        .arg(folder)
        .arg(count.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    (line == "held\n").then_some(child)
}

#[test]
fn leases_of_other_programs_hold_up_their_own_files_only() {
    const LEASES: usize = 20;
    for flags in [&[][..], &["--unchanging"], &["--next-file", "none"]] {
        let folder = folder();
        for number in 0..LEASES {
            fs::write(folder.path().join(format!("source/{number}")), "leased").unwrap();
        }
        fs::write(folder.path().join("source/other"), "other").unwrap();
        let Some(mut holder) = holds_leases(&folder.path().join("source"), LEASES) else {
            skipped("no python3, or no leases on this file system");
            return;
        };
        let Some(mounted) = Mounted::of(folder, flags) else {
            return;
        };
        let read = |number: usize| {
            Command::new("cat")
                .arg(mounted.point(number.to_string()))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut readers: Vec<Child> = (0..LEASES).map(read).collect();
        // A lease is being broken as soon as the kernel lists it so.
        const LANE: usize = 8;
        eventually("as many leases are asked for as a lane has threads", || {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks
                .lines()
                .filter(|line| line.contains("BREAKING"))
                .count()
                >= LANE
        });
        assert_eq!(fs::read(mounted.point("other")).unwrap(), b"other");
        let open = |reader: &mut Child| reader.try_wait().unwrap().is_none();
        assert!(readers.iter_mut().all(open), "the leases hold: {flags:?}");
        // A reader that is killed does not wait for its lease.
        let mut killed = readers.swap_remove(0);
        killed.kill().unwrap();
        assert!(!wait::end(&mut killed).unwrap().success());
        assert!(readers.iter_mut().all(open), "the leases hold: {flags:?}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        for mut reader in readers {
            let mut said = String::new();
            let mut output = reader.stdout.take().unwrap();
            output.read_to_string(&mut said).unwrap();
            assert!(wait::end(&mut reader).unwrap().success());
            assert_eq!(said, "leased");
        }
    }
}

#[test]
fn a_slow_client_of_the_control_socket_holds_up_itself() {
    // Five minutes of them, of which the test needs the first.
    const BYTES: u32 = 3000;
    let folder = folder();
    let control = folder.path().join("control");
    let Some(_mounted) = Mounted::of(folder, &["--control", control.to_str().unwrap()]) else {
        return;
    };
    let sent = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        let (control, sent) = (&control, &sent);
        scope.spawn(move || {
            let mut slow = UnixStream::connect(control).unwrap();
            for _ in 0..BYTES {
                // It is cut off at its deadline.
                if slow.write_all(b" ").is_err() {
                    sent.store(0, Ordering::Relaxed);
                }
                sent.fetch_add(1, Ordering::Relaxed);
                let _ = begin.send(());
                if told.recv_timeout(Duration::from_millis(100)).is_ok() {
                    return;
                }
            }
        });
        begun.recv().unwrap();
        let idle: Vec<_> = (0..100)
            .map(|_| UnixStream::connect(control).unwrap())
            .collect();
        let (code, said) = forerun(&["ctl".as_ref(), control.as_ref(), "limits".as_ref()]);
        assert_eq!(code, 0, "{said}");
        assert!(sent.load(Ordering::Relaxed) < BYTES, "it had to end first");
        tell.send(()).unwrap();
        drop(idle);
    });
}

#[test]
fn a_limit_of_the_size_of_files_ends_the_journal_and_not_the_mount() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    for number in 0..2000 {
        fs::write(path("source").join(number.to_string()), bytes(5000, number)).unwrap();
    }
    let mut daemon = Command::new("sh")
        .args(["-c", "ulimit -f 16 && ulimit -c 0 && exec \"$@\"", "sh"])
        .arg(cargo_bin!("forerun"))
        .args([
            "mount",
            "--foreground",
            "--memory",
            "16MiB",
            "--passthrough",
            "never",
        ])
        .args(["--control".as_ref(), path("control").as_os_str()])
        .args(["--journal".as_ref(), path("journal").as_os_str()])
        .args([path("source"), path("point")])
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &daemon, || is_mounted(&path("point")));
    // Blocks of 512 bytes, or 1024 for some shells.
    let limit = 16 * 1024;
    let mut number = 0;
    eventually("the journal is full", || {
        let file = path("point").join((number % 2000).to_string());
        assert_eq!(fs::read(file).unwrap(), bytes(5000, number % 2000));
        number += 1;
        let (_, said) = forerun(&["ctl".as_ref(), path("control").as_ref(), "stats".as_ref()]);
        said.contains("\"journal_error\": \"")
    });
    assert!(fs::metadata(path("journal")).unwrap().len() <= limit);
    let signal = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(signal, Signal::TERM).unwrap();
    let ended = wait::end(&mut daemon).unwrap();
    assert_eq!(ended.code(), Some(1), "an error of the journal");
    assert!(!is_mounted(&path("point")));
}

#[test]
fn the_journal_of_a_killed_mount_has_what_it_did() {
    let folder = folder();
    let journal = folder.path().join("journal");
    fs::write(folder.path().join("source/a"), "a").unwrap();
    let Some(mut mounted) = Mounted::of(folder, &["--journal", journal.to_str().unwrap()]) else {
        return;
    };
    assert_eq!(fs::read(mounted.point("a")).unwrap(), b"a");
    eventually("the journal is written", || {
        fs::read_to_string(&journal).unwrap().lines().count() > 1
    });
    mounted.daemon.kill().unwrap();
    mounted.daemon.wait().unwrap();
    let (code, said) = forerun(&["replay".as_ref(), journal.as_ref()]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_runtime_folder_that_was_named_and_is_read_only_is_refused() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let runtime = path("run");
    mount_tmpfs(&path("source"));
    fs::create_dir(&runtime).unwrap();
    mount_tmpfs(&runtime);
    for options in ["remount,mode=0700", "remount,ro"] {
        let words = ["-o".as_ref(), options.as_ref(), runtime.as_ref()];
        assert!(run("mount", &words).status.success());
    }
    let output = Command::new(cargo_bin!("forerun"))
        .arg("mount")
        .args(["source", "point"].map(path))
        .env("FORERUN_RUNTIME_DIR", &runtime)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(runtime.to_str().unwrap()), "{said}");
    assert!(!is_mounted(&path("point")));
    [path("source"), runtime]
        .iter()
        .for_each(|other| take_off(other));
}

/// The kernel gives files of `/proc` no size, and files of `/sys` a page: a mount would show them empty, or cut.
#[test]
fn files_that_hide_their_size_are_read_through_or_refused() {
    for (folder, name) in [
        ("/proc/sys/kernel", "ostype"),
        ("/sys/devices/system/cpu", "online"),
    ] {
        let path = Path::new(folder).join(name);
        let content = fs::read(&path).unwrap();
        let (code, said) = forerun(&["read".as_ref(), path.as_ref()]);
        assert_eq!((code, said.as_bytes()), (0, &content[..]));
        let part = ["read", "--offset", "1", "--length", "2"].map(OsStr::new);
        let (code, said) = forerun(&[&part[..], &[path.as_ref()]].concat());
        assert_eq!((code, said.as_bytes()), (0, &content[1..3]));
        if !can_mount() {
            continue;
        }
        let below = self::folder();
        let daemon = start_of(Path::new(folder), below.path(), &[], &[]);
        let mounted = Mounted {
            folder: below,
            daemon,
        };
        let error = fs::read(mounted.point(name)).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::OPNOTSUPP));
    }
}

#[test]
fn a_position_before_the_beginning_has_neither_data_nor_hole() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    fs::write(mounted.source("a"), "abc").unwrap();
    for path in [mounted.source("a"), mounted.point("a")] {
        let file = File::open(path).unwrap();
        for at in [
            rustix::fs::SeekFrom::Data(u64::MAX),
            rustix::fs::SeekFrom::Hole(u64::MAX),
        ] {
            assert_eq!(rustix::fs::seek(&file, at), Err(Errno::NXIO));
        }
    }
}
