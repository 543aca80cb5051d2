//! Presets: named compositions of methods, ready to use.
//!
//! Read by the command line and the simulator; a preset with a memory size becomes
//! [`Settings`]. Adding one is an entry in [`LIST`].

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::settings::{Hinting, Settings, SettingsError, parse_hinted};
use crate::spec::Choice;
use crate::units::Bytes;
use crate::{depth, detect, dispatch, measure, next_file, reclaim, shape, split};

/// A named composition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// Where the memory is split, if the reclaim method has a prefetch cache.
    pub split: &'static str,
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
}

/// Name of the preset used when none is given.
pub const DEFAULT: &str = "forerun";

/// Name of the preset for a program that reads its files once and ends.
pub const ONCE: &str = "once";

/// Three quarters of the memory for blocks not read yet: one-pass readers need memory
/// ahead of them, and the last quarter keeps demand reads and blocks read just now.
const UNREAD_PERCENT: u8 = 75;

/// Settings that the baselines share.
const BASE: Preset = Preset {
    name: "",
    summary: "",
    source: "",
    detect: "ondemand",
    depth: "fixed",
    shape: "whole",
    dispatch: "fifo",
    reclaim: "lru",
    split: "fixed",
    hinted: "none",
    unread_percent: 100,
    next_file: "none",
    measure: "given",
    // They keep a flash array or a remote store busy with 1 MiB each.
    in_flight_max: 64,
};

/// A store of 30 ms and 2 GB/s has so many requests of a quarter of a mebibyte at once, as they are
/// where memory is short. A device that is measured gets no more than it works on.
const IN_FLIGHT_MAX: u32 = 256;

/// The default, of which those for other surroundings differ in a method or two.
const FORERUN: Preset = Preset {
    name: "forerun",
    summary: "the default: on-demand detection, growing competitive depth, slices, bounded streams, \
              forestall where reads are announced",
    source: "wu10 section 4; li04 section 2, extended; kimbrel96 section 5",
    detect: "ondemand(density_percent=50,context=1,patterns=1)",
    depth: "growing",
    shape: "cost",
    dispatch: "continuing",
    reclaim: "lru",
    split: "fixed",
    hinted: "forestall",
    unread_percent: UNREAD_PERCENT,
    next_file: "none",
    measure: "online",
    in_flight_max: IN_FLIGHT_MAX,
};

/// The server of Li and Shen 2005, section 4: windows of at most 512 KiB. Their six kernels differ
/// in reclaim alone.
const SERVER: Preset = Preset {
    depth: "fixed(depth_bytes=524288)",
    split: "gradient",
    ..BASE
};

/// The kernel of Baek and Park 2009, section 5.1: Linux 2.6.18 on a striped array.
const ARRAY: Preset = Preset {
    detect: "legacy",
    ..BASE
};

/// All presets. One entry a preset.
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
    Preset {
        name: "cp",
        summary: "competitive prefetching: on-demand detection, competitive depth",
        source: "li04 sections 2 and 3",
        depth: "competitive",
        ..BASE
    },
    Preset {
        name: "ap",
        summary: "aggressive prefetching: on-demand detection, 1 MiB depth",
        source: "li04 section 4",
        depth: "fixed(depth_bytes=1048576)",
        ..BASE
    },
    Preset {
        name: "linux-2.6.24",
        summary: "on-demand readahead, 128 KiB: Linux since 2.6.23",
        source: "wu10 section 4",
        ..BASE
    },
    Preset {
        name: "linux-2.6.22",
        summary: "legacy readahead with two windows, 128 KiB: Linux 2.6.0 to 2.6.22",
        source: "wu10 section 3.2",
        detect: "legacy",
        ..BASE
    },
    Preset {
        name: "seqp",
        summary: "legacy readahead, 128 KiB, that takes an array for one disk: Linux 2.6.18",
        source: "Baek and Park 2009 section 2.4, SEQP",
        ..ARRAY
    },
    Preset {
        name: "saseqp",
        summary: "the same, each window cut at the end of its strip",
        source: "Baek and Park 2009 section 3, SASEQP",
        shape: "strip",
        ..ARRAY
    },
    Preset {
        name: "msp+seqp",
        summary: "as seqp, with whole stripes while the array is read as by one reader",
        source: "Baek and Park 2009 section 4, MSP",
        shape: "stripe",
        ..ARRAY
    },
    Preset {
        name: "msp+saseqp",
        summary: "single strips, and whole stripes while the array is read as by one reader",
        source: "Baek and Park 2009 section 4, MSP+SASEQP",
        shape: "both",
        ..ARRAY
    },
    Preset {
        name: "access-history",
        summary: "on-demand readahead, 512 KiB, blocks fetched ahead and read in one two-list LRU",
        source: "Li and Shen 2005 section 4.2, AccessHistory",
        split: "fixed",
        ..SERVER
    },
    Preset {
        name: "pc-access-history",
        summary: "the same with a prefetch cache: the block that arrived first goes first",
        source: "Li and Shen 2005 section 4.2, PC-AccessHistory",
        reclaim: "fifo",
        ..SERVER
    },
    Preset {
        name: "pc-longest",
        summary: "the same: the last block of the longest stream goes first",
        source: "Li and Shen 2005 section 3.1, PC-Longest",
        reclaim: "longest",
        ..SERVER
    },
    Preset {
        name: "pc-coldest",
        summary: "the same: the last block of the stream not accessed for longest goes first",
        source: "Li and Shen 2005 section 3.1, PC-Coldest",
        reclaim: "coldest",
        ..SERVER
    },
    Preset {
        name: "pc-coldest+",
        summary: "the same: the last block of the stream whose owner has computed most since its access",
        source: "Li and Shen 2005 section 3.1, PC-Coldest+",
        reclaim: "coldest-cpu",
        ..SERVER
    },
    Preset {
        name: "pc-optimal",
        summary: "the same: blocks that their owners do not announce go first, the rest as in pc-coldest+",
        source: "Li and Shen 2005 section 4.2, the approximated optimum",
        reclaim: "furthest",
        ..SERVER
    },
    Preset {
        name: "one-block",
        summary: "one block ahead of every sequential read",
        source: "kimbrel96 section 1",
        detect: "one-block",
        ..BASE
    },
    Preset {
        name: "none",
        summary: "demand reads only",
        source: "baseline",
        detect: "none",
        ..BASE
    },
];

