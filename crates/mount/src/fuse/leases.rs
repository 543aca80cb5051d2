//! Opens of files on which another program holds a write lease.
//!
//! Problem: such an open waits until the holder gives the lease up, or the kernel takes it
//! (`/proc/sys/fs/lease-break-time`, 45 s). A thread of the lane that waits with it is missing to all other
//! files of the file system: with eight leases a user stops every other program.
//!
//! Mechanism: files are opened with `O_NONBLOCK`, which is answered `EAGAIN` meanwhile. The open is
//! then kept without a thread and tried again after a pause, until it succeeds, its program was killed, or
//! [`WAIT_MAX`] is over. A file of a server is not waited for: there `EAGAIN` is the server's answer.
//!
//! ```text
//! try --EAGAIN--> 5 ms, try --EAGAIN--> 10 ms, .. 320 ms, try --> opened: the reply
//!                                                             --> killed, or 60 s: EAGAIN
//! ```

use std::time::{Duration, Instant};

use forerun_surface::daemon::status;

use super::Both;
use crate::fs::nodes::Node;

/// A little longer than the kernel's usual time for a lease.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Samba and others give a lease up within milliseconds.
const PAUSE: Duration = Duration::from_millis(5);

/// A try costs some microseconds; so many wait for a lease that is given up late.
const PAUSE_MAX: Duration = Duration::from_millis(320);

/// The wait of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    thread: u32,
    since: Instant,
    pause: Option<Duration>,
}

impl Wait {
    /// Of a request of this thread of some program.
    pub(super) fn of(thread: u32) -> Self {
        Self {
            thread,
            since: Instant::now(),
            pause: None,
        }
    }

    /// Whether the next try may be answered by another one.
    fn may_last(&self) -> bool {
        self.pause.is_none() || self.since.elapsed() < WAIT_MAX && !is_killed(self.thread)
    }

    /// When to try again.
    fn next(&mut self) -> Instant {
        let pause = self.pause.map_or(PAUSE, |last| (last * 2).min(PAUSE_MAX));
        self.pause = Some(pause);
        Instant::now() + pause
    }
}

/// Makes a call about a node, here first. It gives the reply back if it is to be made again, which the
/// flag allows.
pub(super) fn attempt<R: Send + 'static>(
    both: Both,
    node: Node,
    mut wait: Wait,
    reply: R,
    call: impl Fn(&Both, R, bool) -> Option<R> + Send + 'static,
) {
    if let Some(reply) = call(&both, reply, wait.may_last()) {
        let (served, lanes) = both.clone();
        let (due, lane) = (wait.next(), served.fs.lane(node));
        lanes.after(due, lane, move || attempt(both, node, wait, reply, call));
    }
}

/// Whether a thread was killed and waits for the kernel only, or is gone. Not known of threads in another
/// name space, which have number zero here.
fn is_killed(thread: u32) -> bool {
    if thread == 0 {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{thread}/status")) {
        Ok(status) => has_kill_pending(&status),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && has_proc(),
    }
}

fn has_proc() -> bool {
    std::path::Path::new("/proc/self/status").exists()
}

/// `SigPnd: 0000000000000100`: signal 9 is bit 8. The kernel sets it in each thread of a process that ends.
fn has_kill_pending(status: &str) -> bool {
    const KILL: u32 = 8;
    status::has(status, "SigPnd:", KILL) || status::has(status, "ShdPnd:", KILL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_thread_is_known_by_its_pending_signals() {
        let status = |own, all| format!("Name:\tcat\nSigPnd:\t{own}\nShdPnd:\t{all}\nSigBlk:\t0\n");
        let (none, kill) = ("0000000000000000", "0000000000000100");
        assert!(!has_kill_pending(&status(none, none)));
        assert!(has_kill_pending(&status(kill, none)));
        assert!(has_kill_pending(&status(none, kill)));
        assert!(!has_kill_pending(&status("0000000000000200", none)));
        assert!(!has_kill_pending(""));
        assert!(!is_killed(std::process::id()));
        assert!(!is_killed(0));
        // Above the most that Linux gives.
        assert!(is_killed(u32::MAX));
    }

    #[test]
    fn pauses_grow_to_their_limit_and_the_first_try_is_not_the_last() {
        let mut wait = Wait::of(0);
        assert!(wait.may_last());
        for _ in 0..10 {
            wait.next();
        }
        assert_eq!(wait.pause, Some(PAUSE_MAX));
        assert!(wait.may_last());
        wait.since = Instant::now().checked_sub(WAIT_MAX).unwrap();
        assert!(!wait.may_last());
        wait = Wait::of(u32::MAX);
        assert!(wait.may_last(), "not looked at before there is a wait");
        wait.next();
        assert!(!wait.may_last(), "it is gone");
    }
}
