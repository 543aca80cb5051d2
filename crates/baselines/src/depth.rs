//! Depth: one limit for all devices, the competitive depth without growth, and a turn's worth.
//!
//! For the interface, and the growing depth, see [`forerun_core::depth`].

pub mod competitive;
pub mod fixed;
pub mod turn;

use alloc::boxed::Box;

use forerun_core::depth::Depth;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Depth>>] = &[fixed::METHOD, competitive::METHOD, turn::METHOD];
