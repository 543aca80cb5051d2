//! The fault wrapper: errors, short reads and delays, drawn from a seed.
//!
//! The n-th request of a run meets the same fate whenever the seed is the same: nothing, an error
//! instead of any I/O, the first part of the bytes read, or a delay before it starts. Around the
//! other wrappers, so an injected error costs the device no time.
//!
//! It does not corrupt bytes: nothing here could detect that without checksums.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forerun_core::{Nanos, RequestId};

use super::Start;
use crate::backend::{Backend, Outcome, Request, Sink};
use crate::error::Error;
use crate::sync::{Condvar, Mutex};

/// Rates of injected faults. They are per thousand requests, independent of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// Decides which requests are hit.
    pub seed: u64,
    /// Requests that fail.
    pub error_permille: u32,
    /// The error they fail with.
    pub error: i32,
    /// Requests that bring only a part, at least one byte.
    pub short_permille: u32,
    /// Requests that start late.
    pub delay_permille: u32,
    /// How late at most.
    pub delay_max: Nanos,
}

impl Default for FaultPlan {
    /// Nothing goes wrong; errors, once a rate is given, are `EIO`.
    fn default() -> Self {
        Self {
            seed: 0,
            error_permille: 0,
            error: libc::EIO,
            short_permille: 0,
            delay_permille: 0,
            delay_max: Nanos(0),
        }
    }
}

impl FaultPlan {
    /// Checks the rates.
    ///
    /// # Errors
    /// A rate above one thousand.
    pub fn check(&self) -> Result<(), Error> {
        let rates = [
            ("error", self.error_permille),
            ("short", self.short_permille),
            ("delay", self.delay_permille),
        ];
        match rates.into_iter().find(|(_, rate)| *rate > 1000) {
            Some((name, value)) => Err(Error::FaultRate { name, value }),
            None => Ok(()),
        }
    }
}

/// A stream of well mixed numbers (splitmix64), one for each (seed, request).
struct Draw(u64);

impl Draw {
    fn of(seed: u64, request: u64) -> Self {
        Self(seed ^ request.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// A request that starts later; ordered by when, then by number of arrival.
struct Late {
    start: Instant,
    arrival: u64,
    request: Box<Request>,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.arrival == other.arrival
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.start, self.arrival).cmp(&(other.start, other.arrival))
    }
}

#[derive(Default)]
struct Pending {
    count: u64,
    late: BinaryHeap<Reverse<Late>>,
    /// The bytes that requests in flight shall appear to have brought.
    cuts: HashMap<RequestId, u64>,
    stopping: bool,
}

struct FaultState {
    plan: FaultPlan,
    sink: Arc<dyn Sink>,
    pending: Mutex<Pending>,
    changed: Condvar,
}

/// See the [module](self).
pub struct Fault {
    shared: Arc<FaultState>,
    inner: Arc<dyn Backend>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Fault {
    /// Wraps a backend.
    ///
    /// # Errors
    /// Rates out of range, or the wrapped backend cannot start.
    pub fn start(
        sink: Arc<dyn Sink>,
        plan: FaultPlan,
        inner: Start<'_>,
    ) -> Result<Arc<Self>, Error> {
        plan.check()?;
        let pending = Mutex::default();
        let shared = Arc::new(FaultState {
            plan,
            sink,
            pending,
            changed: Condvar::default(),
        });
        let inner = inner(shared.clone())?;
        let mut thread = None;
        if plan.delay_permille > 0 {
            let (delaying, onward) = (shared.clone(), inner.clone());
            let spawned = std::thread::Builder::new()
                .name("forerun-fault".into())
                .spawn(move || delaying.release_late(&*onward));
            thread = Some(spawned.map_err(|source| Error::Backend {
                name: "fault",
                source,
            })?);
        }
        Ok(Arc::new(Self {
            shared,
            inner,
            thread: Mutex::new(thread),
        }))
    }
}

impl FaultState {
    /// Submits late requests when their time has come.
    fn release_late(&self, inner: &dyn Backend) {
        let mut pending = self.pending.lock();
        loop {
            let now = Instant::now();
            match pending.late.peek().map(|Reverse(late)| late.start) {
                Some(start) if start <= now => {
                    if let Some(Reverse(late)) = pending.late.pop() {
                        drop(pending);
                        inner.submit(late.request);
                        pending = self.pending.lock();
                    }
                }
                Some(start) => {
                    pending = self.changed.wait_until(pending, start);
                }
                None if pending.stopping => return,
                None => pending = self.changed.wait(pending),
            }
        }
    }
}

impl Backend for Fault {
    fn submit(&self, request: Box<Request>) {
        let FaultState {
            plan,
            sink,
            pending,
            changed,
        } = &*self.shared;
        let mut pending = pending.lock();
        let arrival = pending.count;
        pending.count += 1;
        let mut draw = Draw::of(plan.seed, arrival);
        let mut happens = |permille: u32| draw.below(1000) < u64::from(permille);
        let (fails, short, late) = (
            happens(plan.error_permille),
            happens(plan.short_permille),
            happens(plan.delay_permille),
        );
        if fails {
            drop(pending);
            return sink.completed(request, Err(plan.error));
        }
        if short {
            let cut = request.skip as u64 + 1 + draw.below(request.wanted().saturating_sub(1));
            pending.cuts.insert(request.number, cut);
        }
        if late {
            let delay = Duration::from_nanos(draw.below(plan.delay_max.0.saturating_add(1)));
            let start = Instant::now() + delay;
            pending.late.push(Reverse(Late {
                start,
                arrival,
                request,
            }));
            changed.notify_one();
            return;
        }
        drop(pending);
        self.inner.submit(request);
    }

    fn look_for_hung(&self) {
        self.inner.look_for_hung();
    }

    fn stop(&self) {
        self.shared.pending.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // A panic in the thread was reported by itself; there is nothing to add.
            let _ = thread.join();
        }
        self.inner.stop();
    }
}

impl Sink for FaultState {
    fn completed(&self, request: Box<Request>, outcome: Outcome) {
        let cut = self.pending.lock().cuts.remove(&request.number);
        let outcome = match (outcome, cut) {
            (Ok(n), Some(cut)) => Ok(n.min(cut)),
            (outcome, _) => outcome,
        };
        self.sink.completed(request, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_seed_and_request_alone() {
        let first = |seed, request| Draw::of(seed, request).below(1000);
        assert_eq!(first(7, 3), first(7, 3));
        let hits = (0..100_000).filter(|r| first(1, *r) < 100).count();
        assert!(
            (9_000..11_000).contains(&hits),
            "{hits} of 100000 at 100 per mille"
        );
    }

    #[test]
    fn a_rate_above_a_thousand_is_refused_by_name() {
        let plan = FaultPlan {
            short_permille: 1001,
            ..FaultPlan::default()
        };
        assert!(plan.check().unwrap_err().to_string().contains("short"));
    }
}
