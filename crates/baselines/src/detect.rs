//! Detect: the readahead of Linux before 2.6.23, one block ahead, and none at all.
//!
//! For the interface, and on-demand readahead, see [`forerun_core::detect`].

pub mod linux_2_6_22;
pub mod none;
pub mod one_block;

use alloc::boxed::Box;

use forerun_core::detect::Detect;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Detect>>] =
    &[linux_2_6_22::METHOD, one_block::METHOD, none::METHOD];
