//! Program: the windows that minimise the expected device time of a stream.
//!
//! Bytes are the unit of time, too: a switch takes as long as the transfer of D. A window of w
//! bytes costs `D + w`, read or not. V(c) is the least expected cost of the rest of a stream that
//! has consumed c bytes and goes on:
//!
//! ```text
//!   V(c) = min over w of  D + w + S(c + w) / S(c) x V(c + w)
//! ```
//!
//! It pays to end a window only where streams end, so c and c + w are the [edges](super::survival)
//! of the histogram, and V follows from the last to the first: a step for each pair of edges,
//! 25,000 at most (a tenth of a millisecond). Where too few streams went on for an estimate, the
//! rest is taken for another `2 D`, and no window is proposed.

use alloc::boxed::Box;

use super::survival::{Edge, ONE, Survival};

#[derive(Clone, Copy, Debug)]
struct State {
    edge: Edge,
    /// Where the best window from here ends.
    target: Option<u64>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Program {
    /// D.
    pub(super) depth: u64,
    states: Box<[State]>,
}

impl Program {
    pub(super) const BYTES_MAX: u64 =
        (size_of::<Program>() + Survival::EDGES_MAX * size_of::<State>()) as u64;

    /// Solves it for a device with this depth and windows of at most so many bytes.
    pub(super) fn solve(survival: &Survival, depth: u64, most: u64) -> Self {
        let unknown = State {
            edge: Edge {
                length: 0,
                passes: ONE,
                is_known: false,
            },
            target: None,
        };
        let edges = survival.edges();
        let mut states = alloc::vec![unknown; edges.len()].into_boxed_slice();
        let mut rest = alloc::vec![depth.saturating_mul(2); edges.len()];
        for (from, &edge) in edges.iter().enumerate().rev() {
            states[from].edge = edge;
            if !edge.is_known {
                continue;
            }
            let (mut best, mut passes) = (u64::MAX, ONE);
            for (to, end) in edges.iter().enumerate().skip(from + 1) {
                passes = passes * end.passes / ONE;
                let window = end.length - edge.length;
                if window > most && best < u64::MAX {
                    break;
                }
                let later = u128::from(passes) * u128::from(rest[to]) / u128::from(ONE);
                let later = u64::try_from(later).unwrap_or(u64::MAX);
                let cost = depth.saturating_add(window).saturating_add(later);
                if cost < best {
                    best = cost;
                    states[from].target = Some(end.length);
                }
                if passes == 0 {
                    break;
                }
            }
            rest[from] = best;
        }
        Self { depth, states }
    }

    /// Where a window that begins there should end; behind it. `None` if nothing is known.
    pub(super) fn target(&self, begin: u64) -> Option<u64> {
        let behind = self
            .states
            .partition_point(|state| state.edge.length <= begin);
        let state = self.states.get(behind.checked_sub(1)?)?;
        state.target.filter(|target| *target > begin)
    }

    /// Of the streams that have consumed `from` bytes, and perhaps end there, the part that goes on
    /// behind
    /// `to`, of [`ONE`].
    pub(super) fn passes(&self, from: u64, to: u64) -> u64 {
        let begin = self
            .states
            .partition_point(|state| state.edge.length < from);
        let between = self.states.iter().skip(begin);
        let between = between.take_while(|state| state.edge.length <= to);
        between.fold(ONE, |part, state| part * state.edge.passes / ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: u64 = 640_000;

    fn program(lengths: &[(u32, u64, bool)]) -> Program {
        let mut survival = Survival::new();
        for &(count, length, is_cut) in lengths {
            (0..count).for_each(|_| survival.add(length, is_cut));
        }
        Program::solve(&survival, D, 1 << 30)
    }

    #[test]
    fn streams_of_one_length_get_one_window_of_it() {
        let program = program(&[(100, 5_000_000, false)]);
        assert_eq!(program.target(0), Some(5_000_000));
        assert_eq!(program.target(4_000_000), Some(5_000_000));
        assert_eq!(program.target(5_000_000), None, "none went on");
        assert_eq!(program.passes(0, 4_999_999), ONE);
        assert_eq!(program.passes(0, 5_000_000), 0);
        assert_eq!(program.passes(5_000_000, 5_000_000), 0);
    }

    /// Half end after 0.1 D, half after 10 D. One window to the end costs 11 D; two cost
    /// 1.1 + 0.5 x 10.9 = 6.55 D. Were only one in 20 short, 1.1 + 0.95 x 10.9 would be too much.
    #[test]
    fn short_streams_get_a_window_of_their_own_if_there_are_enough() {
        let half = program(&[(100, D / 10, false), (100, 10 * D, false)]);
        assert_eq!(half.target(0), Some(D / 10));
        assert_eq!(half.target(D / 10), Some(10 * D));
        let few = program(&[(10, D / 10, false), (190, 10 * D, false)]);
        assert_eq!(few.target(0), Some(10 * D));
    }

    #[test]
    fn files_read_whole_get_one_window_whatever_their_size() {
        let program = program(&[(50, D / 3, true), (50, 4 * D, true), (50, 90 * D, true)]);
        assert_eq!(program.target(0), Some(90 * D));
        assert_eq!(program.passes(0, 80 * D), ONE);
    }
}
