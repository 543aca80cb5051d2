//! Lanes: calls to a file system that may not answer, so that none keeps others waiting.
//!
//! Problem: a call to the source (attributes, a name, an open, a close) waits as long as its server
//! likes. Sixteen threads take the kernel's requests; sixteen such calls to one dead server and the
//! mount takes no more.
//!
//! Mechanism: each call belongs to a lane, one for each file system. The thread that took the request
//! carries it out if less than [`RUNNING_MAX`] are at it in this lane and less than three quarters of
//! the threads in all lanes. Otherwise it is queued; a thread of the lane takes it when it has ended
//! its own, and a lane without any gets one thread of its own.
//!
//! ```text
//! 20 calls to a dead server: 8 hang, 12 are queued       8 threads are left for other lanes
//! a second dead server:      4 hang, the rest is queued  4 threads are left; every lane from
//! a third one:               1 hangs, on its own thread  here on has one thread beside them
//! ```
//!
//! The number of threads is bounded, not that of queued calls: one for each program that waits.
//!
//! A call that is to be made again after a pause ([`Lanes::after`]) holds no thread meanwhile. A panic in
//! a call ends that call alone: its reply is dropped with it, which answers `EIO`.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use forerun_surface::daemon::caught;

use super::lock;

/// Threads that take requests which may be at it in one lane: half of them.
const RUNNING_MAX: usize = 8;

/// The stack of a lane's own thread: a request needs a few KiB.
const STACK_BYTES: usize = 256 << 10;

/// Which calls wait for each other at most.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LaneOf {
    /// Calls to the file system on this device.
    Device(u32, u32),
    /// Calls to a file system mounted on one name, whose device is not known yet.
    MountPoint(u64),
    /// Reads that must wait where they are, of files on this device.
    LastWay(u64),
    /// Reads of files on this device that end before the kernel's size.
    Doubts(u64),
    /// Pages of a file that the kernel has to drop.
    Pages(u64),
    /// Files of a folder that are opened ahead.
    Ahead(u32),
    /// Those that are closed again, unused.
    NotAhead(u32),
}

type Call = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Lane {
    running: usize,
    queue: VecDeque<Call>,
}

/// A call, its lane, and when it is due.
type Due = (Instant, LaneOf, Call);

#[derive(Default)]
struct State {
    /// Threads that take requests and are at a call.
    taken: usize,
    lanes: HashMap<LaneOf, Lane>,
    /// To the thread that keeps calls for later, once there is one.
    keeper: Option<Sender<Due>>,
}

/// See the [module](self).
pub struct Lanes {
    /// Number of request threads that may be in a call.
    taken_max: usize,
    state: Mutex<State>,
}

impl Lanes {
    /// For a given number of threads that take requests.
    #[must_use]
    pub fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            taken_max: threads * 3 / 4,
            state: Mutex::default(),
        })
    }

    /// Carries out a call, here or on another thread. Called by threads that take requests.
    pub fn call(self: &Arc<Self>, of: LaneOf, call: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        let has_thread = state.taken < self.taken_max;
        let lane = state.lanes.entry(of).or_default();
        if !has_thread || lane.running >= RUNNING_MAX {
            drop(state);
            return self.later(of, call);
        }
        lane.running += 1;
        state.taken += 1;
        drop(state);
        caught(call);
        self.go_on(of);
        lock(&self.state).taken -= 1;
    }

    /// Carries out a call on a thread of the lane. For threads that must not wait.
    pub fn later(self: &Arc<Self>, of: LaneOf, call: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        let lane = state.lanes.entry(of).or_default();
        lane.queue.push_back(Box::new(call));
        if lane.running > 0 {
            return;
        }
        lane.running += 1;
        drop(state);
        let lanes = self.clone();
        let thread = thread::Builder::new()
            .name("forerun-lane".into())
            .stack_size(STACK_BYTES)
            .spawn(move || lanes.go_on(of));
        if let Err(error) = thread {
            tracing::error!("no thread for a file system of its own: {error}");
            self.go_on(of);
        }
    }

    /// Carries out a call on a thread of the lane, once it is due.
    pub fn after(self: &Arc<Self>, due: Instant, of: LaneOf, call: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        let keeper = match &state.keeper {
            Some(keeper) => Ok(keeper),
            None => self
                .begin_keeper()
                .map(|keeper| &*state.keeper.insert(keeper)),
        };
        match keeper {
            // It ends with the process, and these lanes are its own.
            Ok(keeper) => drop(keeper.send((due, of, Box::new(call)))),
            Err(error) => {
                tracing::error!("no thread for calls that are made again: {error}");
                drop(state);
                self.later(of, call);
            }
        }
    }

    fn begin_keeper(self: &Arc<Self>) -> std::io::Result<Sender<Due>> {
        let (give, given) = channel();
        let lanes = Arc::downgrade(self);
        let keep = move || {
            keep(&given, &|of, call| {
                if let Some(lanes) = lanes.upgrade() {
                    lanes.later(of, call);
                }
            })
        };
        thread::Builder::new()
            .name("forerun-again".into())
            .stack_size(STACK_BYTES)
            .spawn(keep)?;
        Ok(give)
    }

    /// Carries out queued calls, until none is left.
    fn go_on(&self, of: LaneOf) {
        let mut state = lock(&self.state);
        loop {
            let Some(lane) = state.lanes.get_mut(&of) else {
                return;
            };
            let Some(call) = lane.queue.pop_front() else {
                lane.running -= 1;
                if lane.running == 0 {
                    state.lanes.remove(&of);
                }
                return;
            };
            drop(state);
            caught(call);
            state = lock(&self.state);
        }
    }
}

