//! Stripe: whole stripes, while the array is read as by one reader (MSP).
//!
//! The strips that are fetched from an array, one number after the other, show how many read it: a
//! single reader goes from strip to the next, perhaps with its file's metadata between; many jump.
//! A counter goes up at each step to the next strip and at each return to the strip before last,
//! and down at any other. From a threshold on windows are widened to whole stripes, more of them
//! with each step:
//!
//! ```text
//! strips   0  4  0  4  5  0  5  6  0  6      one file at 4 5 6 .., its metadata at 0
//! counter  1  0  1  2  3  2  3  4  3  4
//! ```
//!
//! Baek and Park 2009, section 4, with two slips of their Figure 7 mended: the counter falls to
//! `max(0, counter - 1)` and the number of stripes to `max(0, stripes - 1)`, and before the first
//! strip there was strip -1; only so do the numbers of the text come out. There the array has a
//! cache of its own; here the window itself is widened, so the strips of widened windows are
//! counted as their reader will come to them.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use forerun_core::shape::{Shape, StripedWindow};
use forerun_core::spec::{Knows, Method, Param, Spec, Values};
use forerun_core::{Block, DeviceId};

pub(super) const METHOD: Method<Box<dyn Shape>> = Method {
    spec: Spec {
        name: "stripe",
        summary: "whole stripes while an array is read as by one reader",
        source: "baek09 section 4, MSP",
        unfit: "many readers: disks serve two for the work of one",
        knows: Knows::Online,
        params: PARAMS,
    },
    build: |values| Box::new(Stripe::new(values)),
};

/// The values of Figure 7.
pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "threshold",
        summary: "the counter from which on windows are widened",
        default: 38,
        min: 1,
        max: 1 << 20,
    },
    Param {
        name: "most",
        summary: "how high the counter goes",
        default: 42,
        min: 1,
        max: 1 << 20,
    },
    Param {
        name: "stripes",
        summary: "the most stripes of one window",
        default: 8,
        min: 1,
        max: 1 << 16,
    },
];

/// The strips that are fetched from one array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counter {
    /// The last one and the one before; none before the first.
    last: Option<u64>,
    before: Option<u64>,
    value: u64,
}

impl Counter {
    /// Another strip, or the last one again, which says nothing. Whether it is the next one.
    pub fn step(&mut self, strip: u64, most: u64) -> bool {
        if self.last == Some(strip) {
            return false;
        }
        let next = self.last.map_or(Some(0), |last| last.checked_add(1));
        let is_next = next == Some(strip);
        self.value = match is_next || self.before == Some(strip) {
            true => (self.value + 1).min(most),
            false => self.value.saturating_sub(1),
        };
        self.before = self.last.replace(strip);
        is_next
    }

    /// How much the array is read as by one reader.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value
    }
}

#[derive(Debug, Default)]
struct Array {
    counter: Counter,
    /// Stripes of the next window.
    stripes: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Stripe {
    threshold: u64,
    most: u64,
    stripes_max: u64,
    arrays: BTreeMap<DeviceId, Array>,
}

impl Stripe {
    pub(super) fn new(values: &Values<'_>) -> Self {
        Self {
            threshold: values.get("threshold"),
            most: values.get("most").max(values.get("threshold")),
            stripes_max: values.get("stripes"),
            arrays: BTreeMap::new(),
        }
    }

    /// Where a window ends that would end there.
    pub(super) fn widen(&mut self, window: &StripedWindow<'_>, end: u64) -> u64 {
        let is_due = self.count(window, window.start.0.into(), end);
        let stripes = self.arrays.get(&array(window)).map_or(0, |a| a.stripes);
        let wide = match is_due {
            true => widened(window, end, stripes),
            false => end,
        };
        self.count(window, end, wide);
        wide
    }

