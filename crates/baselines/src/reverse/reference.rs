//! Reverse aggressive by its rules alone, for tests: scans in place of sets, queues and links.
//!
//! The plan is the paper's section 2.5 read off step by step; the policy is section 2.7 over that plan. Real
//! [plans](super::Plan) and decisions of the real [policy](crate::hinted::reverse_aggressive) have to be the same, one
//! by one, so that a rule that is changed by a step shows.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::Model;
use forerun_core::DeviceId;
use forerun_core::hinted::batch::table_6;
use forerun_core::hinted::{BlockNo, Board, Pair, Position};

/// A fetch and an eviction, as [`Planned`](super::Planned).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Swap {
    pub(super) fetch: u32,
    pub(super) needed: u32,
    pub(super) released: u32,
    pub(super) evict: Option<u32>,
    /// The swap that evicts the block to be fetched.
    after: Option<usize>,
    is_done: bool,
}

/// A time that a block spends in the cache on the way back.
struct Stay {
    block: u32,
    /// The place backwards it came for; none for a block that is there in the beginning.
    came_for: Option<usize>,
    /// The place backwards of its last use meanwhile.
    last: Option<usize>,
    /// Which disk brings it, and when it is there.
    lands: Option<(usize, u64)>,
    has_ended: bool,
}

/// The way back.
struct Backwards<'a> {
    board: &'a Board,
    /// References from the last to the first, then blocks cached at the cursor.
    order: Vec<u32>,
    references: usize,
    stays: Vec<Stay>,
    now: u64,
    at: usize,
}

impl<'a> Backwards<'a> {
    fn new(board: &'a Board, given: &[u32]) -> Self {
        let places = (board.cursor().0..board.end().0).rev();
        let mut order: Vec<u32> = places.map(|p| block_at(board, p)).collect();
        let references = order.len();
        order.extend(given);
        let mut stays: Vec<Stay> = Vec::new();
        for block in &order {
            let is_new = stays.iter().all(|stay| stay.block != *block);
            if is_new && stays.len() < board.capacity() as usize {
                stays.push(Stay {
                    block: *block,
                    came_for: None,
                    last: None,
                    lands: None,
                    has_ended: false,
                });
            }
        }
        Self {
            board,
            order,
            references,
            stays,
            now: 0,
            at: 0,
        }
    }

    fn next_use(&self, block: u32) -> usize {
        let rest = self.order[self.at..].iter();
        let next = rest.clone().position(|b| *b == block);
        next.map_or(usize::MAX, |next| self.at + next)
    }

    fn stay_of(&self, block: u32) -> Option<&Stay> {
        self.stays.iter().find(|s| s.block == block && !s.has_ended)
    }

    fn is_resident(&self, block: u32) -> bool {
        self.stay_of(block).is_some_and(|s| s.lands.is_none())
    }

    fn disk(&self, block: u32) -> usize {
        disk_of(self.board, block)
    }

    /// The soonest arrival under way.
    fn next_landing(&self) -> Option<u64> {
        let stays = self.stays.iter().filter(|s| !s.has_ended);
        stays.filter_map(|s| Some(s.lands?.1)).min()
    }

    fn land(&mut self) {
        let now = self.now;
        for stay in &mut self.stays {
            stay.lands = stay.lands.filter(|(_, at)| *at > now);
        }
    }

