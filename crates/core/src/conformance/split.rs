//! The suite of the split methods: misses in bursts and none for long, and frames that are needed
//! at times that go on, stand still, jump and run backward.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::split::{Miss, Split};
use crate::units::Nanos;

/// Things that happen in a run.
const STEPS: usize = 1000;

/// One thing that happens to a memory.
#[derive(Clone, Copy, Debug)]
enum Event {
    Missed(Miss, u64),
    Needed(Nanos),
}

fn draw(random: &mut Random, now: &mut u64) -> Event {
    if random.one_in(2) {
        let miss = [Miss::Prefetch, Miss::Cache][random.below(2) as usize];
        return Event::Missed(miss, random.magnitude(8));
    }
    *now = match random.below(16) {
        0 => random.magnitude(63),
        1 => now.saturating_sub(random.magnitude(40)),
        2 => *now,
        // Up to 17 s, the length of many epochs.
        _ => now.saturating_add(random.magnitude(34)),
    };
    Event::Needed(Nanos(*now))
}

/// The part that a method answers with, if it is asked.
fn take(method: &mut dyn Split, event: Event) -> Option<u8> {
    match event {
        Event::Missed(miss, times) => (0..times).for_each(|_| method.missed(miss)),
        Event::Needed(now) => return Some(method.percent(now)),
    }
    None
}

/// Checks the split method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn split(make: &dyn Fn() -> Box<dyn Split>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let (mut random, mut now) = (Random(seed), 0);
    let events: Vec<Event> = (0..STEPS).map(|_| draw(&mut random, &mut now)).collect();
    let (mut method, mut again, mut untold) = (make(), make(), make());
    let learns = method.learns();
    for event in events {
        let part = take(&mut *method, event);
        let other = take(&mut *again, event);
        let alone = match event {
            Event::Missed(..) => None,
            Event::Needed(_) => take(&mut *untold, event),
        };
        let Some(part) = part else { continue };
        let is_part = (1..=99).contains(&part);
        let how = || format!("{part} % after {event:?}");
        rules.check(Rule::PartInRange, is_part, how)?;
        let how = || format!("{part} %, and without misses {alone:?}, after {event:?}");
        rules.check(Rule::LearnsIsHonest, learns || alone == Some(part), how)?;
        // A question more for one of the two.
        let once_more = take(&mut *method, event);
        let is_equal = [other, once_more] == [Some(part); 2] && method.learns() == learns;
        let how = || format!("{part} %, {other:?} and {once_more:?} after {event:?}");
        rules.check(Rule::Deterministic, is_equal, how)?;
    }
    Ok(())
}
