//! Methods: the lists in which names of methods are looked up.
//!
//! Handed in wherever a name is read: by presets, settings lines, journals, options. This crate has
//! the [shipped](SHIPPED) ones, the methods of the presets `forerun`, `once` and `mount`; a crate
//! with more methods joins its own lists to these:
//!
//! ```text
//! SHIPPED            detect: ondemand                  depth: growing
//! another crate's    detect: ondemand, linux-2.6.22    depth: growing, fixed
//! ```
//!
//! A name that is in no list is refused, with the names there are.

use alloc::boxed::Box;
use core::fmt;

use crate::depth::{self, Depth};
use crate::detect::{self, Detect};
use crate::dispatch::{self, Dispatch};
use crate::hinted::policy::{self, Policy};
use crate::measure::{self, Measure};
use crate::next_file::{self, NextFile};
use crate::reclaim::{self, Reclaim};
use crate::shape::{self, Shape};
use crate::spec::{Choice, ChoiceError, Method};

/// See the [module](self): a list a family.
pub struct Methods {
    /// How patterns are found.
    pub detect: &'static [Method<Box<dyn Detect>>],
    /// How far to fetch ahead.
    pub depth: &'static [Method<Box<dyn Depth>>],
    /// Where windows end on striped arrays.
    pub shape: &'static [Method<Box<dyn Shape>>],
    /// In which order devices get their fetches.
    pub dispatch: &'static [Method<Box<dyn Dispatch>>],
    /// Which block is given up.
    pub reclaim: &'static [Method<Box<dyn Reclaim>>],
    /// How hints are followed.
    pub hinted: &'static [Method<Box<dyn Policy>>],
    /// Which file is opened next.
    pub next_file: &'static [Method<Box<dyn NextFile>>],
    /// Where the costs of devices come from.
    pub measure: &'static [Method<Box<dyn Measure>>],
}

/// The methods of this crate.
pub static SHIPPED: Methods = Methods {
    detect: detect::LIST,
    depth: depth::LIST,
    shape: shape::LIST,
    dispatch: dispatch::LIST,
    reclaim: reclaim::LIST,
    hinted: policy::LIST,
    next_file: next_file::LIST,
    measure: measure::LIST,
};

/// How settings say that no policy follows hints, or that no file is opened ahead.
pub const NONE: &str = "none";

/// A method of a family by name and parameters, or [`NONE`].
fn optional<B>(
    family: &'static str,
    list: &'static [Method<B>],
    text: &str,
) -> Result<Option<Choice<B>>, ChoiceError> {
    match text {
        NONE => Ok(None),
        _ => Choice::parse(family, list, text).map(Some),
    }
}

impl Methods {
    /// A hinted policy by name and parameters, or [`NONE`].
    ///
    /// # Errors
    /// There is no such policy or parameter, or a value is out of its range.
    pub fn hinted(&self, text: &str) -> Result<Option<Choice<Box<dyn Policy>>>, ChoiceError> {
        optional("hinted", self.hinted, text)
    }

    /// A next-file method by name and parameters, or [`NONE`].
    ///
    /// # Errors
    /// There is no such method or parameter, or a value is out of its range.
    pub fn next_file(&self, text: &str) -> Result<Option<Choice<Box<dyn NextFile>>>, ChoiceError> {
        optional("next_file", self.next_file, text)
    }
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Methods").finish_non_exhaustive()
    }
}
