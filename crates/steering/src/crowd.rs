//! Crowd: readers whose windows do not fit memory, and whether a fair queue serves them better.
//!
//! A window of w bytes costs the disk one switch, in which it could read d bytes, so readers get w / (w + d) of its rate. A
//! fair scheduler (`bfq`) lets one reader read on for a slice of time, however short its windows are, but waits for each of its reads:
//! where processors are busy and reads come late it gets next to nothing. So it is tried, and kept as long as it gets what
//! windows would:
//!
//! ```text
//! 64 readers, 256 MiB   w = 1 MiB, d = 640 kB    windows: 0.62 of 80 MB/s = 50    bfq, 128 KiB: 73, or 18 beside compilers
//!
//! windows --- w < 3 d, the disks busy for a second ---> fair
//!         <-- w > 5 d, or no readers ------------------
//!         <-- less than 0.7 of w / (w + d) for 5 s ---- and not again for 1, 2, 4, .. 16 minutes
//! ```
//!
//! While the queue is fair, open files have the device's limit, and so they do from the first sight of a crowd until it is
//! decided, and while the streams of a load that begins still come: Linux shortens no window of a stream that runs, and with
//! windows of 1 MiB `bfq` gets 58 MB/s of those 80.

use forerun_core::{Bytes, Nanos, Profile};

/// Windows shorter than so many switches are worth are a crowd's: they get less than three quarters of the rate.
const BEGIN: u64 = 3;
/// Longer than so many are not: five sixths.
const END: u64 = 5;
/// Disks that rest for more than a tenth of the time have no crowd.
const BUSY_PERCENT: u64 = 90;
/// A queue that was made fair has to learn its readers: measured, a third of its rate in the first second and two thirds in
/// the next one.
const SETTLED: Nanos = Nanos(2 * SECOND);
/// Slices of `bfq` are up to 125 ms long: forty of them.
const JUDGED: Nanos = Nanos(5 * SECOND);
/// Of the rate that windows would get. That is an estimate, which was up to 1.3 of the right one; a queue that is of no use gets a
/// third.
const KEEP_PERCENT: u128 = 70;
/// After a trial that failed.
const REST: Nanos = Nanos(60 * SECOND);
const REST_MAX: Nanos = Nanos(16 * 60 * SECOND);
/// Streams that begin a load come within so long of each other: a disk opens each in two switches.
const APART: Nanos = Nanos(SECOND / 10);
/// For so long at most.
const ARRIVAL: Nanos = Nanos(SECOND);
const SECOND: u64 = 1_000_000_000;

/// What disks did since they were asked last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Bytes that they delivered.
    pub bytes: u64,
    /// Time in which they had something to do, as the mean of all.
    pub busy: Nanos,
}

/// A queue that is fair for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Trial {
    /// Begin of the time that is judged next.
    since: Nanos,
    bytes: u64,
}

/// Whether the disks of a file system should serve fairly. See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowd {
    trial: Option<Trial>,
    asked: Nanos,
    /// What a switch is worth, in bytes.
    depth: u64,
    /// When the first stream of this load began, and when its last one did.
    load: Option<(Nanos, Nanos)>,
    /// Readers were a crowd when it was asked last.
    was_crowded: bool,
    /// They are one, and do not keep the disks busy.
    is_calm: bool,
    /// No trial before.
    rest_until: Nanos,
    rest: Nanos,
}

impl Crowd {
    /// Of disks of these costs, from this time on.
    #[must_use]
    pub fn new(now: Nanos, profile: &Profile) -> Self {
        Self {
            trial: None,
            asked: now,
            depth: depth(profile),
            load: None,
            was_crowded: false,
            is_calm: false,
            rest_until: Nanos(0),
            rest: REST,
        }
    }

