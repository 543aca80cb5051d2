//! When the bytes of answers may leave: a rate for each connection, and one for all.
//!
//! Called by the [store](super), with the time as an argument, so that tests need no clock.
//!
//! All bodies under way have the same rate, `share = min(connection rate, rate in all / bodies)`:
//! processor sharing with a limit. So one number serves all of them, the *volume* that a body under
//! way from the beginning would have got by now. A body that joined at volume `v` has `volume - v`
//! bytes, and ends at volume `v + length`:
//!
//! ```text
//! volume |              ..---   one body: 80 MB/s
//!        |        ..--''        eight: 50 MB/s each, 400 in all
//!        |    .--'
//!        +------------------ time      the slope changes where a body joins or ends
//! ```
//!
//! Bodies that end between two calls are taken out at their own moments, so the result does not
//! depend on how often it is called.

use std::collections::BTreeSet;

use forerun_core::Nanos;

/// Parts of a byte that volumes are counted in: nanoseconds times bytes a second.
const PARTS: u128 = 1_000_000_000;

/// The rates, and the bodies under way.
#[derive(Debug)]
pub struct Network {
    connection_rate: u64,
    rate: u64,
    now: Nanos,
    volume: u128,
    /// By the volume at which each ends.
    bodies: BTreeSet<(u128, u64)>,
    next: u64,
}

/// A body under way.
#[derive(Debug)]
pub struct Flow {
    number: u64,
    begin: u128,
    end: u128,
}

impl Network {
    /// No body under way. Rates are bytes a second, and at least 1.
    #[must_use]
    pub fn new(connection_rate: u64, rate: u64) -> Self {
        Self {
            connection_rate: connection_rate.max(1),
            rate: rate.max(1),
            now: Nanos(0),
            volume: 0,
            bodies: BTreeSet::new(),
            next: 0,
        }
    }

    /// Bytes a second of each body.
    fn share(&self) -> u128 {
        let bodies = self.bodies.len().max(1) as u64;
        u128::from(self.connection_rate.min(self.rate / bodies).max(1))
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(&(end, number)) = self.bodies.first() {
            let share = self.share();
            let left = u128::from(now.0.saturating_sub(self.now.0));
            let needed = end.saturating_sub(self.volume).div_ceil(share);
            if needed > left {
                self.volume += share * left;
                break;
            }
            self.volume = self.volume.max(end);
            self.bodies.remove(&(end, number));
            // At most the rest of 64 bits.
            self.now.0 += needed as u64;
        }
        self.now = self.now.max(now);
    }

    /// A body of this length begins.
    pub fn join(&mut self, now: Nanos, bytes: u64) -> Flow {
        self.advance(now);
        let flow = Flow {
            number: self.next,
            begin: self.volume,
            end: self.volume + u128::from(bytes) * PARTS,
        };
        self.next += 1;
        self.bodies.insert((flow.end, flow.number));
        flow
    }

    /// A body ends, or is given up.
    pub fn leave(&mut self, now: Nanos, flow: &Flow) {
        self.advance(now);
        self.bodies.remove(&(flow.end, flow.number));
    }

    /// How many of its bytes may have left by now.
    pub fn released(&mut self, now: Nanos, flow: &Flow) -> u64 {
        self.advance(now);
        let volume = self.volume.min(flow.end);
        u64::try_from((volume - flow.begin) / PARTS).unwrap_or(u64::MAX)
    }

    /// The moment at which so many bytes may have left, if no other body begins or ends.
    pub fn when(&mut self, now: Nanos, flow: &Flow, bytes: u64) -> Nanos {
        self.advance(now);
        let wanted = (flow.begin + u128::from(bytes) * PARTS).min(flow.end);
        let needed = wanted.saturating_sub(self.volume).div_ceil(self.share());
        Nanos(
            now.0
                .saturating_add(u64::try_from(needed).unwrap_or(u64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_body_alone_has_the_rate_of_a_connection() {
        let mut network = Network::new(80 * MB, 400 * MB);
        let flow = network.join(Nanos(5), 160 * MB);
        assert_eq!(network.when(Nanos(5), &flow, 80 * MB), Nanos(5 + SECOND));
        assert_eq!(network.released(Nanos(5 + SECOND), &flow), 80 * MB);
        assert_eq!(network.released(Nanos(5 + 9 * SECOND), &flow), 160 * MB);
    }

    #[test]
    fn eight_bodies_share_the_rate_in_all() {
        let mut network = Network::new(80 * MB, 400 * MB);
        let flows = [(); 8].map(|()| network.join(Nanos(0), 100 * MB));
        for flow in &flows {
            assert_eq!(network.released(Nanos(SECOND), flow), 50 * MB);
            assert_eq!(
                network.when(Nanos(SECOND), flow, 100 * MB),
                Nanos(2 * SECOND)
            );
        }
    }

    #[test]
    fn rates_change_at_the_moment_a_body_ends_however_late_it_is_looked_at() {
        // Ten bodies at 40 MB/s; five end after a second, and the rest goes on at 80.
        let mut network = Network::new(80 * MB, 400 * MB);
        let short = [(); 5].map(|()| network.join(Nanos(0), 40 * MB));
        let long = [(); 5].map(|()| network.join(Nanos(0), 200 * MB));
        for flow in &long {
            assert_eq!(network.released(Nanos(2 * SECOND), flow), 120 * MB);
            assert_eq!(
                network.when(Nanos(2 * SECOND), flow, 200 * MB),
                Nanos(3 * SECOND)
            );
        }
        for flow in &short {
            assert_eq!(network.released(Nanos(2 * SECOND), flow), 40 * MB);
        }
    }

    #[test]
    fn a_body_that_leaves_gives_its_share_to_the_others() {
        let mut network = Network::new(80 * MB, 100 * MB);
        let [stalled, other] = [(); 2].map(|()| network.join(Nanos(0), 1_000 * MB));
        network.leave(Nanos(SECOND), &stalled);
        assert_eq!(network.released(Nanos(SECOND), &stalled), 50 * MB);
        assert_eq!(network.released(Nanos(2 * SECOND), &other), 130 * MB);
        let again = network.join(Nanos(2 * SECOND), 950 * MB);
        assert_eq!(network.released(Nanos(3 * SECOND), &again), 50 * MB);
        assert_eq!(network.released(Nanos(3 * SECOND), &other), 180 * MB);
    }

    #[test]
    fn all_together_never_exceed_the_rate_whatever_joins_and_leaves() {
        let seed = 1;
        eprintln!("network: seed {seed}");
        let mut draws = crate::content::Draws::new(seed);
        let mut network = Network::new(80 * MB, 400 * MB);
        let (mut flows, mut now, mut total) = (Vec::new(), Nanos(0), 0);
        for _ in 0..10_000 {
            now.0 += draws.below(10_000_000);
            if draws.below(3) > 0 || flows.is_empty() {
                flows.push(network.join(now, 1 + draws.below(8 * MB)));
            } else {
                let index = draws.below(flows.len() as u64) as usize;
                let flow = flows.swap_remove(index);
                total += network.released(now, &flow);
                network.leave(now, &flow);
            }
        }
        total += flows.iter().map(|f| network.released(now, f)).sum::<u64>();
        let bound = u128::from(400 * MB) * u128::from(now.0) / PARTS;
        assert!(u128::from(total) <= bound, "{total} of {bound}");
        // Two thirds of the moves are bodies of 4 MB in 5 ms: more than it carries.
        assert!(u128::from(total) * 10 >= bound * 9, "{total} of {bound}");
    }
}