/// No preset of that name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPreset {
    /// The name given.
    pub name: String,
    /// Known names, the nearest first.
    pub nearest: Vec<&'static str>,
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no preset {:?}: nearest are {}",
            self.name,
            self.nearest.join(", ")
        )
    }
}

impl core::error::Error for UnknownPreset {}

/// The preset of that name.
///
/// # Errors
/// An unknown name, with the three nearest known ones.
pub fn find(name: &str) -> Result<&'static Preset, UnknownPreset> {
    LIST.iter()
        .find(|p| p.name == name)
        .ok_or_else(|| UnknownPreset {
            name: name.to_string(),
            nearest: nearest(name, LIST.iter().map(|p| p.name)),
        })
}

/// The three known names nearest to `name`: names that contain it or that it contains come first, then
/// those with fewer letters to change.
#[must_use]
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut nearest: Vec<&'static str> = known.collect();
    let is_part = |known: &str| !name.is_empty() && (known.contains(name) || name.contains(known));
    nearest.sort_by_key(|known| (!is_part(known), edit_distance(name, known)));
    nearest.truncate(3);
    nearest
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
        let settings = Settings {
            memory,
            block_bytes: 4096,
            detect: Choice::parse("detect", detect::LIST, self.detect)?,
            depth: Choice::parse("depth", depth::LIST, self.depth)?,
            dispatch: Choice::parse("dispatch", dispatch::LIST, self.dispatch)?,
            reclaim: Choice::parse("reclaim", reclaim::LIST, self.reclaim)?,
            split: Choice::parse("split", split::LIST, self.split)?,
            shape: Choice::parse("shape", shape::LIST, self.shape)?,
            hinted: parse_hinted(self.hinted)?,
            hinting: Hinting::default(),
            request_max: Bytes(1 << 20),
            in_flight_max: self.in_flight_max,
            unread_percent: self.unread_percent,
            next_file: Choice::parse("next_file", next_file::LIST, self.next_file)?,
            measure: Choice::parse("measure", measure::LIST, self.measure)?,
        };
        settings.check()?;
        Ok(settings)
    }
}

/// Fewest insertions, deletions and replacements that turn one name into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Notice;

    #[test]
    fn every_preset_builds_and_survives_its_journal_line() {
        for preset in LIST {
            let settings = preset.settings(Bytes(64 << 20)).unwrap();
            assert_eq!(
                settings.to_string().parse(),
                Ok(settings.clone()),
                "{}",
                preset.name
            );
            let hinting = Hinting {
                notice: Notice::AtReads,
                exact: true,
                blocks: 1280,
            };
            let settings = Settings {
                hinting,
                ..settings
            };
            assert_eq!(settings.to_string().parse(), Ok(settings));
        }
    }

    #[test]
    fn a_settings_line_without_a_field_is_refused_by_its_name() {
        let line = LIST[0].settings(Bytes(64 << 20)).unwrap().to_string();
        let fields: Vec<&str> = line.split(' ').collect();
        for (place, field) in fields.iter().enumerate() {
            let (name, _) = field.split_once('=').unwrap();
            let others: Vec<&str> = [&fields[..place], &fields[place + 1..]].concat();
            let error = others.join(" ").parse::<Settings>().unwrap_err();
            let expected = alloc::format!("{name}= expected");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }

    #[test]
    fn the_default_is_the_one_that_is_named() {
        assert_eq!(default().name, DEFAULT);
    }

    #[test]
    fn a_misspelt_preset_is_answered_with_the_nearest_names() {
        assert_eq!(find("forrun").unwrap_err().nearest[0], "forerun");
        assert_eq!(find("linux-2.6.23").unwrap_err().nearest.len(), 3);
        let known = ["cp", "ap", "demand-lru", "lru-cp"].into_iter();
        assert_eq!(
            nearest("lru", known.clone()),
            ["lru-cp", "demand-lru", "cp"]
        );
        assert_eq!(nearest("", known)[0], "cp");
    }
}
