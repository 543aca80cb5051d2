//! Detect: the readahead of Linux 2.6.0 to 2.6.22 in three rules, one block ahead, and none at all.
//!
//! For the interface, and on-demand readahead, see [`forerun_core::detect`].

pub mod linux_2_6_10;
pub mod linux_2_6_22;
pub mod linux_2_6_3;
pub mod none;
pub mod one_block;

use alloc::boxed::Box;

use forerun_core::detect::Detect;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Detect>>] = &[
    linux_2_6_3::METHOD,
    linux_2_6_10::METHOD,
    linux_2_6_22::METHOD,
    one_block::METHOD,
    none::METHOD,
];
