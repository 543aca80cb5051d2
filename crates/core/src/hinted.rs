//! Hinted prefetching: where the order of reads is known, fetching and eviction are planned as one.
//!
//! A [`Planner`] is told the order of references and everything that happens, and answers which
//! block to fetch and which block to give up for it. It has no clock.
//!
//! ```text
//!              cursor                                   one reference order, d disks, K blocks
//!  consumed ---->|  r  r  m  r  m  m  r  ...              r resident   m missing   f in flight
//!                |<--- how far ahead to fetch m, and which r to give up, is the policy's choice
//!
//! planner    calls, and rounds of decisions    board      state and next use of each block
//! policy     the family of methods             positions  sets of places in the order
//!                                              batch      Table 6, and its filling
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
pub mod planner;
pub mod policy;
mod positions;
mod recent;

pub use board::{BlockNo, Board, Hint, Pair, Position};
pub use planner::{Planner, Started};
