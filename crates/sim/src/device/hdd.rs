//! Hard disks: arm, platter, zones, controller, bus and cache, served first come first served.
//!
//! The time of an access depends on three things (Ruemmler and Wilkes, "An introduction to disk
//! drive modeling", IEEE Computer 27(3), 1994): the place of the arm, the angle of the platter at
//! that very time, and the sectors the drive has read ahead. Parameters come from a TOML file (see
//! [`model`](super::model)) through a [`Sheet`]; the listed `hdd` is a drive by its figures alone.
//!
//! ```text
//! Sheet (TOML) -> Drawing (checked, integers) -> Drive (one access after the other) -> Hdd (queue)
//!                    geometry, seek table          cache, readahead
//! ```
//!
//! Another order of service is a [`scheduler`](crate::device::scheduler) in front. It reads only; writes
//! are served by the [`Drive`] directly. A request past the end fails with EIO, as a kernel
//! answers it, after the controller has looked at it.

mod cache;
mod controller;
mod drawing;
mod drive;
mod geometry;
mod least;
mod readahead;
mod seek;
mod sheet;
mod surface;
mod write_back;

use std::sync::Arc;

use forerun_core::spec::{Knows, Method, Param, Spec, Values};
use forerun_core::{Bytes, ErrorCode, Nanos, Profile};

pub use controller::ControllerSheet;
pub use drawing::Drawing;
pub use drive::{Access, Drive};
pub use readahead::Until;
pub use seek::{Piece, SeekSheet};
pub use sheet::{BusSheet, CacheSheet, Sheet, ZoneSheet};
pub use surface::SurfaceSheet;

use super::{Built, Completion, Device, DeviceError, Outcome, Request, Usage};
use crate::device::needs::Needs;
use crate::device::server::Server;

/// The error of a read past the end: EIO.
pub const PAST_END: ErrorCode = ErrorCode(5);

pub(super) const METHOD: Method<Built> = Method {
    spec: Spec {
        name: "hdd",
        summary: "a disk by its figures: rotation, zones, seeks and a cache with readahead",
        source: "Ruemmler and Wilkes 1994; defaults of a 7200 rpm desktop disk of 2006",
        unfit: "a drive whose zones and skews are known: write its TOML file",
        knows: Knows::Online,
        params: &[
            Param {
                name: "revolutions_per_minute",
                summary: "how fast it turns",
                default: 7_200,
                min: 3_600,
                max: 20_000,
            },
            Param {
                name: "capacity_bytes",
                summary: "capacity",
                default: 160_000_000_000,
                min: 1_000_000_000,
                max: 2_000_000_000_000,
            },
            Param {
                name: "outer_bytes_per_second",
                summary: "sequential rate of the outermost zone",
                default: 67_800_000,
                min: 10_000_000,
                max: 500_000_000,
            },
            Param {
                name: "inner_percent",
                summary: "rate of the innermost zone against it; half is usual",
                default: 50,
                min: 30,
                max: 100,
            },
            Param {
                name: "seek_mean_ns",
                summary: "between random locations; single track an eighth, full stroke twice it",
                default: 8_500_000,
                min: 1_000_000,
                max: 50_000_000,
            },
            Param {
                name: "cache_bytes",
                summary: "its memory, in 16 segments; 0 is none",
                default: 8_388_608,
                min: 0,
                max: 1_073_741_824,
            },
        ],
    },
    // Every corner of the ranges is accepted: a test.
    build: |values| {
        let drawing = by_figures(values).drawing();
        let drawing = drawing.map_err(|error| DeviceError::Model("hdd", error))?;
        Ok(Box::new(Hdd::new(Arc::new(drawing))))
    },
};

