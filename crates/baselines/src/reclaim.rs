//! Reclaim: a prefetch cache beside an ordinary one, and the orders in which Li and Shen 2005 take from it.
//!
//! For the interface, and the methods of `forerun`, see [`forerun_core::reclaim`].

pub mod coldest;
pub mod coldest_cpu;
pub mod fifo;
pub mod furthest;
pub mod longest;

use alloc::boxed::Box;

use forerun_core::reclaim::Reclaim;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Reclaim>>] = &[
    fifo::METHOD,
    longest::METHOD,
    coldest::METHOD,
    coldest_cpu::METHOD,
    furthest::METHOD,
];
