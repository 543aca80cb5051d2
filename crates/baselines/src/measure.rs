//! Measure: costs as told. For the interface, and estimates, see [`forerun_core::measure`].

pub mod given;

use alloc::boxed::Box;

use forerun_core::measure::Measure;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Measure>>] = &[given::METHOD];
