//! The suite of the dispatch methods: a device for which streams compete without end.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::dispatch::{Dispatch, Head, SLICE_MAX, Waiting};
use crate::units::Bytes;

/// Most streams.
const STREAMS_MAX: u64 = 8;
/// How many rounds of all streams, each with the longest slice, a request may wait for: its
/// reader's account may be a round of slices ahead, and so may all others be.
const ROUNDS: u64 = 4;

/// A stream of requests, one of which waits at any time.
#[derive(Debug)]
struct Stream {
    waiting: Waiting,
    bytes: u64,
    /// Work its reader was given, as [`dispatch`](crate::dispatch) reckons it.
    account: u64,
    /// The device's work when the request came.
    came: u64,
    /// In how many of its requests one begins elsewhere.
    jumps: u64,
    /// Where that is: just before the arm, to which an elevator comes next, or anywhere.
    is_before_arm: bool,
}

/// Checks the dispatch method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn dispatch(
    make: &dyn Fn() -> Box<dyn Dispatch>,
    seed: u64,
    but: &[Rule],
) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let method = make();
    slices(&*method, rules)?;
    let first = compete(&*method, rules)?;
    let again = compete(&*make(), rules)?;
    let how = || "two equal runs choose differently".into();
    rules.check(Rule::Deterministic, first == again, how)
}

fn slices(method: &dyn Dispatch, rules: Rules<'_>) -> Result<(), Broken> {
    let mut random = Random(rules.seed);
    for _ in 0..200 {
        let depth = Bytes(1 + random.magnitude(42));
        let runs = random.magnitude(20) as usize;
        let second = Bytes(random.magnitude(42));
        let slice = method.slice(depth, second, runs);
        let more = method.slice(depth, second, runs + 1);
        let how = || {
            format!("a slice of {slice} bytes for {runs} runs of depth {depth}, {second} a second")
        };
        rules.check(Rule::SliceCoversDepth, slice >= depth, how)?;
        let is_bounded = more <= slice && slice.0 <= depth.0.saturating_mul(SLICE_MAX);
        rules.check(Rule::SliceBounded, is_bounded, how)?;
        let same = method.slice(depth, second, runs) == slice;
        rules.check(Rule::Deterministic, same, how)?;
    }
    Ok(())
}

/// Streams that always have a request, until each was due several times over. Returns the choices.
fn compete(method: &dyn Dispatch, rules: Rules<'_>) -> Result<Vec<usize>, Broken> {
    let mut random = Random(rules.seed);
    let (depth, second) = (Bytes(1 << 20), Bytes(1 << 27));
    let count = 2 + random.below(STREAMS_MAX - 1);
    // Oldest first.
    let mut streams: Vec<Stream> = (0..count).map(|at| Stream::draw(&mut random, at)).collect();
    let longest = streams.iter().map(|stream| stream.bytes).max();
    let turn = method.slice(depth, second, 1).0 + 2 * depth.0 + longest.unwrap_or(0);
    let patience = ROUNDS * (count + 1) * turn;
    let (mut work, mut choices) = (0u64, Vec::new());
    let mut head = Head {
        depth,
        ..Head::default()
    };
    while work < 3 * patience {
        let mut waiting = streams.iter().map(|stream| stream.waiting);
        let chosen = method.next(&head, &mut waiting);
        let same = method.next(&head, &mut streams.iter().map(|stream| stream.waiting)) == chosen;
        let how = || format!("number {chosen} of {count} that wait, {head:?}");
        rules.check(Rule::Deterministic, same, how)?;
        rules.check(Rule::IndexExists, chosen < streams.len(), how)?;
        choices.push(chosen);
        let mut stream = streams.remove(chosen.min(streams.len() - 1));
        let position = stream.waiting.position;
        let switches = position != head.position;
        if switches {
            head.run = Bytes(0);
            head.slice = method.slice(depth, second, streams.len() + 1);
        }
        let cost = stream.bytes + if switches { depth.0 } else { 0 };
        let start = if switches {
            work
        } else {
            work.max(stream.account)
        };
        stream.account = start + cost * (count + 1);
        work += cost;
        head.run.0 += stream.bytes;
        head.position = position + stream.bytes;
        stream.come(&mut random, head.position, work);
        streams.push(stream);
        let waited = streams.iter().map(|stream| work - stream.came).max();
        let is_fair = waited.unwrap_or(0) <= patience;
        let how =
            || format!("a request waits for {patience} bytes of work and longer: {streams:?}");
        rules.check(Rule::NoStarvation, is_fair, how)?;
    }
    Ok(choices)
}

impl Stream {
    /// One of three reads at random, a switch's worth at most.
    fn draw(random: &mut Random, at: u64) -> Self {
        let is_short = random.one_in(3);
        let unit = if is_short { 16 } else { 18 };
        let mut stream = Self {
            waiting: Waiting {
                is_short,
                ..Waiting::new(0, 0)
            },
            bytes: (1 + random.below(16)) << unit,
            account: 0,
            came: 0,
            jumps: if is_short { 1 } else { 1 + random.magnitude(6) },
            is_before_arm: is_short && random.one_in(2),
        };
        stream.come(random, at << 36, 0);
        stream
    }

    /// Its next request, behind the one that ends there, or elsewhere.
    fn come(&mut self, random: &mut Random, end: u64, work: u64) {
        let jumps = random.one_in(self.jumps);
        self.waiting.position = match (jumps, self.is_before_arm) {
            (false, _) => end,
            (true, true) => end + 1 + random.magnitude(10),
            (true, false) => random.magnitude(40),
        };
        self.waiting.due = self.account.max(work);
        self.came = work;
    }
}
