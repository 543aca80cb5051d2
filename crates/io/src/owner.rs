//! Owners: which program reads a file, and how much processor time it has used.
//!
//! Problem: a program that computes and does not come to its blocks is done with them, one that waits for the
//! disk is not; only its processor time tells the two apart
//! (`coldest-cpu` of `forerun-baselines`). Mechanism, where the composition
//! [asks for it](forerun_core::Engine::uses_cpu_time) and nowhere else: a thread that enters the engine notes its
//! thread with the reader, and ten times a second a thread reads the clocks and hands in those that moved.
//!
//! ```text
//! read of a missing block, or a request of the kernel --> Owner: the caller's thread
//! every 100 ms   lock: copy (reader, thread)   no lock: read clocks   lock: CpuTime of those that moved
//! ```
//!
//! The clock is the thread's own in this process, and else its process' (`clock_getcpuclockid(3)`), whose end
//! a pidfd shows: a number that is another program's by now is not taken for the old one. The input is
//! a sum of steps forward, so a reader whose owner changes, ends, or has a clock that runs backward keeps its
//! time. An owner's end itself is no input: the file it had open is released, and closed here.

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use forerun_core::{Nanos, ReaderId};

use crate::engine_host::EngineHost;
use crate::reader::Position;

/// Between two rounds. A tenth of a second is short against a stream that is left (seconds), and 4,096 readers
/// are some milliseconds of work.
const PERIOD: Duration = Duration::from_millis(100);

/// Most processes whose clocks are read, a descriptor each; readers of others have no CPU time.
const PROCESSES_MAX: usize = 1024;

/// Set where the owner was told.
const TOLD: u32 = 1 << 31;

/// Numbers of threads are below (`PID_MAX_LIMIT`). The clock of a larger one could be that of zero, which is the
/// caller's own.
const THREADS_MAX: u32 = 1 << 22;

/// The thread that reads a file: its number, or zero.
#[derive(Debug, Default)]
pub(crate) struct Owner(AtomicU32);

impl Owner {
    /// It is this thread, of whatever process.
    pub(crate) fn is(&self, thread: u32) {
        if (1..THREADS_MAX).contains(&thread) {
            self.0.store(thread | TOLD, Ordering::Relaxed);
        }
    }

    /// It is the calling thread, unless another one was told.
    pub(crate) fn is_this_thread(&self) {
        if self.0.load(Ordering::Relaxed) & TOLD == 0 {
            self.0.store(this_thread(), Ordering::Relaxed);
        }
    }

    pub(crate) fn thread(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed) & !TOLD).filter(|thread| *thread != 0)
    }
}

fn this_thread() -> u32 {
    thread_local! {
        // SAFETY: no arguments, no memory.
        static NUMBER: u32 = unsafe { libc::gettid() }.unsigned_abs();
    }
    NUMBER.with(|number| *number)
}

/// The clock of a process: the kernel's `MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)`, which
/// `clock_getcpuclockid(3)` gives.
fn clock_of_process(process: u32) -> libc::clockid_t {
    const SCHED: libc::clockid_t = 2;
    !process.cast_signed() << 3 | SCHED
}

/// The clock of a thread of this process; of others the kernel refuses it.
fn clock_of_thread(thread: u32) -> libc::clockid_t {
    const PER_THREAD: libc::clockid_t = 4;
    clock_of_process(thread) | PER_THREAD
}

fn read(clock: libc::clockid_t) -> Option<Nanos> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid, writable timespec for the duration of the call.
    let refused = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    (!refused).then(|| Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos)))
}

/// Where an owner's time is read.
#[derive(Debug)]
enum OwnerClock {
    /// A thread of this process.
    Thread(libc::clockid_t),
    /// Another process, and the descriptor that shows its end.
    Process(libc::clockid_t, OwnedFd),
    /// There is none, or no descriptor for it.
    None,
}

impl OwnerClock {
    fn of(thread: u32, processes: usize) -> Self {
        let own = clock_of_thread(thread);
        if read(own).is_some() {
            return Self::Thread(own);
        }
        if processes >= PROCESSES_MAX {
            return Self::None;
        }
        let of_process = |process| Some(Self::Process(clock_of_process(process), pidfd(process)?));
        let found = of_process(thread).or_else(|| of_process(process_of(thread)?));
        found.unwrap_or(Self::None)
    }

    fn is_process(&self) -> bool {
        matches!(self, Self::Process(..))
    }

