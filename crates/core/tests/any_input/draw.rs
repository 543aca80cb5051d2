//! Draws: numbers, settings and profiles out of a run of bytes.
//!
//! The bytes come from a fuzzer or from proptest, so that either can shorten a run that fails. When
//! they are used up every number is 0.

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::layout::{Array, MappedExtent};
use forerun_core::profile::{POINTS_MAX, RATE_RANGE, SERVERS_MAX, SWITCHING_MAX};
use forerun_core::spec::{Choice, Method, Param};
use forerun_core::table::Table;
use forerun_core::{Bytes, DeviceId, Nanos, Placement, Profile, Settings, layout};

/// The bytes that are left.
#[derive(Debug)]
pub(crate) struct Draw<'a>(pub(crate) &'a [u8]);

impl Draw<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn short(&mut self) -> u32 {
        u32::from(self.byte()) << 8 | u32::from(self.byte())
    }

    /// A number of as many bytes as the first one says, up to eight: small ones as likely as large.
    pub(crate) fn any(&mut self) -> u64 {
        let bytes = self.byte() % 9;
        (0..bytes).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// As [`any`](Self::any), of at most four bytes.
    pub(crate) fn word(&mut self) -> u32 {
        self.any() as u32
    }

    /// A number below `bound`, which is at most 256.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// From `low` to `high`: either end, or anything between.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        match self.below(4) {
            0 => low,
            1 => high,
            _ => low + self.any() % (high - low).saturating_add(1),
        }
    }

    /// A method of a family, with any values its parameters may have.
    fn method<B>(&mut self, list: &'static [Method<B>]) -> Choice<B> {
        let method = &list[self.below(list.len())];
        let mut choice = Choice::of(method);
        let own = self.flag();
        for Param { name, min, max, .. } in method.spec.params {
            if own {
                let value = self.between(*min, *max);
                choice = choice.with(name, value).expect("a value of the range");
            }
        }
        choice
    }

    /// Settings of any kind: a preset's or any composition, any value for each figure.
    pub(crate) fn settings(&mut self) -> Settings {
        let preset = &PRESETS[self.below(PRESETS.len())];
        let mut settings = preset.settings(Bytes(64 << 20)).expect("64 MiB will do");
        if self.flag() {
            settings.detect = self.method(METHODS.detect);
            settings.depth = self.method(METHODS.depth);
            settings.shape = self.method(METHODS.shape);
            settings.dispatch = self.method(METHODS.dispatch);
            settings.reclaim = self.method(METHODS.reclaim);
        }
        if self.flag() {
            settings.measure = self.method(METHODS.measure);
        }
        settings.next_file = match self.below(3) {
            0 => settings.next_file,
            1 => None,
            _ => Some(self.method(METHODS.next_file)),
        };
        if self.flag() {
            settings.block_bytes = 512 << self.below(12);
            settings.request_max.0 = self.between(u64::from(settings.block_bytes), 1 << 30);
            settings.in_flight_max = self.between(1, 1024) as u32;
            settings.unread_percent = self.between(1, 100) as u8;
        }
        settings.hinted = match self.below(3) {
            0 => settings.hinted,
            1 => None,
            _ => Some(self.method(METHODS.hinted)),
        };
        let least = Table::memory_for(Table::FRAMES_MIN, settings.block_bytes);
        settings.memory.0 = least.0 + self.any() % (4 << 20);
        settings
    }

    /// A device of any kind, with any number of servers or none said.
    pub(crate) fn profile(&mut self) -> Profile {
        let (low, high) = (*RATE_RANGE.start(), *RATE_RANGE.end());
        let points = 1 + self.below(POINTS_MAX + 1).min(self.below(POINTS_MAX));
        let (mut costs, mut rates, mut at) = (Vec::new(), Vec::new(), 0u64);
        for _ in 0..points {
            costs.push((Bytes(at), Nanos(self.between(0, SWITCHING_MAX.0))));
            rates.push((Bytes(at), self.between(low, high)));
            at = at.saturating_add(1).saturating_add(self.any());
        }
        // Too many points, or two at the end of all numbers, are refused.
        let profile = Profile::new(costs, rates).unwrap_or_default();
        let servers = match self.below(12) {
            servers @ 0..=8 => servers as u32,
            9 => SERVERS_MAX,
            10 => self.word(),
            _ => return profile,
        };
        profile.clone().with_servers(servers).unwrap_or(profile)
    }

    /// A layout over some of the first `devices`, mostly of whole blocks.
    pub(crate) fn placement(&mut self, devices: u16, block_bytes: u64) -> Placement {
        let arrays = (0..=self.below(8) / 7).map(|_| self.array(devices, block_bytes));
        let arrays: Vec<Array> = arrays.collect();
        let mut offset = 0;
        let extents = (0..self.below(8).saturating_sub(4)).map(|_| {
            let extent = MappedExtent {
                offset: Bytes(offset * block_bytes),
                // Sometimes one that is not there, or a place within a block.
                array: (self.below(3 * arrays.len()) / 3 + self.below(16) / 15) as u16,
                at: Bytes(self.below(100) as u64 * block_bytes + self.below(16) as u64 / 15),
            };
            offset += self.below(40) as u64;
            extent
        });
        let extents = extents.collect();
        Placement { arrays, extents }
    }

    fn array(&mut self, devices: u16, block_bytes: u64) -> Array {
        let mut layout = self.method(layout::LIST);
        let whole_blocks = self.below(4) > 0;
        // The first parameter is the strip.
        if let Some(Param { name, min, max, .. }) = layout.spec().params.first() {
            let blocks = u64::from(self.byte()) % 40 + 1;
            if whole_blocks {
                let strip = (blocks * block_bytes).clamp(*min, *max);
                layout = layout.with(name, strip).expect("a strip of the range");
            }
        }
        let members = match (layout.spec().name, self.below(4)) {
            (_, 0) => self.below(6),
            ("linear", _) => 1,
            ("raid10", more) => more * layout.value("copies").map_or(1, |copies| copies as usize),
            ("raid5" | "raid6", more) => more + 2,
            (_, more) => more,
        };
        let member = |_| {
            let device = DeviceId(self.below(devices.into()) as u16);
            (device, Bytes(self.any()))
        };
        let members = (0..members).map(member).collect();
        Array { layout, members }
    }
}
