//! Account: the budget of a device for windows that turn out wrong.
//!
//! A window that turns out too long costs device time. The account keeps the total, over all
//! streams of a device, at most `2 + beta` times the offline optimum's. The unit is the byte; a
//! switch counts as D bytes, as in Li et al. 2004, so the optimum spends `D + c` on a stream that
//! consumes c bytes:
//!
//! `balance = sum over streams of 2 D + (2 + beta) c - sum over windows of (D + w) >= 0`
//!
//! A window of w bytes costs w alone where the device has not moved since. The balance is kept at
//! the worst outcome of each stream that is still open:
//!
//! ```text
//!   it ends now                    2 D + (2 + beta) c - spent
//!   or takes the window, and then  2 D + (2 + beta) (b + w) - spent - 2 D
//!   needs another one of D
//!                                  c consumed, b where the window of w begins; spent includes it
//! ```
//!
//! The second line binds for windows shorter than D alone. By it a window of D can always be paid
//! by its own stream once the one before is read: 2 D for it, 2 D back when it is read in turn. So
//! there is always a window that keeps the bound; all others are bets with savings.
//!
//! A window cut short by the detector's ramp or by the stream's share of memory is paid as a part
//! of one of D.

use crate::depth::{Opened, Stake};

/// A stream at the time of its next window, per member of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Bytes consumed, those asked for now included if the window begins with them.
    pub(super) consumed: u64,
    /// Where the window begins.
    pub(super) begin: u64,
    /// Cost of a switch,
    pub(super) depth: u64,
    /// and of this one: nothing where the device is already there.
    pub(super) switch: u64,
    pub(super) stake: Stake,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Balance in the worst case.
    left: i64,
}

impl Account {
    /// The allowance of a stream for so many bytes.
    fn income(beta_percent: u64, bytes: u64) -> i64 {
        let paid = u128::from(bytes) * u128::from(200 + beta_percent) / 100;
        i64::try_from(paid).unwrap_or(i64::MAX)
    }

    /// Its spending so far, its allowance subtracted.
    fn spent(beta_percent: u64, at: &At) -> i64 {
        let allowance = signed(at.depth).saturating_mul(2);
        match at.stake.is_begun {
            true => at.stake.spent,
            // Earlier blocks were fetched by others.
            false => {
                Self::income(beta_percent, at.begin.min(at.consumed)).saturating_sub(allowance)
            }
        }
    }

    /// The worst case of a stream that has spent so much and now gets a window.
    fn worst(beta_percent: u64, at: &At, spent: i64, window: &Opened) -> i64 {
        let ends = Self::income(beta_percent, at.consumed).saturating_sub(spent);
        if window.is_last {
            return ends;
        }
        let read = at.begin.saturating_add(window.bytes.0);
        let goes_on = Self::income(beta_percent, read)
            .saturating_sub(spent)
            .saturating_sub(signed(at.depth).saturating_mul(2));
        ends.min(goes_on)
    }

    /// Balance with this window.
    pub(super) fn left_with(&self, beta_percent: u64, at: &At, window: &Opened) -> i64 {
        let spent = Self::spent(beta_percent, at)
            .saturating_add(signed(at.switch))
            .saturating_add(signed(window.bytes.0));
        let others = self.left.saturating_sub(at.stake.held);
        others.saturating_add(Self::worst(beta_percent, at, spent, window))
    }

    /// A window was opened, of `wanted` bytes had nothing cut it.
    pub(super) fn open(
        &mut self,
        beta_percent: u64,
        at: &At,
        window: &Opened,
        wanted: u64,
    ) -> Stake {
        let bytes = window.bytes.0;
        let is_forced = bytes < wanted.min(at.depth) && !window.is_last;
        let switch = if is_forced {
            bytes.min(at.switch)
        } else {
            at.switch
        };
        let spent = Self::spent(beta_percent, at)
            .saturating_add(signed(switch))
            .saturating_add(signed(bytes));
        let held = Self::worst(beta_percent, at, spent, window);
        self.left = self.left.saturating_sub(at.stake.held).saturating_add(held);
        Stake {
            is_begun: true,
            spent,
            held,
        }
    }

    /// A stream ended.
    pub(super) fn close(&mut self, beta_percent: u64, consumed: u64, stake: &Stake) {
        let kept = Self::income(beta_percent, consumed).saturating_sub(stake.spent);
        self.left = self.left.saturating_sub(stake.held).saturating_add(kept);
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
