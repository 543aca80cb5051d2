//! Lists of index search, whose lengths are lost: fitted to one published number, by one rule.
//!
//! The rule: of 4 MiB down in octaves, each octave as likely, the lower end is the one whose thrashed pages a request
//! come nearest to the 258 of Li and Shen 2005, section 4.3, under its own kernel, AccessHistory, with 1,000 requests
//! at a time; the median of seeds 1 to 5. It was written down before anything was measured with it.
//!
//! ```text
//! octaves      2     3     4     5     6      forerun-lab reproduce li05 --only P2 --with octaves=N
//! thrashed   480   276   179   122    81      258 published: 3 octaves, lists of 512 KiB to 4 MiB
//! ```
//!
//! P1, P2 and P7 have these lists and are marked as fitted, with their numbers by 6 octaves: the range of the
//! microbenchmarks.

use super::knobs::OCTAVES;
use super::lab::Lab;
use super::{Answer, experiments};

/// The lists without the fit, as an experiment has them.
const UNFITTED: &str = "octaves=6";

/// The answer to a claim about index search, with its fit, unless an experiment sets the lists.
pub(super) fn fitted(claim: &str, lab: &Lab, answer: Answer) -> Answer {
    if lab.with.number(OCTAVES).is_some() {
        return answer;
    }
    let without = experiments::of(claim).into_iter();
    let without = without.filter(|text| text.starts_with(UNFITTED));
    let without: Vec<String> = without.collect();
    answer.fitted(format!(
        "lists of 512 KiB to 4 MiB, by the 258 pages a request that AccessHistory thrashes with 1,000 at a time; without \
         the fit {}",
        without.join("; ")
    ))
}
