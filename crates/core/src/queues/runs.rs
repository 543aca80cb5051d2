//! Runs: how many there are among wants that come and go.
//!
//! A *run* is wants that continue each other on the device: it costs one switch, and gets one slice. A want begins a
//! run if none ends where it begins. How many runs wait is asked with every window and every request, so it is kept
//! and not counted: each place has how many wants begin and end there.
//!
//! ```text
//! wants    [0, 8)  [8, 12)  [40, 44)      place 0: begins    8: begins, ends    12: ends    40: begins    44: ends
//! runs     two: those that begin at 0 and at 40
//! ```

use alloc::collections::BTreeMap;

use super::Want;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// How many wants begin and how many end there.
    places: BTreeMap<u64, [usize; 2]>,
    pub(super) count: usize,
}

impl Runs {
    pub(super) fn add(&mut self, want: &Want) {
        let [begin, end] = places(want);
        self.change(begin, |[begins, _]| *begins += 1);
        self.change(end, |[_, ends]| *ends += 1);
    }

    /// A want that was added.
    pub(super) fn remove(&mut self, want: &Want) {
        let [begin, end] = places(want);
        self.change(begin, |[begins, _]| *begins -= 1);
        self.change(end, |[_, ends]| *ends -= 1);
    }

    fn change(&mut self, place: u64, change: impl FnOnce(&mut [usize; 2])) {
        let begins_run = |[begins, ends]: &[usize; 2]| usize::from(*begins > 0 && *ends == 0);
        let wants = self.places.entry(place).or_default();
        self.count -= begins_run(wants);
        change(wants);
        self.count += begins_run(wants);
        if *wants == [0, 0] {
            self.places.remove(&place);
        }
    }
}

fn places(want: &Want) -> [u64; 2] {
    [want.position, want.position.saturating_add(want.bytes.0)]
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::queues::queue::{Class, Wanted};
    use crate::units::{Bytes, RequestId};

    fn counted(wants: &[Want]) -> usize {
        let mut begins: Vec<u64> = wants.iter().map(|want| want.position).collect();
        begins.sort_unstable();
        begins.dedup();
        let ends_at = |at: &u64| wants.iter().any(|want| places(want)[1] == *at);
        begins.iter().filter(|at| !ends_at(at)).count()
    }

    #[test]
    fn the_number_that_is_kept_is_the_number_that_is_counted_whatever_comes_and_goes() {
        let (mut runs, mut wants) = (Runs::default(), Vec::new());
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut most = 0;
        for _ in 0..4000 {
            if draw(5) < 3 || wants.is_empty() {
                let want = Want {
                    fetch: Wanted::Request(RequestId(0)),
                    class: Class::Program,
                    owner: None,
                    came: 0,
                    position: if draw(50) == 0 { u64::MAX } else { draw(200) },
                    bytes: Bytes(draw(6)),
                };
                runs.add(&want);
                wants.push(want);
            } else {
                let at = draw(wants.len() as u64) as usize;
                runs.remove(&wants.swap_remove(at));
            }
            if draw(40) == 0 {
                while let Some(want) = wants.pop() {
                    runs.remove(&want);
                }
                assert!(runs.places.is_empty());
            }
            assert_eq!(runs.count, counted(&wants));
            most = most.max(runs.count);
        }
        assert!(most > 5, "{most} runs at most");
    }
}
