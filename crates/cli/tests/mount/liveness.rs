//! One file system that does not answer delays no other: not its files, not the control socket, not
//! the end of the mount.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::silent::{FILE_BYTES, Silent, apart, content};
use super::wait::PATIENCE;
use super::{eventually, forerun, wait};

/// Reads a file piece by piece to its end; whether a byte is wrong.
fn read_through(path: &Path, file: u64) -> std::io::Result<bool> {
    let open = File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    for at in (0..FILE_BYTES).step_by(buffer.len()) {
        open.read_exact_at(&mut buffer, at)?;
        if buffer != content(file, at, buffer.len()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Readers of so many files of the silent server.
fn readers(silent: &Silent, files: u64) -> Vec<Receiver<std::io::Result<bool>>> {
    let reader = |file: u64| {
        let path = silent.mounted.point(format!("slow/{file}"));
        apart(move || read_through(&path, file))
    };
    (0..files).map(reader).collect()
}

/// The control socket answers.
fn is_answered(socket: &Path) -> bool {
    let socket = socket.to_owned();
    let said = apart(move || forerun(&["ctl".as_ref(), socket.as_os_str(), "stats".as_ref()]));
    said.recv_timeout(PATIENCE).is_ok_and(|(code, _)| code == 0)
}

#[test]
fn a_file_that_changes_and_then_has_no_attributes_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    for answers in 1..=6 {
        let Some(silent) = Silent::new(&["--control", socket.to_str().unwrap()]) else {
            return;
        };
        let file = File::open(silent.mounted.point("slow/1")).unwrap();
        let (begun, begin) = std::sync::mpsc::channel();
        let reader = apart(move || {
            let mut buffer = vec![0; 4096];
            for at in (0..).map(|n| n * 7 % 2000 * 4096) {
                let read = file.read_at(&mut buffer, at);
                let _ = begun.send(());
                if read.is_err() {
                    return;
                }
            }
        });
        begin.recv_timeout(PATIENCE).expect("a read");
        silent.orders().flips.insert(1, answers);
        eventually("a request without answer", || silent.held() > 0);
        silent.good_is_read();
        assert!(is_answered(&socket), "after {answers} answers");
        silent.cut_off();
        let _ = reader.recv_timeout(PATIENCE);
    }
}

/// Readers hang, from an offset on; another file is read, and the control socket answers.
fn hung_readers_hold_up_no_other(flags: &[&str], from: u64, files: u64) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let flags = [flags, &["--control", socket.to_str().unwrap()]].concat();
    let Some(silent) = Silent::new(&flags) else {
        return;
    };
    silent.orders().no_reads_from = Some(from);
    let readers = readers(&silent, files);
    eventually("reads without answer", || silent.held() > 0);
    for _ in 0..3 {
        silent.good_is_read();
    }
    assert!(is_answered(&socket), "{flags:?} {files}");
    silent.cut_off();
    for reader in readers {
        let read = reader.recv_timeout(PATIENCE).expect("every reader ends");
        assert!(read.is_err(), "a file was read to its end");
    }
}

#[test]
fn readers_that_never_get_a_byte_hold_up_no_other_file() {
    for (memory, files) in [("9MiB", 2), ("16MiB", 20), ("64MiB", 40)] {
        hung_readers_hold_up_no_other(&["--memory", memory], 0, files);
    }
}

#[test]
fn readers_that_hang_in_the_middle_of_their_files_hold_up_no_other_file() {
    for (memory, files) in [("9MiB", 2), ("9MiB", 8), ("16MiB", 20), ("64MiB", 40)] {
        hung_readers_hold_up_no_other(&["--memory", memory], 3 << 20, files);
    }
}

#[test]
fn with_the_kernels_ring_too_hung_readers_hold_up_no_other_file() {
    for from in [0, 3 << 20] {
        hung_readers_hold_up_no_other(&["--backend", "uring"], from, 20);
    }
}

#[test]
fn a_server_that_answers_nothing_at_all_holds_up_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let Some(silent) = Silent::new(&["--control", socket.to_str().unwrap()]) else {
        return;
    };
    let path = |name: String| silent.mounted.point(format!("slow/{name}"));
    // Open files, so that closing them is asked of the server, too.
    let open: Vec<_> = (0..20)
        .map(|file| File::open(path(file.to_string())).unwrap())
        .collect();
    silent.orders().silent = true;
    let mut asked = Vec::new();
    for file in 0..40_u64 {
        let (one, other) = (path(file.to_string()), path(format!("{file}")));
        asked.push(apart(move || drop(std::fs::metadata(one))));
        asked.push(apart(move || drop(std::fs::read(other))));
        let root = path(String::new());
        asked.push(apart(move || {
            drop(std::fs::read_dir(&root).map(Iterator::count))
        }));
        let root = path(String::new());
        asked.push(apart(move || assert!(rustix::fs::statfs(&root).is_err())));
    }
    for file in open {
        asked.push(apart(move || drop(file)));
    }
    eventually("requests without answer", || silent.held() > 3);
    for _ in 0..3 {
        silent.good_is_read();
    }
    assert!(is_answered(&socket));
    silent.cut_off();
    for call in asked {
        call.recv_timeout(PATIENCE).expect("every call ends");
    }
}

