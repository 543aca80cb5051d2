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
pub mod next_file;
pub mod pages;
pub mod prefetch_cache;
pub mod preset;
pub mod reclaim;
mod reverse;
pub mod shape;

use forerun_core::methods::{Methods, SHIPPED, joined};
use forerun_core::preset::{self as shipped, Preset, UnknownPreset};

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

/// The preset of that name.
///
/// # Errors
/// An unknown name, with the three nearest known ones.
pub fn preset(name: &str) -> Result<&'static Preset, UnknownPreset> {
    shipped::find_in(PRESETS, name)
}
