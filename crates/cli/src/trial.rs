//! A trial: the user's own files, read cold through the kernel and through forerun in turns.
//!
//! Called by `forerun try`. The question is not how fast a disk is but whether forerun helps
//! *here*, so all candidates read the same bytes with the same readers, and the answer is their
//! ratio:
//!
//! ```text
//! one reader    kernel forerun | forerun kernel | kernel forerun | ..   ratio of the medians
//! 16 readers    kernel forerun | forerun kernel | ..
//! --tuned       kernel tuned watch forerun | forerun watch tuned kernel | ..   the simplest of equal ones
//! of a store    ranges rclone forerun | forerun rclone ranges | ..
//! ```
//!
//! Each turn begins at another place of the files, so a cache in the device serves none from the
//! turn before; the order changes, so the contents of such a cache favour each as often. A run ends
//! after its share of the time, which bounds the whole. [`files`] has the files and the parts of each
//! reader, [`store`] objects in their place; [`side`], [`tuned`], [`watched`] and [`peers`] are ways to them, [`readers`] threads that read until
//! the time is over, [`cold`] and [`busy`] look for a warm cache and for other load, and [`verdict`] and [`choice`] say the rates in words.

pub mod busy;
pub mod choice;
pub mod cold;
pub mod files;
pub mod peers;
pub mod readers;
pub mod side;
#[cfg(feature = "object-store")]
pub mod store;
pub mod tuned;
pub mod verdict;
pub mod watched;

use std::time::Duration;

use self::files::{Chosen, Part};
use self::side::Side;
use crate::failure::Failure;

/// Turns of a workload: an even number, so that each candidate goes first as often. The median
/// of four leaves out the best and the worst.
pub const TURNS: u32 = 4;

/// The preparation of a run that reads these parts.
pub type Prepare<'a> = &'a dyn Fn(&[Vec<Part>]) -> Result<(), Failure>;

/// Runs one workload with a number of readers, each run for a limited time: the rates of each candidate.
///
/// # Errors
/// A file that cannot be read.
pub fn turns(
    chosen: &Chosen,
    readers: u32,
    each: Duration,
    sides: &[&dyn Side],
    prepare: Prepare<'_>,
    step: &dyn Fn(),
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut rates = vec![Vec::new(); sides.len()];
    for round in 0..TURNS {
        let parts = chosen.divide(readers, round, TURNS);
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for at in order {
            prepare(&parts)?;
            let rate = sides[at].begin()?.rate(&parts, each);
            step();
            rates[at].push(rate?);
        }
    }
    Ok(rates)
}
