//! Split: the part of blocks fetched ahead that stays, or follows the misses, of Li and Shen 2005.
//!
//! For the interface see [`forerun_core::split`].

pub mod fixed;
pub mod gradient;

use alloc::boxed::Box;

use forerun_core::spec::{Method, Param};
use forerun_core::split::Split;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Split>>] = &[fixed::METHOD, gradient::METHOD];

/// Where a part begins, or stays.
pub(crate) const PERCENT: Param = Param {
    name: "percent",
    summary: "part of the memory that blocks fetched ahead may keep when a frame is needed; 25 is \
              where Li and Shen begin",
    default: 25,
    min: 1,
    max: 99,
};
