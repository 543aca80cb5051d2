//! Processors shared by all processes of the world.
//!
//! A process computes between its reads. With fewer processors than processes, a burst waits
//! for a free one, first come first served:
//!
//! ```text
//! 2 processors     burst of A  |=====|
//!                  burst of B  |========|
//!                  burst of C        |====|        came with A's, waits until that is over
//! ```
//!
//! Bursts are not interrupted: they are shorter than the time slice of an operating system (100 ms
//! in Linux 2.6). Without a number each process has a processor of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU16;

use forerun_core::Nanos;

/// Times at which the processors are free. See the [module](self).
#[derive(Debug)]
pub(super) struct Cpus(Option<BinaryHeap<Reverse<Nanos>>>);

impl Cpus {
    pub(super) fn new(count: Option<NonZeroU16>) -> Self {
        Self(count.map(|count| (0..count.get()).map(|_| Reverse(Nanos(0))).collect()))
    }

    /// The start of a burst that comes at this time and works so long.
    pub(super) fn begin(&mut self, at: Nanos, work: Nanos) -> Nanos {
        let Some(all) = self.0.as_mut().filter(|_| work.0 > 0) else {
            return at;
        };
        let Some(Reverse(free)) = all.pop() else {
            return at;
        };
        let begin = free.max(at);
        all.push(Reverse(Nanos(begin.0.saturating_add(work.0))));
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_begins_when_the_first_processor_is_free() {
        let mut two = Cpus::new(NonZeroU16::new(2));
        let begins = [5, 8, 4, 4].map(|work| two.begin(Nanos(10), Nanos(work)).0);
        assert_eq!(begins, [10, 10, 15, 18]);
        assert_eq!(two.begin(Nanos(10), Nanos(0)).0, 10);
        assert_eq!(two.begin(Nanos(100), Nanos(1)).0, 100);
        let mut any = Cpus::new(None);
        assert_eq!(
            any.begin(Nanos(10), Nanos(5)),
            any.begin(Nanos(10), Nanos(5))
        );
    }
}
