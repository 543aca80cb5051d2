//! Dispatch: first come, first served. For the interface see [`forerun_core::dispatch`].

pub mod fifo;

use alloc::boxed::Box;

use forerun_core::dispatch::Dispatch;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Dispatch>>] = &[fifo::METHOD];
