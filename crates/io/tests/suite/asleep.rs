//! Reads end though the thread that asked for them sleeps and cannot be interrupted: on a page, on a
//! disk, on a server that does not answer. Here it sleeps as a parent does whose child, made by
//! `clone(CLONE_VFORK)`, has not ended.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::backend::{LIST, pread};
use forerun_io::{BackendChoice, Config, Driver};

use crate::skipped::skipped;

/// A read that takes longer never ends.
const PATIENCE: Duration = Duration::from_secs(600);

/// Of a file on a disk, so that reads end later than they begin.
const FILE_BYTES: usize = 8 << 20;

extern "C" fn child(gate: *mut libc::c_void) -> libc::c_int {
    let mut byte = 0_u8;
    // SAFETY: the descriptor is open in the parent, whose memory and files this shares; the byte is ours.
    unsafe { libc::read(gate as libc::c_int, (&raw mut byte).cast(), 1) };
    0
}

/// Sleeps without being interruptible until a byte comes through the gate.
fn sleep(gate: &File) {
    let mut stack = vec![0_u8; 64 << 10];
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the child has a stack of its own, calls nothing but `read`, and has ended when this
    // returns, so the stack outlives it.
    let pid = unsafe { libc::clone(child, top.cast(), flags, gate.as_raw_fd() as *mut _) };
    assert!(pid > 0, "{}", std::io::Error::last_os_error());
    // SAFETY: our own child; no status is asked for.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to an array of two, and nothing else owns them.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

#[test]
fn a_read_ends_while_the_thread_that_asked_for_it_sleeps() {
    let mut named = tempfile::NamedTempFile::new().unwrap();
    named.write_all(&vec![7; FILE_BYTES]).unwrap();
    named.as_file().sync_all().unwrap();
    for entry in LIST {
        let settings = preset::find("mount").unwrap().settings(Bytes(32 << 20));
        let mut config = Config::new(settings.unwrap());
        config.backend = BackendChoice::Only(entry);
        let driver = match Driver::new(config) {
            Ok(driver) => driver,
            Err(error) if entry.name != pread::ENTRY.name => {
                skipped(format!("{}: {error}", entry.name));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        for round in 0..20 {
            let reader = driver.open(named.path()).unwrap();
            let (gate, mut open) = pipe();
            let (tell, told) = channel();
            let (offset, bytes) = (round * 262_144, 65_536);
            thread::scope(|scope| {
                scope.spawn(|| {
                    reader.when_resident(offset, bytes, true, move |there| {
                        let _ = tell.send(there);
                    });
                    sleep(&gate);
                });
                let ended = told.recv_timeout(PATIENCE);
                open.write_all(&[1]).unwrap();
                assert_eq!(ended, Ok(true), "{}, round {round}", entry.name);
            });
            let mut read = vec![0; bytes];
            assert_eq!(reader.read_awaited_at(&mut read, offset).unwrap(), bytes);
            assert!(read.iter().all(|byte| *byte == 7));
        }
        driver.finish().unwrap().check().unwrap();
    }
}
