//! Methods that are wrong, each in one way, with the rule that finds it.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::conformance::Rule;
use crate::depth::{Depth, DeviceFacts, StreamFacts};
use crate::detect::{self, Access, Ahead, Cause, Detect, Window};
use crate::dispatch::{Dispatch, Head, Waiting};
use crate::hinted::policy::Policy;
use crate::hinted::{BlockNo, Board, Pair, Position};
use crate::layout::{Layout, Piece};
use crate::units::{Block, Bytes};

/// Limits from a function.
#[derive(Debug)]
pub(super) struct Lies(pub(super) Limit);

type Limit = fn(&StreamFacts, Bytes) -> u64;

pub(super) const DEPTHS: &[(Rule, Limit)] = &[
    (Rule::DepthZero, |_, _| 0),
    (Rule::DepthZero, |stream, depth| match stream.waited {
        true => depth.0.max(stream.asked.0),
        false => 0,
    }),
    // The worked example of CONTRIBUTING.md before it looked at the demand.
    (Rule::DepthCoversAsked, |_, depth| (depth.0 / 2).max(1)),
    (Rule::DepthCoversAsked, |stream, _| {
        stream.asked.0.div_ceil(2)
    }),
    (Rule::DepthBounded, |_, _| u64::MAX),
    (Rule::DepthBounded, |stream, depth| {
        let wide = stream.consumed.0.saturating_mul(4);
        wide.max(depth.0).max(stream.asked.0)
    }),
    (Rule::DepthBounded, |stream, depth| {
        let doubled = stream.last_window.0.saturating_mul(2);
        doubled.max(depth.0).max(stream.asked.0)
    }),
];

impl Depth for Lies {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        let depth = device
            .profile
            .competitive_depth(device.distance, stream.location);
        Bytes(self.0(stream, depth))
    }
}

/// A depth that remembers.
#[derive(Debug, Default)]
pub(super) struct Counts(AtomicU64);

impl Depth for Counts {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        let depth = device
            .profile
            .competitive_depth(device.distance, stream.location);
        match self.0.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => depth.max(stream.asked),
            _ => stream.asked,
        }
    }
}

/// The defect of a detect method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Twist {
    AsyncTooLong,
    AboveLimit,
    BeginsBefore,
    EndsBefore,
    LeavesOut,
    InsideEverywhere,
    IgnoresCut,
    CountsQuestions,
}

pub(super) const WINDOWS: &[(Rule, Twist)] = &[
    (Rule::AsyncInWindow, Twist::AsyncTooLong),
    (Rule::WindowInLimit, Twist::AboveLimit),
    (Rule::WindowReaches, Twist::BeginsBefore),
    (Rule::WindowReaches, Twist::EndsBefore),
    (Rule::WindowAdjoins, Twist::LeavesOut),
    (Rule::InsideIsHonest, Twist::InsideEverywhere),
    (Rule::InsideIsHonest, Twist::IgnoresCut),
    (Rule::Deterministic, Twist::CountsQuestions),
];

/// On-demand readahead, but for one thing.
#[derive(Debug)]
pub(super) struct Twisted {
    inner: Box<dyn Detect>,
    twist: Twist,
    questions: AtomicU64,
}

impl Twisted {
    pub(super) fn boxed(twist: &Twist) -> Box<dyn Detect> {
        Box::new(Self {
            inner: detect::LIST[0].of(&[0, 0, 0]),
            twist: *twist,
            questions: AtomicU64::new(0),
        })
    }
}

impl Detect for Twisted {
    fn trigger(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        let mut window = self.inner.trigger(cause, access, ahead)?;
        match self.twist {
            Twist::AsyncTooLong => window.async_size = window.size + 1,
            Twist::AboveLimit => window.size = ahead.limit() + 1,
            Twist::BeginsBefore => window.start.0 = access.block.0.saturating_sub(1),
            Twist::EndsBefore => {
                window = Window::forward(Block(access.block.0.saturating_sub(1)), 1, 0);
            }
            Twist::LeavesOut => window.start.0 = window.start.0.saturating_add(ahead.limit() + 200),
            Twist::CountsQuestions if self.questions.load(Ordering::Relaxed).is_multiple_of(3) => {
                window.async_size = window.async_size.min(1);
            }
            _ => {}
        }
        Some(window)
    }

    fn cut(&mut self, end: Block) {
        if self.twist != Twist::IgnoresCut {
            self.inner.cut(end);
        }
    }

    fn inside_window(&self, block: Block) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed);
        self.twist == Twist::InsideEverywhere || self.inner.inside_window(block)
    }
}

/// The defect of a dispatch method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    BeyondTheLast,
    NewestFirst,
    NearestFirst,
    NoSlice,
    SliceWithoutEnd,
    SliceGrows,
}

pub(super) const ORDERS: &[(Rule, Order)] = &[
    (Rule::IndexExists, Order::BeyondTheLast),
    (Rule::NoStarvation, Order::NewestFirst),
    (Rule::NoStarvation, Order::NearestFirst),
    (Rule::SliceCoversDepth, Order::NoSlice),
    (Rule::SliceBounded, Order::SliceWithoutEnd),
    (Rule::SliceBounded, Order::SliceGrows),
];

/// Wrong in one thing.
#[derive(Debug)]
pub(super) struct Orders(pub(super) Order);

