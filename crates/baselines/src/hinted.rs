//! Hinted methods: demand fetching, and the published methods beside forestall.
//!
//! For the interface, and forestall, see [`forerun_core::hinted::policy`]. The plan of reverse
//! aggressive is made in `reverse.rs`.

pub mod aggressive;
pub mod demand_lru;
pub mod demand_opt;
pub mod fixed_horizon;
pub mod reverse_aggressive;

use alloc::boxed::Box;

use forerun_core::hinted::policy::Policy;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Policy>>] = &[
    demand_lru::METHOD,
    demand_opt::METHOD,
    fixed_horizon::METHOD,
    aggressive::METHOD,
    reverse_aggressive::METHOD,
];
