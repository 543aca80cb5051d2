//! A trial: the user's own files, read cold through the kernel and through forerun in turns.
//!
//! Called by `forerun try`. The question is not how fast a disk is but whether forerun helps
//! *here*, so both candidates read the same bytes with the same readers, and the answer is their
//! ratio:
//!
//! ```text
//! one reader    kernel forerun | forerun kernel | kernel forerun | ..   median of the ratios
//! 16 readers    kernel forerun | forerun kernel | ..
//! ```
//!
//! Each pair begins at another place of the files, so a cache in the device serves neither from the
//! pair before; the order changes, so the contents of such a cache favour each as often. A run ends
//! after its share of the time, which bounds the whole.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`files`] | the files, and the parts of each reader |
//! | [`cold`] | out of the page cache, and whether they are |
//! | [`side`] | the kernel's path to a file, a mount's, or the engine's |
//! | [`readers`] | threads that read until the time is over |
//! | [`verdict`] | from rates to words |

pub mod cold;
pub mod files;
pub mod readers;
pub mod side;
pub mod verdict;

use std::time::Duration;

use self::files::{Chosen, Part};
use self::side::Side;
use self::verdict::Pair;
use crate::failure::Failure;

/// Pairs of runs a workload: an even number, so that each candidate goes first as often. The median
/// of four leaves out the best and the worst.
pub const PAIRS: u32 = 4;

/// Runs one workload with a number of readers, each run for a limited time.
///
/// # Errors
/// A file that cannot be read.
pub fn pairs(
    chosen: &Chosen,
    readers: u32,
    each: Duration,
    kernel: &dyn Side,
    forerun: &dyn Side,
    step: &dyn Fn(),
) -> Result<Vec<Pair>, Failure> {
    let run = |side: &dyn Side, parts: &[Vec<Part>]| {
        cold::drop_pages(chosen, parts)?;
        let rate = side.begin()?.rate(parts, each);
        step();
        rate
    };
    let mut pairs = Vec::new();
    for round in 0..PAIRS {
        let parts = chosen.divide(readers, round, PAIRS);
        let pair = if round.is_multiple_of(2) {
            let kernel = run(kernel, &parts)?;
            (kernel, run(forerun, &parts)?)
        } else {
            let forerun = run(forerun, &parts)?;
            (run(kernel, &parts)?, forerun)
        };
        pairs.push(Pair {
            kernel: pair.0,
            forerun: pair.1,
        });
    }
    Ok(pairs)
}
