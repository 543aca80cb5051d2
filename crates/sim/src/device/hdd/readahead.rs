//! Readahead of the drive itself: sectors that the heads read after a request.
//!
//! If no request needs the arm before, readahead ends at the smallest of three limits: a number of
//! bytes beyond the read, the end of the surface, and one that depends on the drive:
//!
//! ```text
//! bytes       none
//! segment     the cache segment is full with the read at its front
//! track       the end of the track of the last sector
//! cylinder    the end of its cylinder
//! next_track  the end of the track; of the track after, if the run began on a track before
//! ```
//!
//! Some drives read on only once they see a run (`readahead_needs_run`): the first read of one is
//! followed by nothing, and the second misses the cache. Some read on up to the limit even when a
//! request waits (`readahead_yields = false`).

use serde::Deserialize;

use super::drawing::Drawing;

/// The latest end of readahead; see the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Only `readahead_bytes` count.
    #[default]
    Bytes,
    /// The segment is full.
    Segment,
    /// The end of the track.
    Track,
    /// The end of the cylinder.
    Cylinder,
    /// The end of the track, or of the next one in a sequential run.
    NextTrack,
}

/// Reading on after a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) segment: usize,
    /// The next sector to be read.
    pub(super) next: u64,
    /// When the heads are free to read it.
    pub(super) at: u64,
    /// The sector at which readahead stops.
    pub(super) limit: u64,
}

impl Drawing {
    /// The end of readahead after a read of `first` to `end`, in a run held from `held` on.
    pub(super) fn readahead_limit(&self, held: u64, first: u64, end: u64) -> u64 {
        let limit = end.saturating_add(self.readahead_sectors);
        let limit = limit.min(self.sectors());
        if self.readahead_needs_run && held >= first {
            return end;
        }
        // Nothing to read on, or a read of nothing.
        if limit <= end || end <= first {
            return limit;
        }
        let last = end - 1;
        let until = match self.readahead_until {
            Until::Bytes => return limit,
            Until::Segment => first.saturating_add(self.segment_sectors),
            Until::Track => self.geometry.end_around(last, false),
            Until::Cylinder => self.geometry.end_around(last, true),
            Until::NextTrack => {
                let next = self.geometry.locate(end);
                let begin = self.geometry.locate(held);
                let track = self.geometry.end_around(end, false);
                let is_sequential = (begin.cylinder, begin.head) != (next.cylinder, next.head);
                if is_sequential && track < limit {
                    self.geometry.end_around(track, false)
                } else {
                    track
                }
            }
        };
        until.clamp(end, limit)
    }
}
