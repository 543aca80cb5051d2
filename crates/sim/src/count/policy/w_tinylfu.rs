//! W-TinyLFU: a small LRU window, and a segmented LRU into which only objects come that are used more often.
//!
//! What leaves the window is compared with what the main part would give up next, by how often each was used
//! lately, and the more frequent one stays. Uses are counted up to 15 and all counts are halved after ten times as
//! many references as objects are resident, so a loop longer than that finds no counts. The paper counts in a sketch of a few bits an object, which may
//! count too much; here objects are numbered and each has a count of its own, which is the sketch without its
//! errors and without the filter in front of it.

use forerun_core::spec::{Method, Param};

use super::queues::Queues;
use super::{Build, Policy, share, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "w-tinylfu",
        "an LRU window, and behind it objects that are used more often than what they replace",
        "Einziger, Friedman, Manes, TinyLFU, ACM TOS 2017 (W-TinyLFU)",
        "bursts of new objects, which the window is too small for",
        &[
            Param {
                name: "window_per_mille",
                summary: "share of the window; a hundredth in the paper",
                default: 10,
                min: 1,
                max: 999,
            },
            Param {
                name: "sample_per_object",
                summary: "references for each resident object until counts are halved; 10 as in Caffeine",
                default: 10,
                min: 1,
                max: 1 << 20,
            },
        ],
    ),
    build: |v| {
        let (part, sample) = (v.get("window_per_mille"), v.get("sample_per_object"));
        Box::new(move |capacity, objects| {
            let window = share(capacity, part);
            let main = capacity - window;
            Box::new(WTinyLfu {
                capacity,
                sample,
                window,
                main,
                protected: main / 10 * 8 + main % 10 * 8 / 10,
                queues: Queues::new(objects),
                uses: Vec::with_capacity(objects),
                counted: 0,
                halvings: 0,
            })
        })
    },
};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// Uses that are counted at most, four bits.
const USES_MAX: u8 = 15;

/// A count in the lowest four bits, as it was after so many halvings, which are above: those since are done when it is
/// looked at. After 2^28 halvings counts are halved no more.
#[derive(Clone, Copy, Debug, Default)]
struct Uses(u32);

const HALVINGS_MAX: u32 = u32::MAX >> 4;

impl Uses {
    fn new(count: u8, halvings: u32) -> Self {
        Self(halvings << 4 | u32::from(count))
    }

    fn count(self, halvings: u32) -> u8 {
        let count = (self.0 & u32::from(USES_MAX)) as u8;
        count.checked_shr(halvings - (self.0 >> 4)).unwrap_or(0)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
struct WTinyLfu {
    capacity: u64,
    sample: u64,
    window: u64,
    main: u64,
    protected: u64,
    queues: Queues<3>,
    uses: Vec<Uses>,
    /// References counted since the last halving, and halvings so far.
    counted: u64,
    halvings: u32,
}

impl Policy for WTinyLfu {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        self.count(object);
        match self.queues.place(object) {
            Some(PROBATION) => {
                self.queues.bring_front(PROTECTED, object);
                while self.queues.weight(PROTECTED) > self.protected {
                    self.queues.shift(PROTECTED, PROBATION);
                }
                return true;
            }
            Some(queue) => {
                self.queues.bring_front(queue, object);
                return true;
            }
            None => {}
        }
        if u64::from(weight) <= self.capacity {
            self.queues.push(WINDOW, object, weight);
            while self.queues.weight(WINDOW) > self.window {
                self.admit();
            }
        }
        false
    }

    fn resident(&self) -> u64 {
        (WINDOW..=PROTECTED)
            .map(|queue| self.queues.weight(queue))
            .sum()
    }
}

impl WTinyLfu {
    fn count(&mut self, object: u32) {
        let at = object as usize;
        if at >= self.uses.len() {
            self.uses.resize(at + 1, Uses::default());
        }
        let count = (self.uses(object) + 1).min(USES_MAX);
        self.uses[at] = Uses::new(count, self.halvings);
        self.counted += 1;
        let resident: u64 = (WINDOW..=PROTECTED)
            .map(|queue| self.queues.objects(queue))
            .sum();
        if self.counted >= self.sample.saturating_mul(resident.max(1)) {
            self.counted /= 2;
            self.halvings = (self.halvings + 1).min(HALVINGS_MAX);
        }
    }

    /// The uses of an object of late.
    fn uses(&self, object: u32) -> u8 {
        self.uses[object as usize].count(self.halvings)
    }

    /// Brings the last object of the window into the main part, or gives it up.
    fn admit(&mut self) {
        let Some((candidate, weight)) = self.queues.pop(WINDOW) else {
            return;
        };
        if u64::from(weight) > self.main {
            return;
        }
        let main = |queues: &Queues<3>| queues.weight(PROBATION) + queues.weight(PROTECTED);
        while main(&self.queues) + u64::from(weight) > self.main {
            let probation = self.queues.back(PROBATION);
            let Some(victim) = probation.or_else(|| self.queues.back(PROTECTED)) else {
                return;
            };
            if self.uses(candidate) <= self.uses(victim) {
                return;
            }
            self.queues.remove(victim);
        }
        self.queues.push(PROBATION, candidate, weight);
    }
}
