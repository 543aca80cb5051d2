//! Budget: the part of the frames that each producer of fetches may have.
//!
//! Announced reads, files ahead, streams and demand reads share one memory. Each has a part that the others
//! cannot take, so that no two of them starve a third; a producer that is not at work leaves its part to
//! the streams, because their share is of all that is left. Where a plan begins while files ahead hold more
//! than their part, the parts sum to more than the frames until those files are read or closed; the frames
//! themselves are taken one by one, and there are no more of them.
//!
//! ```text
//! frames beside bookkeeping
//! |- plan         announced reads       3/4; none without hints
//! |- files ahead  beginnings of files   half of the frames beside the plan
//! |- streams      unread, all together  unread_percent of the rest; of half the frames beside the plan at least
//! `- the rest     demands, blocks read  at least the reserve, 1/32 and at most 256 frames
//! ```
//!
//! In MiB, of memory whose bookkeeping is paid, with `unread_percent` 75:
//!
//! | memory | alone: streams | plan | files ahead | streams beside both | reserve |
//! | --- | --- | --- | --- | --- | --- |
//! | 16 | 12 | 12 | 2 | 1.5 | 0.5 |
//! | 64 | 48 | 48 | 8 | 6 | 1 |
//! | 256 | 192 | 192 | 32 | 24 | 1 |
//! | 4096 | 3072 | 3072 | 512 | 384 | 1 |

/// The plan's part of the frames, in per cent: as much as streams may hold unread in the presets, so
/// that the last quarter keeps demand reads, files ahead and blocks read just now.
const PLAN_PERCENT: u64 = 75;
/// The reserve is this part of the frames ..
const RESERVE_PART: u32 = 32;
/// .. and at most so many: 1 MiB of pages, eight reads of 128 KiB.
const RESERVE_MAX: u32 = 256;

/// The frames, and the parts of the plan and of files ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shares {
    /// Frames beside bookkeeping.
    pub(crate) frames: u32,
    /// Those of the plan, while reads are announced.
    pub(crate) plan: u32,
    /// Those that files ahead take now.
    pub(crate) ahead: u64,
}

impl Shares {
    /// The frames of a plan that begins now.
    pub(crate) fn plan_max(frames: u32) -> u32 {
        u32::try_from(u64::from(frames) * PLAN_PERCENT / 100).unwrap_or(frames)
    }

    /// Frames that a prefetch must leave to be had, so that demand reads never queue for memory that was given
    /// away to guesses.
    pub(crate) fn reserve(frames: u32) -> u32 {
        (frames / RESERVE_PART).clamp(1, RESERVE_MAX)
    }

    /// Frames beside the plan's.
    fn left(&self) -> u64 {
        u64::from(self.frames.saturating_sub(self.plan))
    }

    /// Most frames that files ahead may have: a half, as a walk of objects of 1 MB on a store of 30 ms and 400 MB/s has 17 of
    /// them under way. Of 64 MiB it holds 22 beside the buffers of connections; a quarter held 11, 170 MB/s in place of 255.
    pub(crate) fn ahead_max(&self) -> u64 {
        self.left() / 2
    }

    /// Most frames that all streams together may hold unread.
    pub(crate) fn streams_max(&self, percent: u8) -> u64 {
        let rest = self.left().saturating_sub(self.ahead);
        rest.max(self.left() / 2) * u64::from(percent) / 100
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_two_producers_starve_a_third(
            frames in 64u32..1 << 24, has_plan: bool, has_ahead: bool, percent in 1u8..=100,
        ) {
            let plan = if has_plan { Shares::plan_max(frames) } else { 0 };
            let mut shares = Shares { frames, plan, ahead: 0 };
            shares.ahead = if has_ahead { shares.ahead_max() } else { 0 };
            let streams = shares.streams_max(percent);
            let all = u64::from(plan) + shares.ahead + streams;
            prop_assert!(all <= u64::from(frames), "{shares:?}: {all}");
            let least = u64::from(frames) / 8;
            prop_assert!(!has_plan || u64::from(plan) >= least, "{shares:?}");
            prop_assert!(shares.ahead_max() >= least, "{shares:?}");
            prop_assert!(streams >= least * u64::from(percent) / 100, "{shares:?}: {streams}");
        }
    }

    #[test]
    fn the_shares_are_those_of_the_table() {
        let mib = |blocks: u64| blocks as f64 / 256.0;
        for (memory, alone, plan, ahead, beside, reserve) in [
            (16, 12.0, 12.0, 2.0, 1.5, 0.5),
            (64, 48.0, 48.0, 8.0, 6.0, 1.0),
            (256, 192.0, 192.0, 32.0, 24.0, 1.0),
            (4096, 3072.0, 3072.0, 512.0, 384.0, 1.0),
        ] {
            let frames = memory * 256;
            let mut shares = Shares {
                frames,
                plan: 0,
                ahead: 0,
            };
            assert_eq!(mib(shares.streams_max(75)), alone);
            shares.plan = Shares::plan_max(frames);
            assert_eq!(mib(shares.plan.into()), plan);
            shares.ahead = shares.ahead_max();
            assert_eq!(mib(shares.ahead), ahead);
            assert_eq!(mib(shares.streams_max(75)), beside);
            assert_eq!(mib(Shares::reserve(frames).into()), reserve);
        }
    }
}
