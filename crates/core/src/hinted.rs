//! Hinted prefetching: where the order of reads is known, fetching and eviction are planned as one.
//!
//! A pure state machine beside the [engine](crate::engine), in its manner: a driver tells a
//! [`Planner`] the order of references and all events, and the planner answers which block to
//! fetch on which disk and which block to give up for it.
//!
//! ```text
//!              cursor                                   one reference order, d disks, K blocks
//!  consumed ---->|  r  r  m  r  m  m  r  ...              r resident   m missing   f in flight
//!                |<--- how far ahead to fetch m, and which r to give up, is the policy's choice
//!
//! interface  inputs and outputs               board      state and next use of each block
//! planner    the state machine                 positions  sets of places in the order
//! policy     the family of methods             batch      Table 6, and its filling
//! ```
//!
//! The rules of Kimbrel et al. 1996, section 2.2 are named functions of the [`Board`]: *optimal
//! fetching* ([`Board::first_missing`]), *optimal replacement* ([`Board::furthest`]), *do no harm*
//! ([`Board::harmless_room`]); *first opportunity* is the planner's loop. A fetch evicts when it
//! starts, and neither block is usable while it runs.
//!
//! It moves no bytes and knows no files: blocks are numbers that the driver maps.

pub mod batch;
pub mod board;
pub mod interface;
pub mod planner;
pub mod policy;
pub mod positions;
mod recent;

pub use board::{Board, Pair};
pub use interface::{BlockNo, Hint, PlannerInput, PlannerOutput, Position};
pub use planner::{Planner, Setup, SetupError};
