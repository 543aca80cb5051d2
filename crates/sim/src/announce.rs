//! Announced: a workload whose readers hint their reads beforehand, truly or not.
//!
//! Wraps any workload. Its hints are its own reads in their order: by turns if readers take turns,
//! else one of each reader after the other. A percentage of them can be wrong (another place of the
//! same file) or missing, drawn from a seed; the reads themselves stay as they are.

use forerun_core::Bytes;

use crate::random::Random;
use crate::workload::{Announcement, Announcements, Steps, Turns, Walk, Workload};

/// See the [module](self).
#[derive(Debug)]
pub struct Announced<'a> {
    /// The reads.
    pub workload: &'a dyn Workload,
    /// Percentage of hints that name another place of their file.
    pub wrong_percent: u8,
    /// How many of a hundred reads are not announced.
    pub missing_percent: u8,
    /// Decides which.
    pub seed: u64,
}

impl Workload for Announced<'_> {
    fn files(&self) -> Vec<Bytes> {
        self.workload.files()
    }

    fn readers(&self) -> Vec<usize> {
        self.workload.readers()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        self.workload.steps(reader)
    }

    fn turns(&self) -> Option<Turns<'_>> {
        self.workload.turns()
    }

    fn owner(&self, reader: usize) -> usize {
        self.workload.owner(reader)
    }

    fn places(&self) -> Option<Vec<Vec<(Bytes, Bytes)>>> {
        self.workload.places()
    }

    /// Only where nothing is announced: a reader that announces is open from the beginning.
    fn walk(&self) -> Option<Walk> {
        let is_silent = self.missing_percent >= 100;
        is_silent.then(|| self.workload.walk()).flatten()
    }

    fn is_packed(&self) -> bool {
        self.workload.is_packed()
    }

    fn hints(&self) -> Announcements<'_> {
        let files = self.workload.files();
        let readers = self.workload.readers();
        let sizes: Vec<u64> = readers.iter().map(|file| files[*file].0).collect();
        let mut random = Random::new(self.seed);
        let hints = in_order(self.workload).filter_map(move |hint| {
            // Drawn in any case, so that one percentage does not move the targets of the other.
            let (wrong, missing) = (random.below(100), random.below(100));
            let place = random.below(sizes[hint.reader].saturating_sub(hint.bytes.0) + 1);
            if missing < u64::from(self.missing_percent) {
                return None;
            }
            let is_wrong = wrong < u64::from(self.wrong_percent);
            let offset = if is_wrong { Bytes(place) } else { hint.offset };
            Some(Announcement { offset, ..hint })
        });
        Box::new(hints)
    }
}

/// The reads of a workload in the order they come.
fn in_order(workload: &dyn Workload) -> impl Iterator<Item = Announcement> + '_ {
    let count = workload.readers().len();
    let mut steps: Vec<_> = (0..count).map(|reader| workload.steps(reader)).collect();
    let mut turns = workload.turns();
    let mut round = Round { at: 0, idle: 0 };
    std::iter::from_fn(move || {
        loop {
            let reader = match &mut turns {
                Some(turns) => turns.next()?,
                None => round.next(count)?,
            };
            match steps.get_mut(reader).and_then(Iterator::next) {
                Some(step) => {
                    round.idle = 0;
                    return Some(Announcement {
                        reader: step.on.unwrap_or(reader),
                        offset: step.offset,
                        bytes: step.take,
                    });
                }
                None => round.idle += 1,
            }
        }
    })
}

/// Readers in turn, until a whole round is idle.
struct Round {
    at: usize,
    idle: usize,
}

impl Round {
    fn next(&mut self, count: usize) -> Option<usize> {
        let reader = self.at;
        self.at = (self.at + 1) % count.max(1);
        (self.idle < count).then_some(reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    fn places(announced: &Announced<'_>) -> Vec<(usize, u64)> {
        announced.hints().map(|h| (h.reader, h.offset.0)).collect()
    }

    #[test]
    fn hints_are_the_reads_in_turn_unless_they_are_to_be_wrong_or_missing() {
        let shuffled = workload::parse("shuffled(file_bytes=40960,read_bytes=4096)").unwrap();
        let announced = |wrong_percent, missing_percent| Announced {
            workload: &*shuffled,
            wrong_percent,
            missing_percent,
            seed: 7,
        };
        let right = places(&announced(0, 0));
        let turns: Vec<usize> = shuffled.turns().unwrap().collect();
        assert_eq!(
            right.iter().map(|(reader, _)| *reader).collect::<Vec<_>>(),
            turns
        );
        assert_eq!(places(&announced(0, 100)), []);
        let half = places(&announced(50, 0));
        let same = half.iter().zip(&right).filter(|(a, b)| a == b).count();
        assert!((2..18).contains(&same), "{same} of 20 are right");
    }

    #[test]
    fn readers_that_do_not_take_turns_are_announced_in_rounds() {
        let text = "many-readers(file_bytes=8192,read_bytes=4096,readers=3)";
        let many = workload::parse(text).unwrap();
        let announced = Announced {
            workload: &*many,
            wrong_percent: 0,
            missing_percent: 0,
            seed: 0,
        };
        let expected = [(0, 0), (1, 0), (2, 0), (0, 4096), (1, 4096), (2, 4096)];
        assert_eq!(places(&announced), expected);
    }
}
