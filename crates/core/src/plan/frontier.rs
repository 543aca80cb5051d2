//! Cursor window: which references of the announced order a read may take.
//!
//! Several readers share one order and read it slightly out of order. So the [plan](super) accepts
//! any reference within a window on either side of the *frontier*, the furthest place taken:
//!
//! ```text
//!   over     |   window   |   window   |  out of order: a stray
//!   ---------+------------+------------+-------------------- order of references
//!            ^ floor      ^ frontier
//! ```
//!
//! A reference not taken when the floor passes it counts as missed. A read beyond the window takes
//! no place; after [`STRAYS_MAX`] of them in a row the frontier moves to the earliest. Example,
//! window 100, frontier 500: a read of reference 430 or 590 is accepted, one of 700 is a stray.
//!
//! Pieces and readers are kept elsewhere; here are places only.

use crate::hinted::Position;

/// So many strays in a row mean that the reader is elsewhere; fewer may be looks at an index.
const STRAYS_MAX: u32 = 8;
/// No stray lies at this place.
const NOWHERE: u32 = u32::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Frontier {
    place: u32,
    pub(super) window: u32,
    /// Strays in a row, and the earliest place of them.
    strays: u32,
    stray: u32,
}

impl Frontier {
    /// At the beginning of an order.
    pub(super) fn new(window: u32) -> Self {
        Self {
            place: 0,
            window,
            strays: 0,
            stray: NOWHERE,
        }
    }

    /// Whether a read at a place of the order is no stray.
    pub(super) fn is_near(&self, place: Position) -> bool {
        place.0 <= self.place.saturating_add(self.window) && place != Position::NEVER
    }

    /// References before this place are not waited for any more.
    pub(super) fn floor(&self) -> u32 {
        self.place.saturating_sub(self.window)
    }

    /// A place was taken.
    pub(super) fn take(&mut self, place: Position) {
        self.move_to(place.0.saturating_add(1));
    }

    /// A read far from here. Enough of them move the frontier: whether this one did.
    pub(super) fn stray(&mut self, place: Position) -> bool {
        self.strays += 1;
        self.stray = self.stray.min(place.0);
        let is_elsewhere = self.strays >= STRAYS_MAX;
        if is_elsewhere {
            self.move_to(self.stray);
        }
        is_elsewhere
    }

    /// The order lost so many places at its beginning.
    pub(super) fn compact(&mut self, passed: u32) {
        self.place = self.place.saturating_sub(passed);
        self.move_to(self.place);
    }

    /// Onwards, never back; strays from before count no more.
    fn move_to(&mut self, place: u32) {
        self.place = self.place.max(place);
        (self.strays, self.stray) = (0, NOWHERE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_elsewhere_moves_nothing_and_staying_there_moves_to_the_earliest() {
        let mut frontier = Frontier::new(4);
        frontier.take(Position(9));
        let strays = [70, 60, 65, 61, 62, 63, 64];
        assert!(strays.iter().all(|at| !frontier.stray(Position(*at))));
        assert!(frontier.is_near(Position(14)) && !frontier.is_near(Position(15)));
        assert!(frontier.stray(Position(66)));
        assert_eq!(frontier.floor(), 60 - 4);
        assert!(!frontier.stray(Position(80)), "counted from anew");
    }

    #[test]
    fn what_is_never_read_is_near_nowhere() {
        let mut frontier = Frontier::new(u32::MAX);
        frontier.take(Position(u32::MAX - 1));
        assert!(!frontier.is_near(Position::NEVER));
    }
}
