//! Array: devices side by side, striped strip by strip.
//!
//! ```text
//! strip      0   1   2   3   4   5 ...
//! device     0   1   2   0   1   2 ...       position on it: strip / devices * strip_bytes
//! ```
//!
//! A request is cut at strips; its strips on one device are one run there and one request of it,
//! because the strips of a device follow each other. It ends with its last part, as badly as its
//! worst part. Strips of one block stripe blocks, as in Kimbrel et al. 1996.
//!
//! The list has it over `hp97560`; over anything else it is written `array(disks=4):name`, see
//! [`parse`](super::parse). It stores no parity and survives no failure.

use std::collections::BTreeMap;

use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, Nanos, Profile, profile};

use super::{Built, Completion, Device, Outcome, Process, Request, Usage};
use crate::device::needs::{Needs, Run};

/// Number of devices, and bytes on one before the next one's turn.
const PARAMS: &[Param] = &[
    Param {
        name: "disks",
        summary: "devices side by side",
        default: 4,
        min: 1,
        max: 1024,
    },
    Param {
        name: "strip_bytes",
        summary: "contiguous on one device; 8 KiB is a block of Kimbrel et al. 1996",
        default: 8_192,
        min: 512,
        max: 1_073_741_824,
    },
];

pub(crate) const METHOD: Method<Built> = Method {
    spec: Spec {
        name: "array",
        summary: "devices striped strip by strip: array(disks=4):name, or of hp97560",
        source: "kimbrel96 section 3; baek09 figure 1",
        unfit: "failures: it has no parity",
        knows: Knows::Online,
        params: PARAMS,
    },
    build: |values| {
        let (disks, strip) = (values.get("disks"), values.get("strip_bytes"));
        Array::boxed(disks, Bytes(strip), &|| super::parse(LISTED_PART))
    },
};

/// The members of the listed array.
pub(crate) const LISTED_PART: &str = "hp97560";

/// A request whose parts are under way.
#[derive(Debug)]
struct Open {
    id: u64,
    parts: u32,
    outcome: Outcome,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Array {
    devices: Vec<Box<dyn Device>>,
    strip: u64,
    /// Requests under way, by our own number for them.
    open: BTreeMap<u64, Open>,
    next: u64,
    /// End of the last request; `None` before the first.
    head: Option<Bytes>,
    usage: Usage,
    /// Parts that ended, between two uses of it; kept to be filled again.
    ended: Vec<Completion>,
}

impl Array {
    /// These devices, in strips of a given size; of none, or in strips of nothing, one is made.
    #[must_use]
    pub fn new(devices: Vec<Box<dyn Device>>, strip: Bytes) -> Self {
        Self {
            devices,
            strip: strip.0.max(1),
            open: BTreeMap::new(),
            next: 0,
            head: None,
            usage: Usage::default(),
            ended: Vec::new(),
        }
    }

    /// From the values of [`METHOD`]'s parameters.
    pub(crate) fn boxed(disks: u64, strip: Bytes, part: &dyn Fn() -> Built) -> Built {
        let parts = (0..disks).map(|_| part()).collect::<Result<_, _>>()?;
        Ok(Box::new(Self::new(parts, strip)))
    }

    /// The position on a device that corresponds to `at`: the bytes before it lie below.
    fn before(&self, device: u64, at: u64) -> u64 {
        let count = self.devices.len() as u64;
        let (strip, within) = (at / self.strip, at % self.strip);
        let (row, turn) = (strip / count, strip % count);
        let partial = match device.cmp(&turn) {
            core::cmp::Ordering::Less => self.strip,
            core::cmp::Ordering::Equal => within,
            core::cmp::Ordering::Greater => 0,
        };
        row * self.strip + partial
    }
}

impl Device for Array {
    /// A switch costs as much as on one device, at a distance its share of the array's; bytes
    /// come at the rates of all together.
    fn profile(&self) -> Profile {
        let Some(one) = self.devices.first().map(Device::profile) else {
            return Profile::default();
        };
        let count = self.devices.len() as u64;
        let wide = |at: Bytes| Bytes(at.0.saturating_mul(count));
        let switching = one.switching_points().iter().map(|&(at, t)| (wide(at), t));
        let most = *profile::RATE_RANGE.end();
        let rates = one
            .rate_points()
            .iter()
            .map(|&(at, rate)| (wide(at), rate.saturating_mul(count).min(most)));
        let profile = Profile::new(switching.collect(), rates.collect());
        let servers = super::stated(
            u32::try_from(count)
                .unwrap_or(u32::MAX)
                .saturating_mul(one.servers()),
        );
        let profile = profile.and_then(|profile| profile.with_servers(servers));
        profile.unwrap_or(one)
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.usage.count(&request, self.head != Some(request.at));
        self.head = Some(request.end());
        let (number, count) = (self.next, self.devices.len() as u64);
        self.next += 1;
        let mut parts = 0;
        // From the device on which it begins, one turn around.
        let strips = request.end().0.div_ceil(self.strip) - request.at.0 / self.strip;
        let first = request.at.0 / self.strip % count;
        for turn in 0..strips.max(1).min(count) {
            let device = (first + turn) % count;
            let at = self.before(device, request.at.0);
            let bytes = Bytes(self.before(device, request.end().0) - at);
            let at = Bytes(at);
            let part = Request {
                id: number,
                at,
                bytes,
                ..request
            };
            self.devices[device as usize].submit(now, part);
            parts += 1;
        }
        self.open.insert(
            number,
            Open {
                id: request.id,
                parts,
                outcome: Outcome::Done,
            },
        );
    }

