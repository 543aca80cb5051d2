//! Account: device time that fetching by a guessed pattern may cost beyond demand reads alone.
//!
//! A stride seen three times may end with the third read. Control law, in blocks the device could
//! transfer in the time, S being a switch:
//!
//! ```text
//! balance = S x servers + sum over reads of 1.05 (S + blocks asked) - sum over fetches of (S + blocks)
//! ```
//!
//! A window opens only as far as the balance covers it, so the sum of all fetches stays within 1.05
//! of the reads alone, but for the first grant. Example, S = 160: a random read of 4 blocks earns
//! 8, a window of 64 that serves four reads of 16 earns 739 and costs 224.

use crate::units::saturate;

/// Allowance beyond reads alone, one part in so many: 5 %. Balances are in such parts of a block, or short reads on a
/// device with a short switch would earn nothing beyond their cost.
const ALLOWED: i64 = 20;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Account {
    /// In parts of a block.
    balance: i64,
    is_open: bool,
}

impl Account {
    /// The first pattern is found: it may begin before anything was earned, with one switch for
    /// each server.
    pub(super) fn open(&mut self, switch: u32, servers: u32) {
        if !core::mem::replace(&mut self.is_open, true) {
            self.add(i64::from(switch) * i64::from(servers) * ALLOWED);
        }
    }

    /// So many reads were made that would have cost a switch each.
    pub(super) fn asked(&mut self, reads: u64, blocks: u32, switch: u32) {
        let each = i64::from(switch) + i64::from(blocks);
        let reads = i64::try_from(reads).unwrap_or(i64::MAX);
        self.add(reads.saturating_mul(each * (ALLOWED + 1)));
    }

    /// So many fetches were made.
    pub(super) fn fetched(&mut self, fetches: u32, blocks: u32, switch: u32) {
        let each = i64::from(switch) + i64::from(blocks);
        self.add(-i64::from(fetches).saturating_mul(each * ALLOWED));
    }

    /// A read that no pattern helped.
    pub(super) fn read_alone(&mut self, blocks: u32, switch: u32) {
        self.asked(1, blocks, switch);
        self.fetched(1, blocks, switch);
    }

    /// The longest window it covers, in blocks.
    pub(super) fn covers(&self, switch: u32) -> u32 {
        let left = (self.balance / ALLOWED)
            .saturating_sub(switch.into())
            .max(0);
        saturate(left)
    }

    /// How many fetches of so many blocks it covers.
    pub(super) fn covers_pieces(&self, blocks: u32, switch: u32) -> u32 {
        let each = i64::from(switch) + i64::from(blocks);
        saturate(self.balance.max(0) / ALLOWED / each.max(1))
    }

    fn add(&mut self, parts: i64) {
        self.balance = self.balance.saturating_add(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_earn_a_twentieth_and_a_served_window_pays_for_itself() {
        let mut account = Account::default();
        for _ in 0..10 {
            account.read_alone(4, 160);
        }
        assert_eq!((account.balance, account.covers(160)), (82 * ALLOWED, 0));
        account.open(160, 1);
        account.open(160, 1);
        assert_eq!(
            (account.covers(160), account.covers_pieces(4, 160)),
            (82, 1)
        );
        account.fetched(1, 64, 160);
        account.asked(4, 16, 160);
        assert_eq!(account.balance, (242 - 224) * ALLOWED + 4 * 176 * 21);
    }
    /// A block each, where a switch is worth two.
    #[test]
    fn short_reads_on_a_device_with_a_short_switch_earn_longer_windows() {
        let mut account = Account::default();
        account.open(2, 1);
        for _ in 0..40 {
            account.asked(1, 1, 2);
            account.fetched(1, 1, 2);
        }
        assert_eq!(account.covers(2), 6);
    }
}