/// The sheet of the listed drive. It has as many heads as keep it below 150,000 cylinders, the
/// number in drives of the time.
fn by_figures(values: &Values<'_>) -> Sheet {
    let (rpm, seek) = (
        values.get("revolutions_per_minute"),
        values.get("seek_mean_ns"),
    );
    let (capacity, cache) = (values.get("capacity_bytes"), values.get("cache_bytes"));
    let (outer, inner_percent) = (
        values.get("outer_bytes_per_second"),
        values.get("inner_percent"),
    );
    let (rpm, outer) = (rpm as f64, outer as f64 / 1e6);
    // All of a rate can come out one rounding above it.
    let inner = (outer * inner_percent as f64 / 100.0).min(outer);
    let track_bytes = inner * 1e6 * 60.0 / rpm;
    let heads = (capacity as f64 / track_bytes / 150_000.0).ceil();
    let seek_ms = seek as f64 / 1e6;
    Sheet {
        kind: "hdd".into(),
        rpm,
        tracks_per_cylinder: heads.clamp(1.0, 1000.0) as u32,
        sector_bytes: None,
        head_switch_ms: (seek_ms / 8.0).min(0.8),
        cylinder_switch_ms: None,
        write_settle_ms: 0.0,
        zero_latency_reads: false,
        zone: Vec::new(),
        surface: Some(SurfaceSheet {
            zones: None,
            capacity_gb: capacity as f64 / 1e9,
            outer_mb_s: outer,
            inner_mb_s: inner,
            mean_mb_s: None,
        }),
        seek: SeekSheet {
            track_to_track_ms: Some(seek_ms / 8.0),
            mean_ms: Some(seek_ms),
            full_stroke_ms: Some(seek_ms * 2.0),
            ..SeekSheet::default()
        },
        controller: ControllerSheet::default(),
        bus: BusSheet {
            read_bytes_per_second: 1_000_000_000,
            write_bytes_per_second: None,
        },
        cache: CacheSheet {
            segments: 16,
            segment_bytes: cache / 16,
            readahead_bytes: cache / 32,
            ..CacheSheet::default()
        },
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Hdd {
    drive: Drive,
    server: Server,
}

impl Hdd {
    /// A disk of this drawing.
    #[must_use]
    pub fn new(drawing: Arc<Drawing>) -> Self {
        Self {
            drive: Drive::new(drawing),
            server: Server::default(),
        }
    }

    /// The sectors a request touches.
    fn access(&self, request: Request) -> Access {
        let sector = self.drive.drawing().sector_bytes();
        let lbn = request.at.0 / sector;
        let sectors = match request.bytes {
            Bytes(0) => 0,
            _ => request.end().0.div_ceil(sector) - lbn,
        };
        Access {
            lbn,
            sectors,
            is_write: false,
        }
    }
}

impl Device for Hdd {
    fn profile(&self) -> Profile {
        self.drive.drawing().profile().unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let start = self.server.begin(now);
        let is_inside = request.end() <= self.drive.drawing().capacity();
        let (end, outcome) = if is_inside {
            let end = self.drive.serve(start, self.access(request));
            (end, Outcome::Done)
        } else {
            let look = self.drive.drawing().controller.read_miss.least();
            let end = Nanos(start.0.saturating_add(look));
            (end, Outcome::Failed { error: PAST_END })
        };
        self.server.serve(now, &request, end.since(start), outcome);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.server.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.server.advance(now, done);
    }

    fn usage(&self) -> Usage {
        self.server.usage()
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(self.drive.drawing().capacity())
    }

    fn least(&self, needs: &Needs) -> Nanos {
        self.drive.drawing().least(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_corner_of_the_figures_gives_a_drive() {
        let params = METHOD.spec.params;
        for corner in 0..1u32 << params.len() {
            let value = |at: usize| match corner >> at & 1 {
                0 => params[at].min,
                _ => params[at].max,
            };
            let values: Vec<u64> = (0..params.len()).map(value).collect();
            let drawing = by_figures(&Values::new(METHOD.spec.params, &values)).drawing();
            assert!(drawing.is_ok(), "{values:?}: {}", drawing.unwrap_err());
        }
    }

    #[test]
    fn a_read_past_the_end_fails_and_moves_nothing() {
        let mut device = METHOD.of(&[]).unwrap();
        let end = device.capacity().unwrap();
        for (id, at) in [(0, end.0 - 512), (1, end.0 - 511), (2, u64::MAX)] {
            let (at, bytes) = (Bytes(at), Bytes(512));
            device.submit(Nanos(0), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        device.advance(Nanos(u64::MAX), &mut done);
        assert_eq!(done[0].outcome, Outcome::Done);
        let failed = Outcome::Failed { error: PAST_END };
        assert_eq!([done[1].outcome, done[2].outcome], [failed; 2]);
    }
}
