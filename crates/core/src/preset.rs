//! Presets: named compositions of methods, ready to use.
//!
//! Read by the command line and the simulator; a preset with a memory size becomes
//! [`Settings`]. Here stand the presets that users get; each names the [lists](Methods) its methods are
//! in, so that other crates have presets, too.

use crate::methods::{Methods, SHIPPED};
use crate::settings::{Settings, SettingsError};
use crate::spec::Choice;
use crate::units::Bytes;

/// A named composition.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name as the user types it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paper and section, or kernel version.
    pub source: &'static str,
    /// Detect method, with parameters that differ from its defaults.
    pub detect: &'static str,
    /// Depth method.
    pub depth: &'static str,
    /// Where windows end on striped arrays.
    pub shape: &'static str,
    /// Dispatch method.
    pub dispatch: &'static str,
    /// Reclaim method.
    pub reclaim: &'static str,
    /// Policy that follows hints, or `none`.
    pub hinted: &'static str,
    /// See [`Settings::unread_percent`].
    pub unread_percent: u8,
    /// How the file that is opened next is predicted.
    pub next_file: &'static str,
    /// Where the costs of devices come from.
    pub measure: &'static str,
    /// Most requests a device is given at once.
    pub in_flight_max: u32,
    /// The lists in which its methods are.
    pub methods: &'static Methods,
}

/// Name of the preset used when none is given.
pub const DEFAULT: &str = "forerun";

/// Name of the preset for a program that reads its files once and ends.
pub const ONCE: &str = "once";

/// Three quarters of the memory for blocks not read yet: one-pass readers need memory
/// ahead of them, and the last quarter keeps demand reads and blocks read just now.
const UNREAD_PERCENT: u8 = 75;

/// A store of 30 ms and 2 GB/s has so many requests of a quarter of a mebibyte at once, as they are
/// where memory is short. A device that is measured gets no more than it works on.
const IN_FLIGHT_MAX: u32 = 256;

/// The default, of which those for other surroundings differ in a method or two.
const FORERUN: Preset = Preset {
    name: "forerun",
    summary: "the default: on-demand detection, growing competitive depth, slices, bounded streams, \
              forestall where reads are announced",
    source: "wu10 section 4; li04 section 2, extended; kimbrel96 section 5",
    detect: "ondemand(context=1,patterns=1)",
    depth: "growing",
    shape: "cost",
    dispatch: "continuing",
    reclaim: "lru(spare=3)",
    hinted: "forestall",
    unread_percent: UNREAD_PERCENT,
    next_file: "none",
    measure: "online",
    in_flight_max: IN_FLIGHT_MAX,
    methods: &SHIPPED,
};

/// The shipped presets. One entry a preset.
pub static LIST: &[Preset] = &[
    FORERUN,
    Preset {
        name: "once",
        summary: "forerun for files that are read once: gives up blocks once read, and uses little memory",
        source: "as forerun; li05 section 3.1",
        reclaim: "exclusive(keep_percent=6)",
        ..FORERUN
    },
    Preset {
        name: "mount",
        summary: "forerun below another cache: keeps blocks not read yet, gives up the others",
        source: "as forerun; li05 section 3.1",
        reclaim: "exclusive(keep_percent=6)",
        next_file: "directory",
        ..FORERUN
    },
];

/// The shipped preset of that name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    LIST.iter().find(|preset| preset.name == name)
}

/// The preset used when none is given: the first of the list.
#[must_use]
pub fn default() -> &'static Preset {
    &LIST[0]
}

impl Preset {
    /// The preset with this much memory, in 4 KiB blocks, with a longest fetch of 1 MiB.
    ///
    /// 1 MiB is where a request's fixed cost no longer shows on any device of today, and a reader
    /// gets its first bytes before a long window is complete.
    ///
    /// # Errors
    /// Memory below the minimum or above the maximum.
    pub fn settings(&self, memory: Bytes) -> Result<Settings, SettingsError> {
        let methods = self.methods;
        let settings = Settings {
            memory,
            block_bytes: 4096,
            detect: Choice::parse("detect", methods.detect, self.detect)?,
            depth: Choice::parse("depth", methods.depth, self.depth)?,
            dispatch: Choice::parse("dispatch", methods.dispatch, self.dispatch)?,
            reclaim: Choice::parse("reclaim", methods.reclaim, self.reclaim)?,
            shape: Choice::parse("shape", methods.shape, self.shape)?,
            hinted: methods.hinted(self.hinted)?,
            request_max: Bytes(1 << 20),
            in_flight_max: self.in_flight_max,
            unread_percent: self.unread_percent,
            next_file: methods.next_file(self.next_file)?,
            measure: Choice::parse("measure", methods.measure, self.measure)?,
        };
        settings.check()?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn every_preset_builds_and_survives_its_journal_line() {
        for preset in LIST {
            let settings = preset.settings(Bytes(64 << 20)).unwrap();
            let line = settings.to_string();
            assert_eq!(
                Settings::parse(&line, preset.methods),
                Ok(settings.clone()),
                "{}",
                preset.name
            );
        }
    }

    #[test]
    fn a_settings_line_without_a_field_is_refused_by_its_name() {
        let line = LIST[0].settings(Bytes(64 << 20)).unwrap().to_string();
        let fields: Vec<&str> = line.split(' ').collect();
        for (place, field) in fields.iter().enumerate() {
            let (name, _) = field.split_once('=').unwrap();
            let others: Vec<&str> = [&fields[..place], &fields[place + 1..]].concat();
            let error = Settings::parse(&others.join(" "), &SHIPPED).unwrap_err();
            let expected = alloc::format!("{name}= expected");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }

    #[test]
    fn the_default_is_the_one_that_is_named() {
        assert_eq!(default().name, DEFAULT);
    }
}
