//! The suite of the measure methods: devices that complete requests of all sizes after times of all
//! lengths.
//!
//! Times stand still, go backwards and jump; requests have no bytes, complete out of order, are
//! lost, or were never alone; profiles are told in between.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::measure::{Measure, Sample};
use crate::profile::{Profile, RATE_RANGE, SERVERS_MAX};
use crate::units::{Bytes, Nanos};

/// Requests of a seed.
const REQUESTS: usize = 600;

/// One thing that happens to a device.
#[derive(Clone, Debug)]
enum Event {
    Told(Profile),
    Ended(Sample),
    Lost(u32),
}

fn draw(random: &mut Random) -> Event {
    if random.one_in(100) {
        return Event::Told(profile(random));
    }
    let in_flight = 1 + random.magnitude(10) as u32;
    if random.one_in(20) {
        return Event::Lost(in_flight);
    }
    let sent = random.magnitude(63);
    // One in eight ends before it began.
    let ended = match random.below(8) {
        0 => random.magnitude(63),
        1 => sent,
        _ => sent.saturating_add(random.magnitude(50)),
    };
    Event::Ended(Sample {
        sent: Nanos(sent),
        ended: Nanos(ended),
        distance: Bytes(random.magnitude(63) * random.below(2)),
        bytes: Bytes(random.magnitude(50) * random.below(8).min(1)),
        in_flight,
        left: 1 + random.magnitude(10) as u32,
        is_full: random.one_in(2),
        ahead: Nanos(random.magnitude(63)),
        is_late: random.one_in(8),
    })
}

fn profile(random: &mut Random) -> Profile {
    let rate = RATE_RANGE.start() + random.magnitude(39);
    let cost = Nanos(random.magnitude(35));
    let servers = 1 + random.magnitude(10).min(u64::from(SERVERS_MAX) - 1) as u32;
    let profile = Profile::constant(cost, rate).unwrap_or_default();
    profile.clone().with_servers(servers).unwrap_or(profile)
}

fn take(method: &mut dyn Measure, event: &Event) {
    match event {
        Event::Told(profile) => method.told(profile),
        Event::Ended(sample) => method.ended(sample),
        Event::Lost(in_flight) => method.lost(*in_flight),
    }
}

/// Checks the measure method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn measure(make: &dyn Fn() -> Box<dyn Measure>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let mut random = Random(seed);
    let events: Vec<Event> = (0..REQUESTS).map(|_| draw(&mut random)).collect();
    let (mut method, mut again) = (make(), make());
    for event in &events {
        take(&mut *method, event);
        take(&mut *again, event);
        let profile = method.profile().clone();
        let limit = method.limit();
        let how = || format!("no request at all after {event:?}");
        rules.check(Rule::LimitPositive, limit > 0, how)?;
        // A question more for one of the two.
        let (far, long) = (Bytes(random.magnitude(60)), Bytes(random.magnitude(30)));
        let expected = again.expected(far, long);
        let longer = method.expected(far, Bytes(long.0 + 1 + random.magnitude(30)));
        let how = || format!("more than {long:?} takes {longer:?}, not {expected:?}");
        rules.check(Rule::LongerTakesLonger, longer >= expected, how)?;
        let is_equal = expected == method.expected(far, long)
            && (&profile, limit) == (again.profile(), again.limit());
        let how = || format!("{profile:?} and {:?} after {event:?}", again.profile());
        rules.check(Rule::Deterministic, is_equal, how)?;
    }
    Ok(())
}
