//! Device time stays within 2 + beta times the optimum's on adversarial streams.
//!
//! The adversary sees each window before it decides where its stream ends. It trains the method
//! with lengths, and then breaks with them.

use forerun_sim::random::Random;

use crate::player::{DEPTH, Open, Player};

/// Most streams open side by side.
const OPEN_MAX: usize = 40;
const STEPS: usize = 6000;

/// The behaviour of an adversary for a while.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// All streams have one length.
    Fixed(u64),
    /// Lengths of any magnitude.
    Any,
    /// Each ends right behind the begin of a window longer than D.
    EndsInLongWindows,
    /// Each ends right behind the begin of its window number so many.
    EndsInWindow(u64),
    /// None ends: many windows are open.
    Hoards,
    /// All that are open end now.
    Leaves,
}

impl Phase {
    fn draw(random: &mut Random) -> Self {
        match random.below(6) {
            0 => Self::Fixed(1 + random.magnitude(28)),
            1 => Self::Any,
            2 => Self::EndsInLongWindows,
            3 => Self::EndsInWindow(1 + random.below(4)),
            4 => Self::Hoards,
            _ => Self::Leaves,
        }
    }
}

/// A stream and its windows.
struct Planned {
    open: Open,
    windows: u64,
    length: u64,
}

struct Game {
    player: Player,
    random: Random,
    streams: Vec<Planned>,
    beta_percent: u64,
    seed: u64,
    /// The worst ratio so far, in millionths.
    worst: u64,
}

impl Game {
    fn new(beta_percent: u64, seed: u64) -> Self {
        Self {
            player: Player::new(&format!("learned(beta_percent={beta_percent})")),
            random: Random::new(seed),
            streams: Vec::new(),
            beta_percent,
            seed,
            worst: 0,
        }
    }

    /// At any moment, as if all streams that are open ended now. Percentages are rounded down: a
    /// byte for each window and end.
    fn check(&mut self, phase: Phase) {
        let Player { spent, optimum, .. } = self.player;
        let bound = u128::from(optimum) * u128::from(200 + self.beta_percent) / 100;
        let (seed, beta) = (self.seed, self.beta_percent);
        assert!(
            u128::from(spent) <= bound + 2 * STEPS as u128,
            "seed {seed}, beta {beta} %, {phase:?}: {spent} spent, {optimum} by the optimum"
        );
        let ratio = u128::from(spent) * 1_000_000 / u128::from(optimum);
        self.worst = self.worst.max(ratio as u64);
    }

    fn step(&mut self, phase: Phase) {
        let is_new =
            self.streams.is_empty() || (self.streams.len() < OPEN_MAX && self.random.chance(300));
        if is_new {
            let length = match phase {
                Phase::Fixed(length) => length,
                _ => 1 + self.random.magnitude(32),
            };
            let open = self.player.begin();
            self.streams.push(Planned {
                open,
                windows: 0,
                length,
            });
        }
        let at = self.random.below(self.streams.len() as u64) as usize;
        let stream = &mut self.streams[at];
        if stream.open.consumed < stream.open.fetched {
            let left = stream
                .open
                .fetched
                .min(stream.length.max(stream.open.consumed));
            let bytes = match phase {
                Phase::Fixed(_) | Phase::Any => left - stream.open.consumed,
                _ => stream.open.fetched - stream.open.consumed,
            };
            self.player.consume(&mut stream.open, bytes);
        }
        let ends = match phase {
            Phase::Fixed(_) | Phase::Any => stream.open.consumed >= stream.length,
            Phase::Hoards => false,
            Phase::Leaves => true,
            Phase::EndsInLongWindows | Phase::EndsInWindow(_) => {
                let window = self.player.window(&mut stream.open);
                stream.windows += 1;
                match phase {
                    Phase::EndsInWindow(number) => stream.windows >= number,
                    _ => window > DEPTH + DEPTH / 8 || stream.windows > 50,
                }
            }
        };
        if !ends && stream.open.consumed == stream.open.fetched {
            self.player.window(&mut stream.open);
            stream.windows += 1;
        }
        self.check(phase);
        if ends {
            let stream = self.streams.swap_remove(at);
            self.player.end(&stream.open);
        }
    }

    fn run(mut self) -> u64 {
        let mut phase = Phase::draw(&mut self.random);
        for _ in 0..STEPS {
            if self.random.chance(5) {
                phase = Phase::draw(&mut self.random);
            }
            self.step(phase);
        }
        self.worst
    }
}

#[test]
fn no_adversary_gets_device_time_past_the_bound() {
    for beta_percent in [0, 10, 25, 100] {
        let worst = (0..40)
            .map(|seed| Game::new(beta_percent, seed).run())
            .max();
        println!("beta {beta_percent} %: worst ratio {:?} millionths", worst);
    }
}

/// A thousand whole long files, and then streams that end with the first byte of each window: only
/// the saved credit is spent, and no more.
#[test]
fn short_streams_after_long_ones_stay_within_the_bound() {
    for long in [2, 10, 100] {
        let mut player = Player::new("learned");
        (0..1000).for_each(|_| player.play(long * DEPTH));
        let trained = player.spent as f64 / player.optimum as f64;
        for _ in 0..20_000 {
            player.play(1);
            assert!(
                player.spent <= player.optimum / 100 * 225 + 20_000,
                "{long} D: {} spent, {} by the optimum",
                player.spent,
                player.optimum
            );
        }
        println!("{long} D: {trained:.3} when trained");
        assert!(
            trained < 1.0 + 1.2 / (long + 1) as f64,
            "{long} D: {trained}"
        );
    }
}

/// And the other way round.
#[test]
fn long_streams_after_short_ones_stay_within_the_bound() {
    for short in [1, 100_000, DEPTH / 2] {
        let mut player = Player::new("learned");
        for length in
            core::iter::repeat_n(short, 5000).chain(core::iter::repeat_n(50 * DEPTH, 3000))
        {
            player.play(length);
            assert!(
                player.spent <= player.optimum / 100 * 225 + 20_000,
                "{short} bytes: {} spent, {} by the optimum",
                player.spent,
                player.optimum
            );
        }
    }
}

/// Below 32 streams the windows are those of growing depth with the same alpha.
#[test]
fn until_it_has_seen_32_streams_it_is_growing_depth() {
    let spent = |method, streams| {
        let mut player = Player::new(method);
        (0..streams).for_each(|stream| player.play((1 + stream % 7) * 3 * DEPTH));
        player.spent
    };
    assert_eq!(spent("learned", 32), spent("growing", 32));
    assert!(spent("learned", 64) < spent("growing", 64));
}