    /// The strips that end behind `from`, up to `end`, are fetched. Whether one was the next one
    /// and the array is read as by one reader.
    fn count(&mut self, window: &StripedWindow<'_>, from: u64, end: u64) -> bool {
        let mut is_due = false;
        for (strip, _) in window.strips(end).filter(|(_, behind)| *behind > from) {
            let array = self.arrays.entry(array(window)).or_default();
            let is_next = array.counter.step(strip.number, self.most);
            if array.counter.value() < self.threshold {
                array.stripes = array.stripes.saturating_sub(1);
            } else if is_next {
                array.stripes = (array.stripes + 1).min(self.stripes_max);
                is_due = true;
            }
        }
        is_due
    }
}

/// Which array a window lies on: the first of its devices.
fn array(window: &StripedWindow<'_>) -> DeviceId {
    window.layout.devices().next().unwrap_or_default()
}

/// So many stripes on from a window that would end at `end`, that of its last block included.
fn widened(window: &StripedWindow<'_>, end: u64, stripes: u64) -> u64 {
    let mut wide = end;
    let mut last = end.saturating_sub(1);
    for _ in 0..stripes {
        let block = u32::try_from(last).ok().filter(|_| last < window.room);
        let Some(strip) = block.and_then(|block| window.layout.strip(Block(block))) else {
            break;
        };
        wide = last + u64::from(strip.left_of_stripe);
        last = wide;
    }
    wide.min(window.room).max(end)
}

impl Shape for Stripe {
    fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
        self.widen(window, window.end)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use alloc::vec::Vec;
    use forerun_core::Bytes;
    use forerun_core::layout::{LayoutMap, Placement};

    const BLOCK: u32 = 4096;

    /// Strips of 4 blocks on 4 disks.
    pub(in crate::shape) fn array() -> LayoutMap {
        let strip = Bytes(u64::from(4 * BLOCK));
        let placement = Placement::raid0(strip, (0..4).map(DeviceId), Bytes(0));
        LayoutMap::new(&placement.unwrap(), BLOCK).unwrap()
    }

    /// A window there.
    pub(in crate::shape) fn window(
        layout: &LayoutMap,
        start: u32,
        wanted: u64,
        end: u64,
    ) -> StripedWindow<'_> {
        StripedWindow {
            start: Block(start),
            end,
            wanted,
            room: 1 << 20,
            layout,
        }
    }

    /// Figure 7 with a threshold of 3, at most 5, at most 2 stripes: windows of a strip, then far seeks, then strips again.
    #[test]
    fn windows_grow_by_stripes_from_the_threshold_on_and_shrink_below_it() {
        let mut stripe = METHOD.of(&[3, 5, 2]);
        let array = array();
        let mut end = |at: u32| {
            let at_least = u64::from(at);
            stripe.end(&window(&array, at, at_least + 1, at_least + 4))
        };
        let mut ends = Vec::new();
        let mut next = 0;
        for _ in 0..5 {
            next = end(next) as u32;
            ends.push(next);
        }
        // The third strip in a row reaches the threshold: a stripe from its last block on, then two.
        assert_eq!(ends, [4, 8, 16, 48, 80]);
        // Seeks: the counter falls from 5 to 2, and with it the stripes to one.
        let far = [1000, 3000, 5000];
        assert_eq!(far.map(|at| end(at) - u64::from(at)), [4; 3]);
        // Strip 0 is one more, which leaves no stripe; the third one in a row widens its window by one again.
        assert_eq!([0, 4, 8].map(end), [4, 8, 16]);
    }

    #[test]
    fn metadata_between_the_strips_of_a_file_does_not_hide_its_reader() {
        let mut counter = Counter::default();
        let strips = [0, 4, 0, 4, 5, 0, 5, 6, 0, 6];
        let values: Vec<u64> = strips
            .iter()
            .map(|strip| {
                counter.step(*strip, 42);
                counter.value()
            })
            .collect();
        assert_eq!(values, [1, 0, 1, 2, 3, 2, 3, 4, 3, 4]);
    }
}