    /// Free disks evict: of all of their blocks the one used last, for the missing block used first.
    fn decide(&mut self, model: Model) {
        let disks = self.board.disk_count() as usize;
        let works = |disk: usize| {
            let mut lands = self.stays.iter().filter_map(|s| s.lands);
            lands.any(|(on, _)| on == disk)
        };
        let mut room: Vec<u32> = (0..disks)
            .map(|disk| if works(disk) { 0 } else { model.batch })
            .collect();
        loop {
            let rest = self.order[self.at..].iter();
            let missing = rest.clone().position(|b| self.stay_of(*b).is_none());
            let Some(missing) = missing.map(|place| self.at + place) else {
                return;
            };
            let resident = self.stays.iter().filter(|s| !s.has_ended);
            let resident = resident.filter(|s| s.lands.is_none() && room[self.disk(s.block)] > 0);
            // Of blocks without a use the first disk's go first, and there the one of the highest number.
            let rank = |s: &&Stay| {
                let disk = self.disk(s.block);
                (self.next_use(s.block), usize::MAX - disk, s.block)
            };
            let Some(victim) = resident.max_by_key(rank).map(|s| s.block) else {
                return;
            };
            if self.next_use(victim) <= missing {
                return;
            }
            let disk = self.disk(victim);
            room[disk] -= 1;
            let queue = self.stays.iter().filter_map(|s| s.lands);
            let last = queue.filter(|(on, _)| *on == disk).map(|(_, at)| at).max();
            let lands = last.unwrap_or(self.now) + model.fetch_time;
            let stay = self.stays.iter_mut();
            for stay in stay.filter(|s| s.block == victim) {
                stay.has_ended = true;
            }
            self.stays.push(Stay {
                block: self.order[missing],
                came_for: Some(missing),
                last: None,
                lands: Some((disk, lands)),
                has_ended: false,
            });
        }
    }

    fn run(&mut self, model: Model) {
        while self.at < self.references {
            self.land();
            self.decide(model);
            let block = self.order[self.at];
            if !self.is_resident(block) {
                self.now = self.next_landing().unwrap();
                continue;
            }
            let end = self.now + 100;
            while let Some(next) = self.next_landing().filter(|next| *next < end) {
                self.now = next;
                self.land();
                self.decide(model);
            }
            self.now = end;
            let at = self.at;
            let stays = self.stays.iter_mut().filter(|s| !s.has_ended);
            for stay in stays.filter(|s| s.block == block) {
                stay.last = Some(at);
            }
            self.at += 1;
        }
    }
}

fn block_at(board: &Board, place: u32) -> u32 {
    board.block_at(Position(place)).unwrap().0
}

fn disk_of(board: &Board, block: u32) -> usize {
    board.disk_of(BlockNo(block)).unwrap().0.into()
}

/// The first place from the cursor on that names a block.
fn first_use(board: &Board, block: u32) -> u32 {
    let mut places = board.cursor().0..board.end().0;
    places
        .find(|p| block_at(board, *p) == block)
        .unwrap_or(u32::MAX)
}

/// The departures that are free at once, then those by their place, forward.
struct Departures {
    early: VecDeque<Option<u32>>,
    places: BTreeSet<u32>,
}

/// The swaps of a plan, in order.
pub(super) fn plan(board: &Board, model: Model) -> Vec<Swap> {
    let is_given =
        |block: &u32| board.is_resident(BlockNo(*block)) || board.is_in_flight(BlockNo(*block));
    let given: Vec<u32> = (0..board.blocks()).filter(is_given).collect();
    let mut back = Backwards::new(board, &given);
    back.run(model);
    let forward = |place: usize| board.end().0 - 1 - place as u32;
    let (mut arrivals, mut early) = (BTreeSet::new(), VecDeque::new());
    let mut places = BTreeSet::new();
    for stay in &back.stays {
        let stays_on = !stay.has_ended && given.contains(&stay.block);
        match (stay.last, stays_on) {
            (_, true) => {}
            (Some(last), false) => assert!(arrivals.insert(forward(last))),
            // Fetched and evicted without a use between: never gone.
            (None, false) => continue,
        }
        match stay.came_for {
            Some(place) if place < back.references => assert!(places.insert(forward(place))),
            Some(_) => early.push_back(Some(stay.block)),
            None => {}
        }
    }
    let empty = arrivals.len().min(board.empty_frames() as usize);
    early.extend((0..empty).map(|_| None));
    // Blocks cached at the cursor that the pass did without: first those without a use, then the one used last.
    let mut superfluous: Vec<(u32, u32)> = given
        .iter()
        .filter(|block| back.stay_of(**block).is_none())
        .map(|block| (first_use(board, *block), *block))
        .collect();
    superfluous.sort_unstable();
    early.extend(superfluous.into_iter().rev().map(|(_, block)| Some(block)));
    matched(board, &arrivals, Departures { early, places })
}