    fn next_event(&self) -> Option<Nanos> {
        self.devices.iter().filter_map(Device::next_event).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let mut ended = core::mem::take(&mut self.ended);
        for device in &mut self.devices {
            device.advance(now, &mut ended);
        }
        ended.sort_by_key(|part| part.at);
        for part in ended.drain(..) {
            let Some(open) = self.open.get_mut(&part.id) else {
                continue;
            };
            open.parts -= 1;
            open.outcome = worse(open.outcome, part.outcome);
            if open.parts > 0 {
                continue;
            }
            if let Some(open) = self.open.remove(&part.id) {
                done.push(Completion {
                    id: open.id,
                    at: part.at,
                    outcome: open.outcome,
                });
            }
        }
        self.ended = ended;
    }

    fn is_full_for(&self, process: Process) -> bool {
        let mut devices = self.devices.iter();
        devices.any(|device| device.is_full_for(process))
    }

    fn is_congested(&self) -> bool {
        let mut devices = self.devices.iter();
        devices.any(|device| device.is_congested())
    }

    fn usage(&self) -> Usage {
        let busy = self.devices.iter().map(|device| device.usage().busy.0);
        Usage {
            busy: Nanos(busy.fold(0, u64::saturating_add)),
            ..self.usage
        }
    }

    fn servers(&self) -> u32 {
        let each = self.devices.iter().map(Device::servers);
        each.fold(0, u32::saturating_add).max(1)
    }

    fn capacity(&self) -> Option<Bytes> {
        let least = self.devices.iter().filter_map(Device::capacity).min()?;
        let whole = least.0 / self.strip * self.strip;
        Some(Bytes(whole.saturating_mul(self.devices.len() as u64)))
    }

    /// The time of the slowest part for its share, at least one request if there is any.
    fn least(&self, needs: &Needs) -> Nanos {
        let share = |at: u64| {
            let runs = needs.runs().iter().map(|run| {
                let begin = self.before(at, run.at.0);
                let bytes = Bytes(self.before(at, run.end()) - begin);
                let at = Bytes(begin);
                Run { at, bytes }
            });
            Needs::new(runs.collect(), 1)
        };
        let times = (0..).zip(&self.devices);
        let times = times.map(|(at, device)| device.least(&share(at)));
        times.max().unwrap_or_default()
    }
}

/// A request with one part missing is worth nothing: which bytes a short part lacks lies between
/// others.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Outcome::Done, Outcome::Done) => Outcome::Done,
        (Outcome::Failed { error }, _) | (_, Outcome::Failed { error }) => {
            Outcome::Failed { error }
        }
        _ => Outcome::Short { bytes: Bytes(0) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::switching::Switching;

    /// Three devices, strips of 10, a switch of 1000 ns and a byte a ns.
    fn ends(requests: &[(u64, u64)]) -> Vec<u64> {
        let one = || {
            let profile = Profile::constant(Nanos(1_000), 1_000_000_000).unwrap();
            Box::new(Switching::new(profile)) as Box<dyn Device>
        };
        let mut array = Array::new((0..3).map(|_| one()).collect(), Bytes(10));
        for (id, &(at, bytes)) in (0..).zip(requests) {
            let (at, bytes) = (Bytes(at), Bytes(bytes));
            array.submit(Nanos(0), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        array.advance(Nanos(u64::MAX), &mut done);
        done.sort_unstable_by_key(|one| one.id);
        done.iter().map(|one| one.at.0).collect()
    }

    #[test]
    fn strips_go_around_and_those_of_one_device_are_one_run() {
        assert_eq!(ends(&[(0, 10), (10, 10), (20, 10)]), [1_010; 3]);
        assert_eq!(ends(&[(0, 10), (30, 10)]), [1_010, 1_020]);
        assert_eq!(ends(&[(0, 60)]), [1_020]);
        assert_eq!(ends(&[(5, 30)]), [1_010]);
    }

    #[test]
    fn one_failed_part_fails_the_request() {
        let error = forerun_core::ErrorCode(5);
        assert_eq!(worse(Outcome::Done, Outcome::Done), Outcome::Done);
        let failed = Outcome::Failed { error };
        assert_eq!(worse(Outcome::Done, failed), failed);
        let short = Outcome::Short { bytes: Bytes(7) };
        assert_eq!(
            worse(short, Outcome::Done),
            Outcome::Short { bytes: Bytes(0) }
        );
    }
}
