//! Learned depth against the program that knows the lengths: at most 5 % more device time.

use forerun_sim::random::Random;

use crate::player::{DEPTH, Player};
use crate::table::Lengths;

/// Lengths that are drawn with equal chance: as fine as a distribution needs to be here.
const SAMPLES: usize = 500;
/// Streams that are learned from, and those that are compared.
const BEFORE: usize = 1000;
const AFTER: usize = 4000;

/// The windows of least expected device time for streams of these lengths, each as likely, by
/// `V(c) = min over w of D + w + S(c + w) / S(c) V(c + w)`: for each place among the sorted
/// lengths, the place where the next window ends.
fn optimal(lengths: &[u64]) -> Vec<usize> {
    let count = lengths.len();
    // Place i is behind the i shortest; count - i go on.
    let begin = |place: usize| if place == 0 { 0 } else { lengths[place - 1] };
    let (mut rest, mut next) = (vec![0.0_f64; count + 1], vec![count; count + 1]);
    for from in (0..count).rev() {
        if from > 0 && lengths[from] == lengths[from - 1] {
            // No stream is at this place: equal lengths end together.
            rest[from] = f64::INFINITY;
            continue;
        }
        rest[from] = f64::INFINITY;
        for to in from + 1..=count {
            if !rest[to].is_finite() {
                continue;
            }
            let goes_on = (count - to) as f64 / (count - from) as f64;
            let cost = (DEPTH + begin(to) - begin(from)) as f64 + goes_on * rest[to];
            if cost < rest[from] {
                (rest[from], next[from]) = (cost, to);
            }
        }
    }
    next
}

/// Cost of these windows for a stream.
fn cost(lengths: &[u64], next: &[usize], length: u64) -> u64 {
    let (mut place, mut end, mut spent) = (0, 0, 0);
    while end < length {
        place = next[place];
        spent += DEPTH + lengths[place - 1] - end;
        end = lengths[place - 1];
    }
    spent
}

#[test]
fn learned_windows_cost_at_most_5_percent_more_than_those_of_the_true_lengths() {
    let all = [
        Lengths::Fixed(10),
        Lengths::Fixed(130),
        Lengths::Fixed(2000),
        Lengths::Uniform(50),
        Lengths::Uniform(400),
        Lengths::Uniform(10_000),
        Lengths::Exponential(30),
        Lengths::Exponential(300),
        Lengths::Exponential(3000),
        Lengths::Lognormal(30),
        Lengths::Lognormal(200),
        Lengths::Lognormal(2000),
        Lengths::Two(10, 1000),
        Lengths::Two(100, 300),
        Lengths::Two(300, 20_000),
    ];
    for (seed, kind) in (0..).zip(all) {
        let mut random = Random::new(seed);
        let mut lengths: Vec<u64> = (0..SAMPLES).map(|_| kind.draw(&mut random)).collect();
        lengths.sort_unstable();
        let next = optimal(&lengths);
        let mut player = Player::new("learned");
        let mut draw = || *random.pick(&lengths).unwrap();
        (0..BEFORE).for_each(|_| player.play(draw()));
        let before = player.spent;
        let mut least = 0;
        for _ in 0..AFTER {
            let length = draw();
            player.play(length);
            least += cost(&lengths, &next, length);
        }
        let ratio = (player.spent - before) as f64 / least as f64;
        println!("{kind:?}: {ratio:.4}");
        assert!(
            ratio <= 1.05,
            "seed {seed}, {kind:?}: {ratio:.4} of the program's device time"
        );
    }
}