    /// Whether the queue should be fair now. Asked once a second, with the window for which there is memory (none if
    /// there are no readers), the costs of the disks, and their work since it was asked last: none where it was not seen, and
    /// then no trial begins, and that time is not judged.
    pub fn is_there(
        &mut self,
        now: Nanos,
        window: Option<Bytes>,
        profile: &Profile,
        work: Option<Work>,
    ) -> bool {
        let before = std::mem::replace(&mut self.asked, now);
        let passed = now.since(before);
        let depth = depth(profile);
        self.depth = depth;
        let is_crowded = window.is_some_and(|window| self.is_short(window));
        let is_busy =
            |work: Work| work.busy.0.saturating_mul(100) >= passed.0.saturating_mul(BUSY_PERCENT);
        let is_busy = work.map(is_busy);
        let was_crowded = std::mem::replace(&mut self.was_crowded, is_crowded);
        if let Some(is_busy) = is_busy {
            self.is_calm = is_crowded && !is_busy && (was_crowded || self.is_calm);
        }
        let window = window.map_or(u64::MAX, |window| window.0);
        match &mut self.trial {
            None => {
                let is_begun = is_crowded && is_busy == Some(true);
                if is_begun && passed.0 > 0 && now >= self.rest_until {
                    let (since, bytes) = (Nanos(now.0.saturating_add(SETTLED.0)), 0);
                    self.trial = Some(Trial { since, bytes });
                }
            }
            Some(_) if window > depth.saturating_mul(END) => self.trial = None,
            Some(trial) if now <= trial.since => {}
            Some(trial) => {
                let Some(work) = work else {
                    let unseen = now.since(before.max(trial.since));
                    trial.since = Nanos(trial.since.0.saturating_add(unseen.0));
                    return true;
                };
                trial.bytes = trial.bytes.saturating_add(work.bytes);
                let judged = now.since(trial.since);
                if judged >= JUDGED {
                    let by_windows = by_windows(window, depth, profile.rate(Bytes(0)));
                    let wanted = by_windows * u128::from(judged.0) / u128::from(SECOND);
                    let is_worth = u128::from(trial.bytes) * 100 >= wanted * KEEP_PERCENT;
                    match is_worth {
                        true => {
                            *trial = Trial {
                                since: now,
                                bytes: 0,
                            }
                        }
                        false => self.fail(now),
                    }
                }
            }
        }
        self.trial.is_some()
    }

    /// The queue cannot be made fair.
    pub fn refused(&mut self, now: Nanos) {
        if self.trial.is_some() {
            self.fail(now);
        }
    }

    /// Nothing is to be set for a while, which says nothing of a fair queue.
    pub fn paused(&mut self) {
        self.trial = None;
    }

    fn fail(&mut self, now: Nanos) {
        self.trial = None;
        self.rest_until = Nanos(now.0.saturating_add(self.rest.0));
        self.rest = Nanos(self.rest.0.saturating_mul(2)).min(REST_MAX);
    }

    /// A stream began: the first one of a load, where none did just before.
    pub fn began(&mut self, now: Nanos) {
        let load = self.load.filter(|(_, last)| now.since(*last) < APART);
        self.load = Some((load.map_or(now, |(first, _)| first), now));
    }

    /// Whether open files have the device's limit now, of streams with this window.
    #[must_use]
    pub fn holds(&self, now: Nanos, window: Bytes) -> bool {
        let is_tried = now >= self.rest_until && !self.is_calm;
        self.is_fair() || (is_tried && (self.is_short(window) || self.comes(now)))
    }

    /// Whether streams of a load that begins still come.
    fn comes(&self, now: Nanos) -> bool {
        self.load
            .is_some_and(|(first, last)| now.since(first) < ARRIVAL && now.since(last) < APART)
    }

    fn is_short(&self, window: Bytes) -> bool {
        window.0 < self.depth.saturating_mul(BEGIN)
    }

    /// Whether it is fair, as it was decided last.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        self.trial.is_some()
    }
}

/// Bytes that a switch is worth.
fn depth(profile: &Profile) -> u64 {
    profile.competitive_depth(Bytes(0), Bytes(0)).0
}

