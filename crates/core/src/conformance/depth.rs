//! The suite of the depth methods: limits over facts of all sizes.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::depth::{Depth, DeviceFacts, NEW_DEPTHS_MAX, NEW_MAX, StreamFacts};
use crate::profile::{Profile, RATE_RANGE, SWITCHING_MAX};
use crate::units::{Bytes, DeviceId, Nanos};

/// Questions a seed asks.
const QUESTIONS: usize = 300;

/// A stream on a device.
#[derive(Clone, Debug)]
struct Case {
    stream: StreamFacts,
    profile: Profile,
    distance: Bytes,
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
            ..StreamFacts::default()
        };
        let distance = Bytes(random.magnitude(40));
        Self {
            stream,
            profile,
            distance,
        }
    }

    fn ask(&self, method: &dyn Depth, stream: &StreamFacts) -> Bytes {
        let device = DeviceFacts {
            profile: &self.profile,
            distance: self.distance,
            id: DeviceId(0),
        };
        method.limit(stream, &device)
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
        let most = NEW_MAX.0.max(depth.0.saturating_mul(NEW_DEPTHS_MAX));
        let is_bounded = new <= stream.asked.max(Bytes(most))
            && *limit <= new.max(stream.asked).max(stream.consumed).max(depth);
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