#[test]
fn mapped_files_are_looked_after_though_a_server_of_another_is_silent() {
    let Some(silent) = Silent::new(&[]) else {
        return;
    };
    let held = File::open(silent.mounted.point("slow/1")).unwrap();
    held.read_at(&mut [0], 0).unwrap();
    let path = silent.mounted.source("good");
    // A program that looks at a mapped page, and asks for nothing.
    let script = "
import mmap, os, sys, time
with open(sys.argv[1], 'rb') as f: m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
was = m[5000]
print('mapped', flush=True)
end = time.time() + 600
while m[5000] == was:
    if time.time() > end: sys.exit('the old page after ten minutes')
    os.sched_yield()
";
    let mut child = std::process::Command::new("python3");
    child.args(["-c", script]).arg(silent.mounted.point("good"));
    let Ok(mut child) = child.stdout(std::process::Stdio::piped()).spawn() else {
        crate::skipped::skipped("needs python3");
        return;
    };
    let mut line = [0; 7];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    silent.orders().silent = true;
    eventually("the watch asks the silent server", || silent.held() > 0);
    let changed = File::options().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    changed.read_at(&mut byte, 5000).unwrap();
    changed.write_all_at(&[!byte[0]], 5000).unwrap();
    assert!(child.wait().unwrap().success());
    silent.cut_off();
}

/// Whether the daemon has ended as far as the kernel lets it: a thread that waits for a FUSE server
/// which has its request cannot be killed, and the process is a zombie as long.
fn has_ended(silent: &Silent) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", silent.mounted.daemon.id()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

/// Hung readers, and so many signals: how long the daemon lives after the last one. Everything that
/// others see of it is gone then.
fn ended_after(signals: u32) -> Option<Duration> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let mut silent = Silent::new(&["--control", socket.to_str().unwrap()])?;
    silent.orders().no_reads_from = Some(3 << 20);
    let readers = readers(&silent, 3);
    eventually("reads without answer", || silent.held() > 0);
    let point = silent.mounted.folder.path().join("point");
    silent.mounted.signal(Signal::TERM);
    wait::mounts("the path is free", || !super::is_mounted(&point));
    let mut begun = Instant::now();
    for _ in 1..signals {
        begun = Instant::now();
        silent.mounted.signal(Signal::TERM);
    }
    eventually("the daemon has ended", || has_ended(&silent));
    let lived = begun.elapsed();
    for reader in readers {
        let read = reader.recv_timeout(PATIENCE).expect("every reader ends");
        assert!(read.is_err(), "a file was read to its end");
    }
    assert!(!socket.exists(), "the control socket is left");
    silent.cut_off();
    silent.orders().held_go();
    assert!(wait::end(&mut silent.mounted.daemon).is_some());
    Some(lived)
}

#[test]
fn a_signal_ends_a_mount_though_its_readers_hang() {
    // That it ends at all while the reads hang: how soon depends on the machine.
    let _ = ended_after(1);
}

#[test]
fn a_second_signal_ends_a_mount_at_once() {
    // The first signal alone gives programs four seconds; a machine that stands still for as long
    // does not do so three times.
    for _ in 0..3 {
        let Some(lived) = ended_after(2) else {
            return;
        };
        if lived < Duration::from_secs(3) {
            return;
        }
    }
    panic!("the second signal changed nothing");
}
