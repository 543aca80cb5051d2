//! The suite of the depth methods: limits over facts of all sizes.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::depth::{Depth, DeviceFacts, NEW_DEPTHS_MAX, NEW_MAX, StreamFacts};
use crate::profile::{Profile, RATE_RANGE, SWITCHING_MAX};
use crate::units::{Bytes, Nanos};

/// Questions a seed asks.
const QUESTIONS: usize = 300;

/// A stream on a device.
#[derive(Clone, Debug)]
struct Case {
    stream: StreamFacts,
    profile: Profile,
    distance: Bytes,
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
            is_from_begin: random.one_in(2),
            ahead: Bytes(random.magnitude(34)),
            last_window: Bytes(random.magnitude(34)),
            waited: random.one_in(2),
            location: Bytes(random.magnitude(40)),
        };
        let distance = Bytes(random.magnitude(40));
        let servers = 1 + random.magnitude(10) as u32;
        let mut profile = profile.with_servers(servers).unwrap_or_default();
        if random.one_in(2) {
            profile = profile.with_most(servers);
        }
        let streams = random.magnitude(8) as u32;
        Self {
            streams,
            stream,
            profile,
            distance,
        }
    }

    fn device(&self) -> DeviceFacts<'_> {
        DeviceFacts::new(&self.profile, self.distance, self.streams)
    }

    fn ask(&self, method: &dyn Depth, stream: &StreamFacts) -> Bytes {
        method.limit(stream, &self.device())
    }

    /// The longest limit of a stream that has consumed less.
    fn most(&self) -> Bytes {
        let depth = self.device().depth(self.stream.location);
        Bytes(NEW_MAX.0.max(depth.0.saturating_mul(NEW_DEPTHS_MAX)))
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
    let (method, again) = (make(), make());
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
        let asked = Bytes(stream.asked.0.saturating_mul(2));
        let first = asked.max(case.most());
        let depths = if stream.is_from_begin {
            NEW_DEPTHS_MAX
        } else {
            1
        };
        let depths = Bytes(depth.0.saturating_mul(depths));
        let bound = new.max(asked).max(stream.consumed).max(depths);
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
    Ok(())
}