/// Arrivals and departures one to one.
fn matched(board: &Board, arrivals: &BTreeSet<u32>, mut from: Departures) -> Vec<Swap> {
    let begin = board.cursor().0;
    let mut swaps: Vec<Swap> = Vec::new();
    for needed in arrivals {
        let fetch = block_at(board, *needed);
        let before = (begin..*needed)
            .rev()
            .find(|p| block_at(board, *p) == fetch);
        let was_given = board.is_resident(BlockNo(fetch)) || board.is_in_flight(BlockNo(fetch));
        let mut after = None;
        if before.is_some() || was_given {
            let goes = before.map_or(begin, |place| place + 1);
            after = swaps.iter().rposition(|swap| swap.evict == Some(fetch));
            if after.is_none_or(|at| swaps[at].released != goes) {
                match before {
                    Some(place) => from.places.retain(|p| *p != place),
                    None => from.early.retain(|block| *block != Some(fetch)),
                }
                continue;
            }
        }
        let (evict, released) = match from.early.pop_front() {
            Some(frame) => (frame, begin),
            None => {
                let place = from.places.pop_first().expect("an arrival has a departure");
                (Some(block_at(board, place)), place + 1)
            }
        };
        swaps.push(Swap {
            fetch,
            needed: *needed,
            released,
            evict,
            after,
            is_done: false,
        });
    }
    swaps
}

/// The policy.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) model: Model,
    /// Most fetches a free disk gets at once; 0 as Table 6.
    pub(super) batch: u32,
    pub(super) swaps: Vec<Swap>,
    pub(super) room: Vec<u32>,
}

impl Reference {
    /// A round begins, with or without more hints.
    pub(super) fn begin(&mut self, board: &Board, is_hinted: bool) {
        if is_hinted {
            let batch = match self.model.batch {
                0 => table_6(board.disk_count()),
                size => size,
            };
            self.swaps = plan(
                board,
                Model {
                    batch,
                    ..self.model
                },
            );
        }
        let size = match self.batch {
            0 => table_6(board.disk_count()),
            size => size,
        };
        let room = |disk| if board.in_flight(disk) == 0 { size } else { 0 };
        self.room = board.disks().map(room).collect();
    }

    /// The first swap of a disk that is still to be done.
    fn front(&mut self, disk: usize, board: &Board) -> Option<usize> {
        for at in 0..self.swaps.len() {
            let swap = self.swaps[at];
            if swap.is_done || disk_of(board, swap.fetch) != disk {
                continue;
            }
            let block = BlockNo(swap.fetch);
            let is_there = board.is_resident(block) || board.is_in_flight(block);
            if !is_there && board.next_use(block).0 <= swap.needed {
                return Some(at);
            }
            if let Some(earlier) = swap.after.filter(|at| is_there && !self.swaps[*at].is_done) {
                if swap.released > board.here().0 {
                    return None;
                }
                self.swaps[earlier].evict = swap.evict;
                self.swaps[earlier].released = swap.released;
            }
            self.swaps[at].is_done = true;
        }
        None
    }

    fn planned(&mut self, board: &Board) -> Option<Pair> {
        let mut fronts = Vec::new();
        for disk in 0..self.room.len() {
            if self.room[disk] > 0 {
                fronts.extend(self.front(disk, board));
            }
        }
        let is_released = |at: &usize| self.swaps[*at].released <= board.here().0;
        let at = fronts.into_iter().filter(is_released).min()?;
        let swap = self.swaps[at];
        let evict = match swap.evict.map(BlockNo) {
            None if board.empty_frames() > 0 => None,
            Some(victim) if board.may_go(victim) && board.next_use(victim) > board.cursor() => {
                Some(victim)
            }
            _ => board.harmless_room(Position(swap.needed))?,
        };
        self.swaps[at].is_done = true;
        self.room[disk_of(board, swap.fetch)] -= 1;
        Some(Pair {
            fetch: BlockNo(swap.fetch),
            evict,
        })
    }

    /// The next fetch: the plan's, or that of the block a reader waits for.
    pub(super) fn next(&mut self, board: &Board) -> Option<Pair> {
        self.planned(board).or_else(|| {
            let position = board.awaited()?;
            let disk = disk_of(board, block_at(board, position.0)) as u16;
            let is_idle = board.in_flight(DeviceId(disk)) == 0;
            board.harmless_pair(position).filter(|_| is_idle)
        })
    }
}