    /// The time; none once its owner has ended.
    fn time(&self) -> Option<Nanos> {
        match self {
            Self::Thread(clock) => read(*clock),
            // In this order: if it runs still, its number was its own all the time.
            Self::Process(clock, end) => read(*clock).filter(|_| !has_ended(end)),
            Self::None => None,
        }
    }
}

/// None if there is no such process, or it is a thread of one.
fn pidfd(process: u32) -> Option<OwnedFd> {
    // SAFETY: two integers; the kernel makes a descriptor of them or refuses.
    let made = unsafe { libc::syscall(libc::SYS_pidfd_open, process.cast_signed(), 0) };
    let made = i32::try_from(made).ok().filter(|made| *made >= 0)?;
    // SAFETY: it was made just now, and is used here alone.
    Some(unsafe { OwnedFd::from_raw_fd(made) })
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut poll = libc::pollfd {
        fd: process.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry, which outlives the call; it waits for nothing.
    unsafe { libc::poll(&raw mut poll, 1, 0) != 0 }
}

/// The process of a thread.
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Parts of a reader's time.
#[derive(Debug)]
struct Sum {
    position: Arc<Position>,
    thread: u32,
    /// Its owner's clock when it was read last.
    seen: Nanos,
    told: Nanos,
}

/// An open reader, and the thread it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) reader: ReaderId,
    pub(crate) position: Arc<Position>,
    pub(crate) thread: u32,
}

/// The clocks of all owners.
#[derive(Debug, Default)]
struct Clocks {
    by_thread: HashMap<u32, OwnerClock>,
    sums: HashMap<ReaderId, Sum>,
}

impl Clocks {
    /// Reads the clocks; the readers whose time has moved.
    fn round(&mut self, owned: Vec<Owned>) -> Vec<(Owned, Nanos)> {
        let mut times: HashMap<u32, Option<Nanos>> = HashMap::new();
        for Owned { thread, .. } in &owned {
            times.entry(*thread).or_insert_with(|| self.time(*thread));
        }
        self.by_thread
            .retain(|thread, _| times.contains_key(thread));
        let mut sums = HashMap::with_capacity(owned.len());
        let mut moved = Vec::new();
        for one in owned {
            let known = self.sums.remove(&one.reader);
            let known = known.filter(|known| Arc::ptr_eq(&known.position, &one.position));
            let time = times.get(&one.thread).copied().flatten();
            let seen = known.as_ref().filter(|known| known.thread == one.thread);
            let seen = seen.map(|known| known.seen);
            let mut told = known.map_or(Nanos(0), |known| known.told);
            let step = time.zip(seen).map_or(0, |(time, seen)| time.since(seen).0);
            let now = time.or(seen).unwrap_or_default();
            if step > 0 {
                told = Nanos(told.0.saturating_add(step));
                moved.push((one.clone(), told));
            }
            let sum = Sum {
                position: one.position,
                thread: one.thread,
                seen: now.max(seen.unwrap_or_default()),
                told,
            };
            sums.insert(one.reader, sum);
        }
        self.sums = sums;
        moved
    }

    /// An owner that ended is asked for anew each time: its number may be another's by then.
    fn time(&mut self, thread: u32) -> Option<Nanos> {
        let known = self.by_thread.get(&thread).and_then(OwnerClock::time);
        if known.is_some() {
            return known;
        }
        self.by_thread.remove(&thread);
        let processes = self.by_thread.values().filter(|c| c.is_process()).count();
        let clock = OwnerClock::of(thread, processes);
        let time = clock.time();
        self.by_thread.insert(thread, clock);
        time
    }
}

/// The thread that reads the clocks. Ends when dropped.
#[derive(Debug)]
pub(crate) struct OwnerClocks {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl OwnerClocks {
    pub(crate) fn start(engine_host: Weak<EngineHost>) -> std::io::Result<Self> {
        let (end, ended) = channel();
        let builder = thread::Builder::new().name("forerun-owners".into());
        let thread = builder.spawn(move || run(&engine_host, &ended))?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for OwnerClocks {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic in a way that matters here.
            let _ = thread.join();
        }
    }
}

fn run(engine_host: &Weak<EngineHost>, ended: &Receiver<()>) {
    let mut clocks = Clocks::default();
    while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        let Some(engine_host) = engine_host.upgrade() else {
            return;
        };
        round(&mut clocks, &engine_host);
    }
}