/// Bytes a second that windows get, each for a switch that is worth `depth`.
fn by_windows(window: u64, depth: u64, rate: u64) -> u128 {
    let (window, depth) = (u128::from(window), u128::from(depth));
    u128::from(rate) * window / (window + depth).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk() -> Profile {
        Profile::constant(Nanos(8_000_000), 80_000_000).unwrap()
    }

    fn crowd() -> Crowd {
        Crowd::new(Nanos(0), &disk())
    }

    /// Seconds of a disk of 8 ms and 80 MB/s that is always busy, with this window and rate; whether each is fair.
    fn seconds(crowd: &mut Crowd, from: u64, count: u64, window: u64, rate: u64) -> Vec<bool> {
        let profile = disk();
        let busy = Nanos(SECOND);
        let work = Some(Work { bytes: rate, busy });
        let window = (window > 0).then_some(Bytes(window));
        let each = (from..from + count).map(|at| Nanos(at * SECOND));
        each.map(|now| crowd.is_there(now, window, &profile, work))
            .collect()
    }

    #[test]
    fn few_readers_never_get_a_fair_queue_and_many_at_once() {
        let mut crowd = crowd();
        assert_eq!(seconds(&mut crowd, 1, 20, 7 * MIB, 70_000_000), [false; 20]);
        assert_eq!(seconds(&mut crowd, 21, 1, MIB, 40_000_000), [true]);
        assert_eq!(seconds(&mut crowd, 22, 60, MIB, 73_000_000), [true; 60]);
        // Between three and five switches it stays as it is.
        assert_eq!(seconds(&mut crowd, 82, 9, 2 * MIB, 73_000_000), [true; 9]);
        assert_eq!(seconds(&mut crowd, 91, 1, 4 * MIB, 73_000_000), [false]);
        assert_eq!(seconds(&mut crowd, 92, 9, 2 * MIB, 73_000_000), [false; 9]);
    }

    #[test]
    fn a_fair_queue_that_gets_less_than_windows_is_given_up_for_longer_each_time() {
        let mut crowd = crowd();
        // Windows would get 49.7 MB/s.
        for rate in [0, 18_000_000, 34_000_000] {
            let mut crowd = crowd;
            let fair = seconds(&mut crowd, 1, 30, MIB, rate);
            assert_eq!(fair.iter().filter(|is_fair| **is_fair).count(), 7, "{rate}");
        }
        assert!(!seconds(&mut crowd.clone(), 1, 30, MIB, 35_000_000).contains(&false));
        let fair = seconds(&mut crowd, 1, 5_000, MIB, 18_000_000);
        let begins = fair
            .windows(2)
            .enumerate()
            .filter(|(_, two)| !two[0] && two[1]);
        let begins: Vec<usize> = begins.map(|(at, _)| at).collect();
        let rests: Vec<usize> = begins.windows(2).map(|two| two[1] - two[0] - 7).collect();
        assert_eq!(rests, [120, 240, 480, 960, 960, 960, 960]);
    }

    #[test]
    fn seconds_that_were_not_seen_neither_begin_nor_fail_a_trial_and_the_others_judge_it() {
        // Of ten seconds the first is seen. Two pass until the queue is settled, so the sixth one seen is the fifth judged.
        for (rate, is_kept) in [(18_000_000, false), (73_000_000, true)] {
            let mut crowd = crowd();
            let unseen = |crowd: &mut Crowd, at| {
                crowd.is_there(Nanos(at * SECOND), Some(Bytes(MIB)), &disk(), None)
            };
            assert!(!unseen(&mut crowd, 1), "no work was seen");
            for at in 2..72 {
                let is_seen = at % 10 == 2;
                let is_fair = match is_seen {
                    true => seconds(&mut crowd, at, 1, MIB, rate)[0],
                    false => unseen(&mut crowd, at),
                };
                assert_eq!(is_fair, is_kept || at < 52, "{rate}: {at}");
            }
        }
    }

    #[test]
    fn disks_that_rest_have_no_crowd_and_neither_have_those_without_readers() {
        let profile = disk();
        let mut crowd = crowd();
        for (busy, is_fair) in [(890_000_000, false), (900_000_000, true)] {
            let busy = Nanos(busy);
            let work = Some(Work { bytes: 1, busy });
            let mut crowd = crowd;
            let there = crowd.is_there(Nanos(SECOND), Some(Bytes(MIB)), &profile, work);
            assert_eq!(there, is_fair);
        }
        assert_eq!(seconds(&mut crowd, 1, 3, MIB, 73_000_000), [true; 3]);
        assert_eq!(seconds(&mut crowd, 4, 1, 0, 0), [false]);
        assert_eq!(
            seconds(&mut crowd, 5, 1, MIB, 73_000_000),
            [true],
            "no trial failed"
        );
        crowd.refused(Nanos(6 * SECOND));
        assert_eq!(seconds(&mut crowd, 7, 59, MIB, 73_000_000), [false; 59]);
        assert_eq!(seconds(&mut crowd, 66, 1, MIB, 73_000_000), [true]);
    }

    #[test]
    fn a_pause_of_any_length_costs_no_rest() {
        let mut crowd = crowd();
        for at in 1..600 {
            assert_eq!(seconds(&mut crowd, at, 1, MIB, 73_000_000), [true], "{at}");
            crowd.paused();
            assert!(!crowd.is_fair());
        }
        assert_eq!(seconds(&mut crowd, 600, 9, MIB, 73_000_000), [true; 9]);
    }

    #[test]
    fn windows_are_held_from_the_first_sight_of_a_crowd_until_it_is_decided() {
        let second = |at| Nanos(at * SECOND);
        let (short, long) = (Bytes(MIB), Bytes(3 * MIB));
        let mut crowd = crowd();
        assert!(crowd.holds(second(0), short) && !crowd.holds(second(0), long));
        // Readers that began within this second, and then go slowly.
        let calm = Some(Work::default());
        for (at, holds) in [(1, true), (2, false), (3, false)] {
            assert!(!crowd.is_there(second(at), Some(short), &disk(), calm));
            assert_eq!(crowd.holds(second(at), short), holds, "{at}");
        }
        assert_eq!(seconds(&mut crowd, 4, 7, MIB, 18_000_000), [true; 7]);
        assert_eq!(seconds(&mut crowd, 11, 1, MIB, 18_000_000), [false]);
        assert!(!crowd.holds(second(11), short), "a trial failed");
        assert!(crowd.holds(second(71), short), "the next one");
    }

    #[test]
    fn windows_are_held_while_the_streams_of_a_load_come() {
        let ms = |at| Nanos(at * SECOND / 1000);
        let long = Bytes(100 * MIB);
        let mut crowd = crowd();
        assert!(!crowd.holds(ms(0), long));
        for at in (0..=960).step_by(80) {
            crowd.began(ms(at));
            assert!(crowd.holds(ms(at + 30), long), "{at}");
        }
        assert!(!crowd.holds(ms(1000), long), "for a second at most");
        // Another load may come to one that is there.
        crowd.began(ms(9000));
        assert!(crowd.holds(ms(9099), long) && !crowd.holds(ms(9100), long));
        // Programs that open files without an end are none.
        for at in (20_000..40_000).step_by(50) {
            crowd.began(ms(at));
            assert_eq!(crowd.holds(ms(at), long), at < 21_000, "{at}");
        }
    }

    #[test]
    fn any_numbers_are_survived() {
        let (least, most) = (
            Profile::constant(Nanos(0), 1),
            Profile::constant(Nanos(u64::MAX), u64::MAX),
        );
        for profile in [least, most]
            .into_iter()
            .flatten()
            .chain([Profile::default()])
        {
            let mut crowd = Crowd::new(Nanos(5), &profile);
            for now in [0, 5, 6, u64::MAX - 1, u64::MAX, 0] {
                for window in [None, Some(0), Some(u64::MAX)] {
                    for of in [0, u64::MAX] {
                        let busy = Nanos(of);
                        for work in [None, Some(Work { bytes: of, busy })] {
                            crowd.is_there(Nanos(now), window.map(Bytes), &profile, work);
                        }
                    }
                }
            }
        }
    }
}
