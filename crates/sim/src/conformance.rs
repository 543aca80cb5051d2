//! Conformance: rules that every device keeps, independent of its model.
//!
//! Run over all of [`device::LIST`](crate::device::LIST) and all wrappers by the tests; a new
//! device is in it by being listed. A device under test gets a seeded stream of requests, in
//! bursts and with pauses, some adjacent and some not, and must
//!
//! - end each request exactly once, not before it was submitted, and in the order of time,
//! - end all requests, if it is advanced to the times of its events,
//! - name no event before the last time it was advanced to,
//! - count its requests, and work no more than its servers can in the time it took,
//! - deliver no bytes in less than its least time for them,
//! - do the same again from the same start.

use std::collections::BTreeMap;

use forerun_core::{Bytes, Nanos};

use crate::device::needs::{self, Needs};
use crate::device::{Completion, Device, Outcome, Process, Request};
use crate::random::Random;

/// Requests a device is given.
const REQUESTS: u64 = 400;

/// Processes that ask for them.
const PROCESSES: u64 = 5;

/// Checks the device that `make` builds.
///
/// # Errors
/// The first requirement it does not meet, in words.
pub fn device(make: &dyn Fn() -> Box<dyn Device>, seed: u64) -> Result<(), String> {
    let fresh = make();
    let first = exercise(&mut *make(), &*fresh, seed)?;
    let second = exercise(&mut *make(), &*fresh, seed)?;
    if first == second {
        Ok(())
    } else {
        Err("two equal runs end differently".into())
    }
}

fn exercise(
    device: &mut dyn Device,
    fresh: &dyn Device,
    seed: u64,
) -> Result<Vec<Completion>, String> {
    let mut random = Random::new(seed);
    let mut run = DeviceRun {
        device,
        open: BTreeMap::new(),
        asked: Vec::new(),
        all: Vec::new(),
        now: Nanos(0),
    };
    let (mut at, mut bytes) = (0, 0);
    let room = run.device.capacity().map_or(1 << 36, |end| end.0);
    for id in 0..REQUESTS {
        if random.chance(400) {
            run.wait_until(Nanos(run.now.0 + random.below(20_000_000)))?;
        }
        if !random.chance(500) {
            at = random.below(room);
        }
        let size = random.between(1, 1 << 20);
        let process = Process(random.below(PROCESSES) as u32);
        run.submit(Request::new(id, Bytes(at), Bytes(size)).by(process));
        at += size;
        bytes += size;
    }
    run.wait_until(Nanos(u64::MAX))?;
    run.check_usage(bytes)?;
    run.check_least(fresh)?;
    Ok(run.all)
}

struct DeviceRun<'a> {
    device: &'a mut dyn Device,
    open: BTreeMap<u64, Nanos>,
    /// By number, the time at which each request was submitted, and the request.
    asked: Vec<(Nanos, Request)>,
    all: Vec<Completion>,
    now: Nanos,
}

impl DeviceRun<'_> {
    fn submit(&mut self, request: Request) {
        self.open.insert(request.id, self.now);
        self.asked.push((self.now, request));
        self.device.submit(self.now, request);
    }

    /// Advances the device until then, at the times of its events.
    fn wait_until(&mut self, end: Nanos) -> Result<(), String> {
        while let Some(next) = self.device.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            let before = self.all.len();
            self.device.advance(self.now, &mut self.all);
            for at in before..self.all.len() {
                self.check(at)?;
            }
            if self
                .device
                .next_event()
                .is_some_and(|again| again <= next && again < self.now)
            {
                return Err(format!("asks to be called at {next} again and again"));
            }
        }
        if end.0 == u64::MAX {
            return match self.open.first_key_value() {
                Some((id, _)) => Err(format!("request {id} never ends")),
                None => Ok(()),
            };
        }
        self.now = end;
        Ok(())
    }

    fn check(&mut self, at: usize) -> Result<(), String> {
        let ended = self.all[at];
        let Some(submitted) = self.open.remove(&ended.id) else {
            return Err(format!("request {} ends without being open", ended.id));
        };
        if ended.at < submitted || ended.at > self.now {
            return Err(format!(
                "request {} ends at {}, out of its time",
                ended.id, ended.at
            ));
        }
        if at > 0 && ended.at < self.all[at - 1].at {
            return Err(format!(
                "request {} ends before the one shown before it",
                ended.id
            ));
        }
        Ok(())
    }

    /// The delivery took no less than the least time of the device in its first state.
    fn check_least(&self, fresh: &dyn Device) -> Result<(), String> {
        let done = self.all.iter().filter(|one| one.outcome == Outcome::Done);
        let runs: Vec<needs::Run> = done
            .filter_map(|one| self.asked.get(usize::try_from(one.id).ok()?))
            .map(|(_, Request { at, bytes, .. })| needs::Run {
                at: *at,
                bytes: *bytes,
            })
            .collect();
        let requests = runs.len() as u64;
        let least = fresh.least(&Needs::new(runs, requests));
        let begin = self.asked.first().map_or(Nanos(0), |(at, _)| *at);
        let end = self.all.last().map_or(begin, |one| one.at);
        if end.since(begin) < least {
            let taken = end.since(begin);
            return Err(format!(
                "delivers in {taken}, below its least time of {least}"
            ));
        }
        Ok(())
    }

    fn check_usage(&self, bytes: u64) -> Result<(), String> {
        let usage = self.device.usage();
        if usage.requests != REQUESTS || usage.bytes.0 != bytes || usage.switches > REQUESTS {
            return Err(format!(
                "counts {usage:?} for {REQUESTS} requests of {bytes} bytes"
            ));
        }
        let capacity = u128::from(self.now.0) * u128::from(self.device.servers());
        if u128::from(usage.busy.0) > capacity {
            return Err(format!("works {} ns in {} ns", usage.busy, self.now));
        }
        Ok(())
    }
}