fn round(clocks: &mut Clocks, engine_host: &EngineHost) {
    let owned = engine_host.with(|state| state.owned());
    let moved = clocks.round(owned);
    if !moved.is_empty() {
        engine_host.after_deferred(|state| state.tell_cpu_times(&moved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(reader: u32, position: &Arc<Position>) -> Vec<Owned> {
        let thread = position.owner.thread();
        let one = |thread| Owned {
            reader: ReaderId(reader),
            position: position.clone(),
            thread,
        };
        thread.map(one).into_iter().collect()
    }

    /// Time told of a reader after a round.
    fn told(clocks: &mut Clocks, position: &Arc<Position>) -> Nanos {
        clocks.round(owned(0, position));
        clocks
            .sums
            .get(&ReaderId(0))
            .map_or(Nanos(0), |sum| sum.told)
    }

    /// Looks until it holds, for a minute.
    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let begun = std::time::Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
            thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Uses processor time in this thread.
    fn compute(time: u64) {
        let clock = clock_of_thread(this_thread());
        let begin = read(clock).unwrap();
        while read(clock).unwrap().since(begin).0 < time {}
    }

    #[test]
    fn a_thread_that_computes_has_its_time_and_one_that_waits_has_none() {
        let (busy, idle) = (Arc::<Position>::default(), Arc::<Position>::default());
        busy.owner.is_this_thread();
        let (end, ended) = channel::<()>();
        let (send, number) = channel();
        let waiting = thread::spawn(move || {
            send.send(this_thread()).unwrap();
            let _ = ended.recv();
        });
        idle.owner.is(number.recv().unwrap());
        let mut clocks = Clocks::default();
        let both = || {
            let idle = Owned {
                reader: ReaderId(1),
                ..owned(1, &idle).remove(0)
            };
            [owned(0, &busy).remove(0), idle].to_vec()
        };
        clocks.round(both());
        compute(3_000_000);
        let moved = clocks.round(both());
        let time = |reader| moved.iter().find(|(one, _)| one.reader == ReaderId(reader));
        assert!(time(0).unwrap().1 >= Nanos(3_000_000), "{moved:?}");
        // It may have been on its way to the wait.
        assert!(
            time(1).is_none_or(|(_, time)| *time < Nanos(3_000_000)),
            "{moved:?}"
        );
        drop(end);
        waiting.join().unwrap();
    }

    #[test]
    fn another_process_has_a_clock_until_it_ends_and_its_number_says_nothing_after_that() {
        let spin = ["-c", "while :; do :; done"];
        let mut child = std::process::Command::new("sh").args(spin).spawn().unwrap();
        let position = Arc::<Position>::default();
        position.owner.is(child.id());
        position.owner.is_this_thread();
        assert_eq!(position.owner.thread(), Some(child.id()), "it was told");
        let mut clocks = Clocks::default();
        until("the process computes", || {
            told(&mut clocks, &position) >= Nanos(5_000_000)
        });
        child.kill().unwrap();
        // Not waited for yet: its number cannot be another's.
        let clock = &clocks.by_thread[&child.id()];
        until("the process ends", || clock.time().is_none());
        child.wait().unwrap();
        let last = told(&mut clocks, &position);
        assert_eq!(told(&mut clocks, &position), last);
        // A file that was handed on: the time of the next owner comes on top.
        position.owner.is(this_thread());
        assert_eq!(told(&mut clocks, &position), last);
        compute(1_000_000);
        assert!(told(&mut clocks, &position).0 >= last.0 + 1_000_000);
    }

    #[test]
    fn a_thread_of_another_process_is_found_by_its_process_and_no_owner_is_harmless() {
        assert_eq!(process_of(this_thread()), Some(std::process::id()));
        let nobody = Arc::<Position>::default();
        for number in [0, THREADS_MAX, u32::MAX >> 1, u32::MAX] {
            nobody.owner.is(number);
            assert_eq!(nobody.owner.thread(), None);
        }
        let vanished = THREADS_MAX - 1;
        nobody.owner.is(vanished);
        let mut clocks = Clocks::default();
        assert_eq!(told(&mut clocks, &nobody), Nanos(0));
        assert!(matches!(clocks.by_thread[&vanished], OwnerClock::None));
        assert!(read(clock_of_process(std::process::id())).is_some());
    }

    #[test]
    fn a_reader_that_took_over_a_number_does_not_inherit_its_time() {
        let first = Arc::<Position>::default();
        first.owner.is_this_thread();
        let mut clocks = Clocks::default();
        told(&mut clocks, &first);
        compute(1_000_000);
        assert!(told(&mut clocks, &first) > Nanos(0));
        let second = Arc::<Position>::default();
        second.owner.is_this_thread();
        assert_eq!(told(&mut clocks, &second), Nanos(0));
    }
}
