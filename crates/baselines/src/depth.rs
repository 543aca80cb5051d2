//! Depth: one limit for all devices, and the competitive depth without growth.
//!
//! For the interface, and the growing depth, see [`forerun_core::depth`].

pub mod competitive;
pub mod fixed;

use alloc::boxed::Box;

use forerun_core::depth::Depth;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Depth>>] = &[fixed::METHOD, competitive::METHOD];
