//! Controller: the time it adds to each access, which depends on the access before.
//!
//! A controller that has just read is set up for reading: a write then takes it longer, or less
//! long, than after another write. Published overheads of drives therefore come in pairs, after a
//! read and after a write, and an append, a write that begins where the write before ended, may
//! have its own. Of a pair, only the first has to be given:
//!
//! ```text
//! read_miss_ms = 0.61                     after a read; after a write too, unless given:
//! read_miss_after_write_ms = 0.57
//! ```

use serde::Deserialize;

use super::super::model::{ModelError, milliseconds, range};

/// Longest overhead accepted.
const OVERHEAD_MAX_MS: f64 = 10_000.0;

/// Overheads of the controller for each access.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerSheet {
    /// Before the bytes of a read that is in the cache.
    pub read_hit_ms: f64,
    /// The same, if the access before was a write.
    pub read_hit_after_write_ms: Option<f64>,
    /// Before the arm moves for one that is not.
    pub read_miss_ms: f64,
    /// The same, if the access before was a write.
    pub read_miss_after_write_ms: Option<f64>,
    /// Before the first byte of a write.
    pub write_ms: f64,
    /// The same, if the access before was a write.
    pub write_after_write_ms: Option<f64>,
    /// The same, of a write that begins where the access before, a write, ended.
    pub write_append_ms: Option<f64>,
    /// After the last byte of a read.
    pub read_end_ms: f64,
    /// After the last sector of a write.
    pub write_end_ms: f64,
    /// How much of a read must be off the surface before the bus is used, per cent.
    pub read_bus_start_percent: u32,
    /// The part of a write that must have arrived before it goes to the surface, per cent; raised
    /// as far as needed to keep the surface from overtaking the bus.
    pub write_media_start_percent: u32,
}

/// The drive's operation before this access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Before {
    /// It read, or did nothing yet.
    Read,
    /// It wrote up to this sector.
    Write { end: u64 },
}

/// An overhead by the access before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    after_read: u64,
    after_write: u64,
}

impl Overhead {
    pub(super) fn after(self, before: Before) -> u64 {
        match before {
            Before::Read => self.after_read,
            Before::Write { .. } => self.after_write,
        }
    }

    pub(super) fn least(self) -> u64 {
        self.after_read.min(self.after_write)
    }
}

/// Overheads of the controller, in nanoseconds and per cent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    pub(super) read_hit: Overhead,
    pub(super) read_miss: Overhead,
    write: Overhead,
    write_append: u64,
    pub(super) read_end: u64,
    pub(super) write_end: u64,
    pub(super) read_bus_start: u64,
    pub(super) write_media_start: u64,
}

impl Controller {
    /// The overhead of a write that begins at `first`.
    pub(super) fn write(&self, first: u64, before: Before) -> u64 {
        match before {
            Before::Write { end } if end == first => self.write_append,
            _ => self.write.after(before),
        }
    }
}

impl ControllerSheet {
    pub(super) fn check(&self) -> Result<Controller, ModelError> {
        let time = |name, ms| milliseconds(name, ms, OVERHEAD_MAX_MS).map(|time| time.0);
        let percent = |name, value: u32| range(name, value.into(), 0.0, 100.0).map(|p| p as u64);
        let pair = |name, ms: f64, name_after, ms_after: Option<f64>| {
            Ok(Overhead {
                after_read: time(name, ms)?,
                after_write: time(name_after, ms_after.unwrap_or(ms))?,
            })
        };
        let write = pair(
            "controller.write_ms",
            self.write_ms,
            "controller.write_after_write_ms",
            self.write_after_write_ms,
        )?;
        let append = self.write_append_ms;
        Ok(Controller {
            read_hit: pair(
                "controller.read_hit_ms",
                self.read_hit_ms,
                "controller.read_hit_after_write_ms",
                self.read_hit_after_write_ms,
            )?,
            read_miss: pair(
                "controller.read_miss_ms",
                self.read_miss_ms,
                "controller.read_miss_after_write_ms",
                self.read_miss_after_write_ms,
            )?,
            write,
            write_append: append.map_or(Ok(write.after_write), |ms| {
                time("controller.write_append_ms", ms)
            })?,
            read_end: time("controller.read_end_ms", self.read_end_ms)?,
            write_end: time("controller.write_end_ms", self.write_end_ms)?,
            read_bus_start: percent(
                "controller.read_bus_start_percent",
                self.read_bus_start_percent,
            )?,
            write_media_start: percent(
                "controller.write_media_start_percent",
                self.write_media_start_percent,
            )?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overhead_not_given_is_that_of_the_more_general_case() {
        let sheet = ControllerSheet {
            write_ms: 1.0,
            ..ControllerSheet::default()
        };
        let controller = sheet.check().unwrap();
        let befores = [
            Before::Read,
            Before::Write { end: 7 },
            Before::Write { end: 8 },
        ];
        let times = |c: &Controller| befores.map(|before| c.write(8, before) / 1_000_000);
        assert_eq!(times(&controller), [1, 1, 1]);
        let sheet = ControllerSheet {
            write_after_write_ms: Some(2.0),
            ..sheet
        };
        assert_eq!(times(&sheet.check().unwrap()), [1, 2, 2]);
        let sheet = ControllerSheet {
            write_append_ms: Some(3.0),
            ..sheet
        };
        assert_eq!(times(&sheet.check().unwrap()), [1, 2, 3]);
    }
}
