//! The least time a drive takes for a set of sectors: no order of requests does better.
//!
//! The surface and the bus each work one piece after the other, with or without cache and
//! readahead, and the longer of the two is the bound:
//!
//! ```text
//! surface  read_miss | sectors of a track | switch | sectors of another track | .. | bus, end
//! bus      requests * (overhead | end) + all bytes at the rate of the bus
//! ```
//!
//! Each needed sector passes under the heads at least once, at the rate of its own zone. Between
//! passes on two different tracks there is at least the shortest of three times: the arm moves or
//! the heads change; a request that is not cached is looked at first (by then an arm that was
//! reading on may have got to the next track); reading on waits for the skew between a track and
//! the next. No skew is promised where a zone begins or a track is slipped over, so those tracks
//! count for nothing, nor does the first of all. The cache is empty at first, so the first request
//! has to go to the surface. Rotation and distance are left out: a run can have luck.
//!
//! A slot takes `revolution / sectors per track`, and angles are rounded down to a nanosecond: a
//! run of slots may be a nanosecond short, so each sector counts for the time rounded down.

use forerun_core::Nanos;

use super::drawing::Drawing;
use super::geometry::Zone;
use crate::device::needs::Needs;

impl Drawing {
    /// See the [module](self).
    pub(super) fn least(&self, needs: &Needs) -> Nanos {
        if needs.is_empty() {
            return Nanos(0);
        }
        Nanos(self.surface_least(needs).max(self.bus_least(needs)))
    }

    fn surface_least(&self, needs: &Needs) -> u64 {
        let controller = &self.controller;
        let mut time = controller.read_miss.least();
        let zones = self.geometry.zones();
        // Of each zone the tracks, and the one after the last one counted.
        let mut tracks = vec![(0u64, 0u64); zones.len()];
        let mut counted = 0;
        for run in needs.runs() {
            let begin = (run.at.0 / self.sector).max(counted);
            let end = run.end().div_ceil(self.sector);
            counted = counted.max(end);
            for (zone, tracks) in zones.iter().zip(&mut tracks) {
                let (first, last) = (begin.max(zone.first_lbn), end.min(zone.end_lbn));
                if first >= last {
                    continue;
                }
                let slot = self.revolution / zone.sectors_per_track;
                time = time.saturating_add((last - first).saturating_mul(slot));
                let (from, to) = (track(zone, first), track(zone, last - 1) + 1);
                tracks.0 += to.saturating_sub(from.max(tracks.1));
                tracks.1 = to;
            }
        }
        let sure = zones.iter().zip(&tracks).map(|(zone, (tracks, _))| {
            let unsure = 1 + zone.slipped.len() as u64;
            match zone.spare_sectors {
                0 => tracks.saturating_sub(unsure),
                // Spare and slipped sectors move the others on to tracks not counted here.
                _ => 0,
            }
        });
        let sure = sure.sum::<u64>().saturating_sub(1);
        let switches = sure.saturating_mul(self.switch_least());
        let passed = self.host_takes(1).saturating_add(controller.read_end);
        time.saturating_add(switches).saturating_add(passed)
    }

    /// The least between the end of one track and the beginning of another.
    fn switch_least(&self) -> u64 {
        let seeks = self.seek.iter().skip(1).copied().min();
        let seek = seeks.map_or(u64::MAX, u64::from);
        let moved = seek.min(self.head_switch).min(self.cylinder_switch);
        let skews = self.geometry.zones().iter().map(|zone| {
            let n = zone.sectors_per_track;
            let least = (zone.track_skew % n).min(zone.cylinder_skew % n);
            // Both ends of it are rounded.
            (least * self.revolution / n).saturating_sub(2)
        });
        let skew = skews.min().unwrap_or(0);
        moved.min(self.controller.read_miss.least()).min(skew)
    }

    /// Each request has its overhead, and its bytes pass the bus; one request is served at a time.
    fn bus_least(&self, needs: &Needs) -> u64 {
        let controller = &self.controller;
        let overhead = controller
            .read_hit
            .least()
            .min(controller.read_miss.least());
        let each = overhead.saturating_add(controller.read_end);
        let bus = self.host_takes(needs.touched(self.sector));
        each.saturating_mul(needs.requests()).saturating_add(bus)
    }
}

/// The track of a sector, counted in its zone; those that hold nothing left out.
fn track(zone: &Zone, lbn: u64) -> u64 {
    (lbn - zone.first_lbn) / zone.sectors_per_track
}
