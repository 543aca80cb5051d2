//! Waiting, as far as possible for the kernel's own event: a change of its list of mounts, the end
//! of a process. A condition without an event is looked at again, after a pause each time, in which
//! other threads have the processor.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// After so long a wait is one for ever. No test passes sooner or later by it: ten minutes are a hundred
/// times the slowest wait beside six busy loops on two processors.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Between two looks at a condition without an event; a look that starts a process takes as long.
const PAUSE: Duration = Duration::from_millis(5);

/// The rest of it; panics when that is nothing.
fn left(what: &str, begun: Instant) -> Timespec {
    let left = PATIENCE.checked_sub(begun.elapsed());
    let left = left.unwrap_or_else(|| panic!("never: {what}"));
    Timespec::try_from(left).unwrap()
}

/// Waits until something holds that only looking can tell.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        left(what, begun);
        std::thread::park_timeout(PAUSE);
    }
}

/// Waits for a condition on the list of mounts; looks again whenever that changes.
pub(crate) fn mounts(what: &str, holds: impl FnMut() -> bool) {
    mounts_or_end(what, None, holds);
}

/// The same, and the process is one without which it never will.
pub(crate) fn mounts_while(what: &str, process: &Child, holds: impl FnMut() -> bool) {
    mounts_or_end(what, Some(process), holds);
}

fn mounts_or_end(what: &str, process: Option<&Child>, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    let end = process.map(end_of);
    // A change after this shows, one before it is seen by looking.
    let list = File::open("/proc/self/mountinfo").unwrap();
    while !holds() {
        let mut awaited = vec![PollFd::new(&list, PollFlags::PRI)];
        awaited.extend(end.as_ref().map(|end| PollFd::new(end, PollFlags::IN)));
        poll(&mut awaited, Some(&left(what, begun))).unwrap();
        let ended = awaited.get(1).is_some_and(|end| !end.revents().is_empty());
        assert!(!ended, "{what}: the process ended");
    }
}

/// A descriptor that becomes readable when a process ends.
fn end_of(process: &Child) -> OwnedFd {
    let pid = Pid::from_raw(process.id().cast_signed()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// Waits for a child to end by itself; none if it does not.
pub(crate) fn end(child: &mut Child) -> Option<ExitStatus> {
    // One that was waited for has no number any more.
    if let Some(status) = child.try_wait().unwrap() {
        return Some(status);
    }
    let end = end_of(child);
    let mut awaited = [PollFd::new(&end, PollFlags::IN)];
    let patience = Timespec::try_from(PATIENCE).unwrap();
    poll(&mut awaited, Some(&patience)).unwrap();
    child.try_wait().unwrap()
}
