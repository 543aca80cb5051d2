//! Files on which another program holds a lease, as Samba does: an open of them waits until it is given up.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use forerun_io::source::OpenFile;

use crate::skipped::skipped;

/// A wait that takes longer has failed.
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at a lease.
const PAUSE: Duration = Duration::from_millis(1);

fn lease(file: &File, command: libc::c_int, kind: libc::c_int) -> libc::c_int {
    // SAFETY: the call takes numbers alone.
    unsafe { libc::fcntl(file.as_raw_fd(), command, kind) }
}

#[test]
fn a_file_with_a_lease_is_open_once_that_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let holder = File::create(&path).unwrap();
    // SAFETY: no handler is set. The kernel tells the holder by this signal, which ends it otherwise.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    if lease(&holder, libc::F_SETLEASE, libc::F_WRLCK) != 0 {
        let error = std::io::Error::last_os_error();
        return skipped(format!("no lease on temporary files: {error}"));
    }
    let opening = thread::spawn(move || OpenFile::open(&path).map(drop));
    let begun = Instant::now();
    while lease(&holder, libc::F_GETLEASE, 0) == libc::F_WRLCK {
        assert!(begun.elapsed() < BOUND, "the open has not come");
        thread::park_timeout(PAUSE);
    }
    assert_eq!(lease(&holder, libc::F_SETLEASE, libc::F_UNLCK), 0);
    opening.join().unwrap().unwrap();
}