/// Keeps calls until they are due, and hands them on; until no more can come.
fn keep(given: &Receiver<Due>, hand_on: &dyn Fn(LaneOf, Call)) {
    let mut kept: Vec<Due> = Vec::new();
    loop {
        let next = kept.iter().map(|(due, ..)| *due).min();
        let came = match next {
            Some(due) => given.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => given.recv().map_err(RecvTimeoutError::from),
        };
        match came {
            Ok(call) => kept.push(call),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        for (_, of, call) in kept.extract_if(.., |(due, ..)| *due <= now) {
            hand_on(of, call);
        }
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.state);
        write!(
            f,
            "Lanes {{ taken: {}, lanes: {} }}",
            state.taken,
            state.lanes.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const THREADS: usize = 16;

    /// The threads that take requests: each takes one after the other.
    fn takers(lanes: &Arc<Lanes>) -> Sender<(LaneOf, Call)> {
        let (give, given) = channel::<(LaneOf, Call)>();
        let given = Arc::new(Mutex::new(given));
        for _ in 0..THREADS {
            let (lanes, given) = (lanes.clone(), given.clone());
            thread::spawn(move || {
                loop {
                    let Ok((of, call)) = lock(&given).recv() else {
                        return;
                    };
                    lanes.call(of, call);
                }
            });
        }
        give
    }

    fn hangs(gate: &Arc<Mutex<Receiver<()>>>) -> Call {
        let gate = gate.clone();
        Box::new(move || {
            let _ = lock(&gate).recv();
        })
    }

    #[test]
    fn however_many_lanes_hang_another_one_goes_on() {
        let lanes = Lanes::new(THREADS);
        let give = takers(&lanes);
        let (open, gate) = channel();
        let gate = Arc::new(Mutex::new(gate));
        for device in 0..10 {
            for _ in 0..40 {
                give.send((LaneOf::Device(device, 0), hangs(&gate)))
                    .unwrap();
            }
        }
        let (tell, told) = channel();
        for number in 0..1000 {
            let tell = tell.clone();
            let call = Box::new(move || tell.send(number).unwrap());
            give.send((LaneOf::Device(100 + number % 3, 0), call))
                .unwrap();
        }
        let mut numbers: Vec<u32> = told.iter().take(1000).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..1000));
        let state = lock(&lanes.state);
        assert!(state.taken <= THREADS * 3 / 4);
        assert!((0..10).all(|device| state.lanes.contains_key(&LaneOf::Device(device, 0))));
        drop((state, open));
    }

    #[test]
    fn a_call_that_panics_takes_no_place_and_ends_no_thread() {
        let lanes = Lanes::new(THREADS);
        let give = takers(&lanes);
        let (tell, told) = channel::<u32>();
        for number in 0..10 * THREADS as u32 {
            // The reply goes with the call, as a request's does.
            let reply = tell.clone();
            let panics: Call = Box::new(move || {
                let _reply = reply;
                std::panic::resume_unwind(Box::new(number));
            });
            give.send((LaneOf::Device(number % 3, 0), panics)).unwrap();
        }
        let (other, others) = channel();
        for number in 0..10 * THREADS {
            let other = other.clone();
            let call: Call = Box::new(move || other.send(number).unwrap());
            give.send((LaneOf::Device(7, 0), call)).unwrap();
        }
        drop((tell, give));
        assert!(told.recv().is_err(), "a reply was dropped for each");
        let mut numbers: Vec<usize> = others.iter().take(10 * THREADS).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..10 * THREADS));
        // The last ones may still be on their way out of their lanes.
        let begun = Instant::now();
        while lock(&lanes.state).taken > 0 || !lock(&lanes.state).lanes.is_empty() {
            assert!(begun.elapsed().as_secs() < 60, "places are kept: {lanes:?}");
            thread::yield_now();
        }
    }

    #[test]
    fn calls_made_later_hold_no_thread_and_come_when_they_are_due() {
        let lanes = Lanes::new(THREADS);
        let (tell, told) = channel();
        let begun = Instant::now();
        for number in 0..1000_u32 {
            let tell = tell.clone();
            let due = begun + std::time::Duration::from_millis(u64::from(number % 7));
            lanes.after(due, LaneOf::Device(number % 3, 0), move || {
                tell.send((number, Instant::now() >= due)).unwrap();
            });
        }
        let mut all: Vec<_> = told.iter().take(1000).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..1000).map(|number| (number, true))));
    }

    #[test]
    fn a_lane_is_gone_once_its_calls_have_ended() {
        let lanes = Lanes::new(THREADS);
        let (tell, told) = channel();
        for number in 0..100 {
            let tell = tell.clone();
            lanes.call(LaneOf::LastWay(number % 7), move || tell.send(()).unwrap());
        }
        assert_eq!(told.iter().take(100).count(), 100);
        assert!(lock(&lanes.state).lanes.is_empty());
    }
}