impl Dispatch for Orders {
    fn slice(&self, depth: Bytes, _: Bytes, runs: usize) -> Bytes {
        match self.0 {
            Order::NoSlice => Bytes(0),
            Order::SliceWithoutEnd => Bytes(u64::MAX),
            Order::SliceGrows => Bytes(depth.0.saturating_mul(1 + runs.min(100) as u64)),
            _ => depth,
        }
    }

    fn next(&self, head: &Head, waiting: &mut dyn Iterator<Item = Waiting>) -> usize {
        match self.0 {
            Order::BeyondTheLast => waiting.count(),
            Order::NewestFirst => waiting.count().saturating_sub(1),
            Order::NearestFirst => {
                let distance = |fetch: Waiting| fetch.position.abs_diff(head.position);
                let distances = (0..).zip(waiting.map(distance));
                distances
                    .min_by_key(|(_, distance)| *distance)
                    .map_or(0, |(at, _)| at)
            }
            _ => 0,
        }
    }
}

/// The defect of a hinted method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mistake {
    FetchesResident,
    FetchesInFlight,
    FetchesUnused,
    TakesAnyFrame,
    GivesUpKept,
    GivesUpInFlight,
    GivesUpSoonest,
    LeavesReaderWaiting,
}

pub(super) const PAIRS: &[(Rule, Mistake)] = &[
    (Rule::FetchMakesSense, Mistake::FetchesResident),
    (Rule::FetchMakesSense, Mistake::FetchesInFlight),
    (Rule::FetchMakesSense, Mistake::FetchesUnused),
    (Rule::VictimMakesSense, Mistake::TakesAnyFrame),
    (Rule::VictimMakesSense, Mistake::GivesUpKept),
    (Rule::VictimMakesSense, Mistake::GivesUpInFlight),
    (Rule::NoHarm, Mistake::GivesUpSoonest),
    (Rule::AwaitedIsFetched, Mistake::LeavesReaderWaiting),
];

/// Fetches the soonest missing block in place of the one used furthest, but for one thing.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) Mistake);

impl Wrong {
    /// The first block of which this holds.
    fn find(board: &Board, holds: impl Fn(BlockNo) -> bool) -> Option<BlockNo> {
        (0..board.blocks()).map(BlockNo).find(|block| holds(*block))
    }

    /// A block that must not be fetched.
    fn fetch(&self, board: &Board) -> Option<BlockNo> {
        Self::find(board, |block| match self.0 {
            Mistake::FetchesResident => board.is_resident(block),
            Mistake::FetchesInFlight => board.is_in_flight(block),
            Mistake::FetchesUnused => {
                let is_used = board.next_use(block) != Position::NEVER;
                !is_used && !board.is_resident(block) && !board.is_in_flight(block)
            }
            _ => false,
        })
    }

    /// A block that must not be given up.
    fn victim(&self, board: &Board, needed: Position) -> Option<BlockNo> {
        Self::find(board, |block| match self.0 {
            Mistake::GivesUpKept => board.is_resident(block) && !board.may_go(block),
            Mistake::GivesUpInFlight => board.is_in_flight(block),
            Mistake::GivesUpSoonest => board.may_go(block) && board.next_use(block) < needed,
            _ => false,
        })
    }
}

impl Policy for Wrong {
    fn next(&mut self, board: &Board) -> Option<Pair> {
        if self.0 == Mistake::LeavesReaderWaiting && board.awaited().is_some() {
            return None;
        }
        let position = board.soonest_missing()?;
        let mut pair = match self.0 {
            Mistake::TakesAnyFrame => Pair {
                fetch: board.block_at(position)?,
                evict: None,
            },
            _ => board.harmless_pair(position)?,
        };
        pair.fetch = self.fetch(board).unwrap_or(pair.fetch);
        if pair.evict.is_some() {
            pair.evict = self.victim(board, position).or(pair.evict);
        }
        Some(pair)
    }
}

/// Strips of 4096 bytes from a function of the strip, the byte in it and the members.
#[derive(Debug)]
pub(super) struct Misplaces(pub(super) Mapping);

type Mapping = fn(u64, u64, u64) -> (u64, u64, u64);

pub(super) const PIECES: &[(Rule, Mapping)] = &[
    (Rule::PieceExists, |strip, at, n| {
        (strip % (n + 1), strip / n * 4096 + at, 4096 - at)
    }),
    (Rule::PieceExists, |strip, at, n| {
        (
            strip % n,
            strip / n * 4096 + at,
            if strip % 7 == 3 { 0 } else { 4096 - at },
        )
    }),
    // The row is forgotten.
    (Rule::PiecesApart, |strip, at, n| (strip % n, at, 4096 - at)),
    // The strip goes on where another member begins.
    (Rule::RunIsWhole, |strip, at, n| {
        (strip % n, strip / n * 4096 + at, 8192 - at)
    }),
    // Two strips of a stripe share a member.
    (Rule::StripesSpread, |strip, at, n| {
        let row = strip / (2 * n) * 2 + strip % 2;
        (strip / 2 % n, row * 4096 + at, 4096 - at)
    }),
    (Rule::UnitDivides, |strip, at, n| {
        (strip % n, strip / n * 4096 + at, 4097 - at)
    }),
];

impl Layout for Misplaces {
    fn piece(&self, offset: u64, members: usize) -> Piece {
        let members = members.max(1) as u64;
        let (member, offset, bytes) = self.0(offset / 4096, offset % 4096, members);
        Piece {
            member: member as usize,
            offset,
            bytes,
        }
    }

    fn unit(&self) -> u64 {
        4096
    }

    fn accepts(&self, members: usize) -> bool {
        members > 0
    }
}
