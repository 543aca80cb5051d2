//! The suite of the depth methods: limits over facts of all sizes, before and after windows were
//! opened and streams ended.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::depth::{
    Depth, DeviceFacts, Ended, NEW_DEPTHS_MAX, NEW_MAX, Opened, Stake, StreamFacts,
};
use crate::profile::{Profile, RATE_RANGE, SWITCHING_MAX};
use crate::units::{Bytes, DeviceId, Nanos};

/// Questions a seed asks.
const QUESTIONS: usize = 300;
/// How often it tells of each window or end, and asks again.
const ROUNDS: usize = 3;
/// For a hundred and more devices: 16 KiB each.
const STATE_MAX: u64 = 2 << 20;

/// A stream on a device.
#[derive(Clone, Debug)]
struct Case {
    stream: StreamFacts,
    profile: Profile,
    distance: Bytes,
    id: DeviceId,
    streams: u32,
}

impl Case {
    fn draw(random: &mut Random) -> Self {
        let rates = *RATE_RANGE.end() - *RATE_RANGE.start();
        let mut rate = || RATE_RANGE.start() + random.magnitude(40) % rates;
        let rates = [(Bytes(0), rate()), (Bytes(1 << 30), rate())];
        let mut cost = || Nanos(random.magnitude(36).min(SWITCHING_MAX.0));
        let costs = [(Bytes(0), cost()), (Bytes(1 << 30), cost())];
        let profile = Profile::new(costs.to_vec(), rates.to_vec()).unwrap_or_default();
        let stream = StreamFacts {
            asked: Bytes(1 + random.magnitude(32)),
            consumed: Bytes(random.magnitude(52)),
            last_window: Bytes(random.magnitude(34)),
            waited: random.one_in(2),
            location: Bytes(random.magnitude(40)),
            ahead: Bytes(random.magnitude(34)),
            is_early: random.one_in(2),
            continues: random.one_in(2),
            members: random.magnitude(4) as u32,
            stake: Stake {
                is_begun: random.one_in(2),
                spent: random.magnitude(63) as i64 - random.magnitude(63) as i64,
                held: random.magnitude(63) as i64 - random.magnitude(63) as i64,
            },
        };
        let distance = Bytes(random.magnitude(40));
        let id = DeviceId(random.magnitude(8) as u16);
        let servers = 1 + random.magnitude(10) as u32;
        let mut profile = profile.with_servers(servers).unwrap_or_default();
        if random.one_in(2) {
            profile = profile.with_most(servers);
        }
        let streams = random.magnitude(8) as u32;
        Self {
            id,
            streams,
            stream,
            profile,
            distance,
        }
    }

    fn device(&self) -> DeviceFacts<'_> {
        DeviceFacts {
            profile: &self.profile,
            distance: self.distance,
            id: self.id,
            streams: self.streams,
        }
    }

    fn ask(&self, method: &dyn Depth, stream: &StreamFacts) -> Bytes {
        method.limit(stream, &self.device())
    }

    /// The longest limit of a stream that has consumed less.
    fn most(&self) -> Bytes {
        let depth = self.device().depth(self.stream.location);
        Bytes(NEW_MAX.0.max(depth.0.saturating_mul(NEW_DEPTHS_MAX)))
    }

    /// A window of this stream, or its end.
    fn tell(&self, method: &mut dyn Depth, window: Option<Opened>) {
        let Some(window) = window else {
            let ended = Ended {
                consumed: self.stream.consumed,
                members: self.stream.members,
                is_cut: self.stream.waited,
                stake: self.stream.stake,
            };
            return method.ended(&ended, &self.device());
        };
        method.opened(&self.stream, &self.device(), &window);
    }

    /// The same stream at its first window.
    fn new_stream(&self) -> StreamFacts {
        StreamFacts {
            asked: self.stream.asked,
            location: self.stream.location,
            ..StreamFacts::default()
        }
    }
}

/// Checks the depth method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn depth(make: &dyn Fn() -> Box<dyn Depth>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let mut random = Random(seed);
    let cases: Vec<Case> = (0..QUESTIONS).map(|_| Case::draw(&mut random)).collect();
    let (mut method, mut again) = (make(), make());
    let limit = |case: &Case| case.ask(&*method, &case.stream);
    let limits: Vec<Bytes> = cases.iter().map(limit).collect();
    let is_cap = limits.iter().all(|limit| *limit == limits[0]);
    for (case, limit) in cases.iter().zip(&limits) {
        let Case { stream, .. } = case;
        let how = || format!("{} bytes for {case:?}", limit.0);
        rules.check(Rule::DepthZero, limit.0 > 0, how)?;
        let covers = is_cap || *limit >= stream.asked;
        rules.check(Rule::DepthCoversAsked, covers, how)?;
        let new = case.ask(&*method, &case.new_stream());
        let depth = case
            .profile
            .competitive_depth(case.distance, stream.location);
        let first = stream.asked.max(case.most());
        let bound = new.max(stream.asked).max(stream.consumed).max(depth);
        let is_bounded = new <= first && *limit <= bound;
        let how = || {
            let (limit, bound, new, first) = (limit.0, bound.0, new.0, first.0);
            format!(
                "{limit} bytes where at most {bound} are allowed, and of the first window {new} where at \
                 most {first} are, for {case:?}"
            )
        };
        rules.check(Rule::DepthBounded, is_bounded, how)?;
    }
    // Another of its kind, asked in another order, and the same one once more.
    for (case, limit) in cases.iter().zip(&limits).rev() {
        let answers = [&again, &method].map(|method| case.ask(&**method, &case.stream));
        let how = || format!("{limit:?} and then {answers:?} bytes for {case:?}");
        rules.check(Rule::Deterministic, answers == [*limit; 2], how)?;
    }
    for round in 0..ROUNDS {
        for case in &cases {
            let bytes = Bytes(random.magnitude(36));
            let is_last = random.one_in(4);
            let window = random.one_in(2).then_some(Opened { bytes, is_last });
            case.tell(&mut *method, window);
            case.tell(&mut *again, window);
        }
        told(&rules, &cases, [&*method, &*again], is_cap, round)?;
    }
    Ok(())
}

/// The same for two methods that were told the same.
fn told(
    rules: &Rules<'_>,
    cases: &[Case],
    methods: [&dyn Depth; 2],
    is_cap: bool,
    round: usize,
) -> Result<(), Broken> {
    for case in cases {
        let stream = &case.stream;
        let advice = methods.map(|method| method.advise(stream, &case.device()));
        let limits = methods.map(|method| case.ask(method, stream));
        let how = || format!("{advice:?} and {limits:?} for {case:?} in round {round}");
        let limit = limits[0];
        rules.check(Rule::DepthZero, limit.0 > 0, how)?;
        rules.check(Rule::DepthCoversAsked, is_cap || limit >= stream.asked, how)?;
        let is_bounded = limit <= stream.asked.max(stream.consumed).max(case.most());
        rules.check(
            Rule::DepthBounded,
            is_bounded && advice[0].floor <= limit,
            how,
        )?;
        let is_same = advice[0] == advice[1] && limits == [advice[0].limit; 2];
        rules.check(Rule::Deterministic, is_same, how)?;
    }
    let held = methods[0].state_bytes();
    let how = || format!("{held} bytes held in round {round}");
    rules.check(Rule::DepthBounded, held <= STATE_MAX, how)
}
