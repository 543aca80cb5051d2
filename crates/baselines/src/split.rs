//! Split: the part of blocks fetched ahead that follows the misses, of Li and Shen 2005.
//!
//! For the interface, and the part that stays, see [`forerun_core::split`].

pub mod gradient;

use alloc::boxed::Box;

use forerun_core::spec::Method;
use forerun_core::split::Split;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Split>>] = &[gradient::METHOD];
