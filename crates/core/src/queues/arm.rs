//! The arm: where a device stands, the run that it is in, and its work for each reader so far.
//!
//! Part of a [device](super::device); its figures are those by which the [dispatch](crate::dispatch) method
//! chooses. Work is counted in bytes; a switch counts as the bytes that could be transferred meanwhile. Each
//! reader has an *account*, the amount of the device's work at which it is due again. A single read, the first of its
//! reader or at random, is a switch and nothing else: due like a stream it would wait for slices of all others. Single
//! reads go before them, with a bounded part of the work, the *express*.
//!
//! ```text
//! account = work               + (runs that wait + 1) x (bytes + switch)     at the first request of a run
//! account = max(account, work) + (runs that wait + 1) x bytes                at those that continue it
//! ```
//!
//! Example: reader 3 gets a request of 1 MiB behind a switch of 0.6 MiB while two runs wait, its own included. The
//! work grows by 1.6 MiB, and the account stands 3 x 1.6 = 4.8 MiB beyond the work before.

use alloc::collections::BTreeMap;

use crate::dispatch::Head;
use crate::units::{Bytes, ReaderId};

/// Weight of the newest seek distance in the moving average, as a power of two: 1/8. Li et al. 2004, section 3.1, has an
/// average with exponential weights of the disk's seeks and prints none of them.
const DISTANCE_SHIFT: u32 = 3;

/// Single reads have this part of the work at most before others: one after the other they take 72 ms each of a
/// disk of 8 ms. Streams beside pages lose a quarter at most, with the switches back to them.
const EXPRESS_PART: u64 = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Arm {
    /// Moving average of the distances between requests that did not continue each other, as the device
    /// served them.
    pub(super) distance: Bytes,
    /// Where the last fetch ends that it served.
    served: u64,
    /// Where the last fetch handed to it ends, and the run and slice that it is in.
    pub(super) head: Head,
    /// How many runs waited when that began, itself included.
    pub(super) runs: usize,
    /// Total work in bytes: bytes requested, plus switching cost times transfer rate for every
    /// switch.
    pub(super) work: u64,
    accounts: BTreeMap<ReaderId, u64>,
    /// The amount of work from which on the next single read may go before others.
    express: u64,
}

impl Arm {
    /// Whether a single read may go before others.
    pub(super) fn has_express(&self) -> bool {
        self.express <= self.work
    }

    /// A fetch that starts at this position would be a run of its own.
    pub(super) fn switches_to(&self, position: u64) -> bool {
        position != self.head.position
    }

    /// How far a fetch at this position is from the end of the last one; the first continues none.
    pub(super) fn distance_to(&self, position: u64) -> Bytes {
        let least = u64::from(self.work == 0);
        Bytes(position.abs_diff(self.head.position).max(least))
    }

    /// The run that starts next may get this long; so many wait.
    pub(super) fn grant(&mut self, slice: Bytes, runs: usize) {
        self.head.slice = slice;
        self.runs = runs;
    }

    /// The virtual finish time of a reader's work here, or the device's work when its want came, whichever is
    /// later.
    pub(super) fn due(&self, owner: Option<ReaderId>, came: u64) -> u64 {
        let account = owner.and_then(|reader| self.accounts.get(&reader));
        account.map_or(came, |account| came.max(*account))
    }

    /// A fetch goes out; a switch is worth `depth` bytes.
    pub(super) fn move_to(
        &mut self,
        position: u64,
        bytes: u64,
        owner: Option<ReaderId>,
        depth: Bytes,
        is_single: bool,
    ) {
        let account = self.due(owner, 0);
        let (start, switch, run) = match self.switches_to(position) {
            true => (self.work, depth.0, 0),
            false => (account.max(self.work), 0, self.head.run.0),
        };
        let work = bytes.saturating_add(switch);
        if is_single && self.has_express() {
            self.express = self.work.saturating_add(work.saturating_mul(EXPRESS_PART));
        }
        self.work = self.work.saturating_add(work);
        self.head.run = Bytes(run.saturating_add(bytes));
        self.head.position = position.saturating_add(bytes);
        if let Some(owner) = owner {
            // Those that wait, and the one that comes.
            let sharing = (self.runs as u64).saturating_add(1);
            let account = start.saturating_add(work.saturating_mul(sharing));
            self.accounts.insert(owner, account);
        }
    }

    /// A fetch was served: the moving average learns its distance. A scheduler behind the device may have reordered
    /// those that waited, so that they are nearer to each other than in the order in which they went out.
    pub(super) fn serve(&mut self, position: u64, bytes: u64) {
        let distance = position.abs_diff(self.served);
        if distance != 0 {
            let old = self.distance.0;
            self.distance = Bytes(old - (old >> DISTANCE_SHIFT) + (distance >> DISTANCE_SHIFT));
        }
        self.served = position.saturating_add(bytes);
    }

    /// A reader is gone.
    pub(super) fn forget(&mut self, reader: ReaderId) {
        self.accounts.remove(&reader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_weighs_an_eighth_and_a_request_that_continues_nothing() {
        let mut arm = Arm::default();
        let ends = [(800, 100), (1700, 0), (1700, 100), (3400, 1600)];
        let means = ends.map(|(position, bytes)| {
            arm.serve(position, bytes);
            arm.distance.0
        });
        // 800 from 0 on, 800 from 900 on, none, 1600 from 1800 on.
        assert_eq!(means, [100, 188, 188, 365]);
    }

    #[test]
    fn seeks_are_as_far_as_the_device_made_them_not_as_they_went_out() {
        let (near, far) = (1 << 20, 1 << 30);
        let mut arm = Arm::default();
        let mut mean = |order: [u64; 4]| {
            for position in [near, far, 2 * near, far + near] {
                arm.move_to(position, 4096, None, Bytes(0), false);
            }
            for _ in 0..20 {
                order.iter().for_each(|position| arm.serve(*position, 4096));
            }
            arm.distance.0
        };
        let to_and_fro = mean([near, far, 2 * near, far + near]);
        let swept = mean([near, 2 * near, far, far + near]);
        assert!(
            to_and_fro > far / 2 && swept < far / 2 + near,
            "{to_and_fro}, {swept}"
        );
    }
}
