//! forerun-baselines: methods that no shipped preset uses, to be measured against.
//!
//! Readahead of Linux kernels, and methods of papers as published. They come into an engine as
//! methods of any other crate do, by their [`Method`](forerun_core::spec::Method); [`METHODS`] joins
//! them to the lists of [`forerun_core`], for programs that read names. A library without this
//! crate refuses their names.
//!
//! ```
//! use forerun_core::{Bytes, Engine};
//!
//! let settings = forerun_baselines::preset("linux-2.6.24")?.settings(Bytes(32 << 20))?;
//! assert!(settings.to_string().contains("depth=fixed(depth_bytes=131072)"));
//! assert!(Engine::new(settings).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod depth;
pub mod detect;
pub mod dispatch;
pub mod hinted;
pub mod measure;
mod nearest;
pub mod next_file;
pub mod pages;
pub mod prefetch_cache;
pub mod preset;
pub mod reclaim;
mod reverse;
pub mod shape;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use forerun_core::methods::{Methods, SHIPPED};
use forerun_core::preset::{self as shipped, Preset};

pub use self::nearest::nearest;

/// The list of a family of the core with that of this crate behind it.
macro_rules! with_own {
    ($shipped:ident, $own:expr) => {
        &joined::<_, { SHIPPED.$shipped.len() + $own.len() }>(SHIPPED.$shipped, $own)
    };
}

/// All methods: the shipped ones and those of this crate.
pub static METHODS: Methods = Methods {
    detect: with_own!(detect, detect::LIST),
    depth: with_own!(depth, depth::LIST),
    shape: with_own!(shape, shape::LIST),
    dispatch: with_own!(dispatch, dispatch::LIST),
    reclaim: with_own!(reclaim, reclaim::LIST),
    hinted: with_own!(hinted, hinted::LIST),
    next_file: with_own!(next_file, next_file::LIST),
    measure: with_own!(measure, measure::LIST),
};

/// All presets: the shipped ones and those of this crate.
pub static PRESETS: &[Preset] =
    &joined::<_, { shipped::LIST.len() + preset::LIST.len() }>(shipped::LIST, preset::LIST);

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
        let nearest = self.nearest.join(", ");
        write!(f, "no preset {:?}: nearest are {nearest}", self.name)
    }
}

impl core::error::Error for UnknownPreset {}

/// The preset of that name.
///
/// # Errors
/// An unknown name, with the three nearest known ones.
pub fn preset(name: &str) -> Result<&'static Preset, UnknownPreset> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.ok_or_else(|| UnknownPreset {
        name: name.to_string(),
        nearest: nearest(name, PRESETS.iter().map(|preset| preset.name)),
    })
}

/// Two lists as one, for a `static`; `N` is the length of both together.
const fn joined<T: Copy, const N: usize>(first: &[T], second: &[T]) -> [T; N] {
    assert!(
        first.len() + second.len() == N && N > 0,
        "the length of both"
    );
    let mut all = [if first.is_empty() {
        second[0]
    } else {
        first[0]
    }; N];
    let mut at = 0;
    while at < N {
        all[at] = match at < first.len() {
            true => first[at],
            false => second[at - first.len()],
        };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::preset;

    #[test]
    fn a_misspelt_preset_is_answered_with_the_nearest_names() {
        assert_eq!(preset("forrun").unwrap_err().nearest[0], "forerun");
        assert_eq!(preset("linux-2.6.25").unwrap_err().nearest.len(), 3);
    }
}
