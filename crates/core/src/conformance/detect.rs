//! The suite of the detect methods: one open file, read in many ways, and a cache that forgets.
//!
//! Around the method stands as much of an engine as it can notice: a read asks at missing and at
//! marked blocks, a window is fetched at once, now and then only its first part, and blocks are
//! lost.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::{Broken, Random, Rule, Rules};
use crate::detect::{Access, Ahead, Cause, Detect, Direction, Window};
use crate::units::Block;

/// Blocks of the file.
const BLOCKS: u32 = 3000;
/// Reads of one seed, in patterns of so many at most.
const READS: u32 = 800;
const PATTERN_MAX: u64 = 60;
/// The longest limit, in blocks: Linux has 32 pages.
const LIMIT_MAX: u64 = 64;

/// The device's transfer during a switch, in blocks, between the gaps of short and of long
/// strides; and on how many requests it works at once.
const SWITCH: u32 = 40;
const SERVERS: u32 = 4;

/// One block, as the cache and the method's windows have it.
#[derive(Clone, Debug, Default)]
struct BlockState {
    cached: bool,
    unread: bool,
    mark: bool,
    /// Some window had it, and was not cut off before it.
    covered: bool,
    /// The method was told that it is cached.
    shown: Cell<bool>,
}

struct View<'a> {
    run: &'a DetectRun<'a>,
}

impl Ahead for View<'_> {
    fn limit(&self) -> u32 {
        self.run.limit
    }

    fn cached(&self, block: Block) -> bool {
        let place = self.run.place(block);
        place.is_some_and(|place| {
            place.shown.set(place.shown.get() || place.cached);
            place.cached
        })
    }

    fn unread(&self, block: Block) -> bool {
        self.run.place(block).is_some_and(|place| place.unread)
    }

    fn switch(&self, _distance: u32) -> u32 {
        SWITCH
    }

    fn servers(&self) -> u32 {
        SERVERS
    }

    fn room(&self) -> u32 {
        self.run.limit
    }

    /// At every fifth question.
    fn is_congested(&self) -> bool {
        self.run.answers.len() % 5 == 4
    }
}

/// Checks the detect method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn detect(make: &dyn Fn() -> Box<dyn Detect>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let first = DetectRun::new(make(), rules, 4).finish()?;
    // So many more that a method which counts them by any small number comes to another.
    let again = DetectRun::new(make(), rules, 17).finish()?;
    let how = || "the same reads give other windows after more questions".into();
    rules.check(Rule::Deterministic, first == again, how)
}

/// A file being read.
struct DetectRun<'a> {
    rules: Rules<'a>,
    method: RefCell<Box<dyn Detect>>,
    random: Random,
    /// Questions that must not matter, and from where they are drawn.
    questions: u32,
    odd: Random,
    places: Vec<BlockState>,
    /// The file's first block: such that its last is 0, or the last there can be.
    base: u32,
    limit: u32,
    previous: Option<Block>,
    answers: Vec<Option<Window>>,
}

impl<'a> DetectRun<'a> {
    fn new(method: Box<dyn Detect>, rules: Rules<'a>, questions: u32) -> Self {
        let base = if rules.seed % 4 == 3 {
            u32::MAX - BLOCKS + 1
        } else {
            0
        };
        Self {
            rules,
            method: RefCell::new(method),
            random: Random(rules.seed),
            questions,
            odd: Random(rules.seed ^ u64::from(questions)),
            places: vec![BlockState::default(); BLOCKS as usize],
            base,
            limit: 32,
            previous: None,
            answers: Vec::new(),
        }
    }

    fn place(&self, block: Block) -> Option<&BlockState> {
        self.places.get(block.0.checked_sub(self.base)? as usize)
    }

    fn place_mut(&mut self, block: Block) -> Option<&mut BlockState> {
        self.places
            .get_mut(block.0.checked_sub(self.base)? as usize)
    }

    /// Reads in one pattern after the other. Returns the method's answers.
    fn finish(mut self) -> Result<Vec<Option<Window>>, Broken> {
        let mut reads = 0;
        while reads < READS {
            let mut random = self.random.clone();
            self.limit = 1 + random.below(LIMIT_MAX) as u32;
            let count = 1 + random.magnitude(6) as u32;
            // Sequential, backwards, by strides or anywhere; two of them in turn.
            let wide = count + SWITCH + random.below(8) as u32;
            let steps = [count, 0, 3 * count, wide];
            let step = steps[random.below(4) as usize];
            let step = if random.one_in(3) {
                step.wrapping_neg()
            } else {
                step
            };
            let mut heads = [0; 2].map(|_: u32| random.below(u64::from(BLOCKS)) as u32);
            if random.one_in(3) {
                heads[0] = 0;
            }
            for _ in 0..=random.below(PATTERN_MAX) {
                let turn = usize::from(random.one_in(4));
                self.random = random.clone();
                self.read(heads[turn], count.min(BLOCKS - heads[turn]))?;
                random = self.random.clone();
                heads[turn] = match step {
                    0 => random.below(u64::from(BLOCKS)) as u32,
                    _ => heads[turn].wrapping_add(step).wrapping_add(BLOCKS) % BLOCKS,
                };
                reads += 1;
            }
            self.random = random;
            self.lose();
        }
        Ok(self.answers)
    }

    /// Blocks leave the cache: some, or all.
    fn lose(&mut self) {
        let one_in = 1 + self.random.magnitude(5);
        for place in &mut self.places {
            if self.random.one_in(one_in) {
                (place.cached, place.unread, place.mark) = (false, false, false);
            }
        }
    }

    /// A read, as an engine does it.
    fn read(&mut self, from: u32, count: u32) -> Result<(), Broken> {
        let first = Block(self.base + from);
        let (end, previous) = (u64::from(first.0) + u64::from(count), self.previous);
        let access = Access {
            block: first,
            head: 0,
            count,
            previous,
        };
        let sees_blocks = self.method.get_mut().sees_every_block();
        if self.method.get_mut().sees_every_read() && !sees_blocks {
            self.show(&access)?;
        }
        for at in (u64::from(first.0)..end).map(|at| Block(at as u32)) {
            let access = access.at(at);
            if sees_blocks {
                self.show(&access)?;
            }
            let Some(place) = self.place_mut(at) else {
                continue;
            };
            let was_marked = core::mem::take(&mut place.mark);
            if !place.cached {
                self.trigger(Cause::Miss, &access)?;
            } else if was_marked {
                place.unread = false;
                self.trigger(Cause::Mark, &access)?;
            }
            // A block of no window is fetched as it is asked for.
            if let Some(place) = self.place_mut(at) {
                (place.cached, place.unread) = (true, false);
            }
        }
        self.previous = Some(Block((end - 1) as u32));
        Ok(())
    }

    fn show(&mut self, access: &Access) -> Result<(), Broken> {
        for _ in 0..2 {
            let answer = self.ask(access, |method, view| method.read(access, view))?;
            if answer.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn trigger(&mut self, cause: Cause, access: &Access) -> Result<(), Broken> {
        self.ask(access, |method, view| method.trigger(cause, access, view))?;
        Ok(())
    }

    fn ask(
        &mut self,
        access: &Access,
        question: impl Fn(&mut dyn Detect, &View<'_>) -> Option<Window>,
    ) -> Result<Option<Window>, Broken> {
        let view = View { run: self };
        let answer = question(self.method.borrow_mut().as_mut(), &view);
        self.answers.push(answer);
        if let Some(window) = answer {
            self.check_window(access, window)?;
            self.open(window);
        }
        self.check_inside(access.block, answer)?;
        Ok(answer)
    }

    fn check_window(&self, access: &Access, window: Window) -> Result<(), Broken> {
        let how = || format!("{window:?} for {access:?}, limit {}", self.limit);
        let Window {
            start,
            size,
            async_size,
            ..
        } = window;
        self.rules
            .check(Rule::AsyncInWindow, async_size <= size, how)?;
        let in_limit = window.fetched() <= self.limit.into();
        self.rules.check(Rule::WindowInLimit, in_limit, how)?;
        let (block, begin) = (u64::from(access.block.0), u64::from(start.0));
        let asked = block + u64::from(access.count);
        let reaches = match window.direction {
            _ if size == 0 => true,
            Direction::Forward => begin >= block && window.end() > block,
            Direction::Backward => begin <= block && window.end() <= asked,
        };
        self.rules.check(Rule::WindowReaches, reaches, how)?;
        let skipped = match window.direction {
            Direction::Forward => asked..begin,
            Direction::Backward => window.end()..block,
        };
        // Beyond the file there is nothing to leave out.
        let adjoins = skipped.map(|at| Block(at as u32)).all(|at| {
            let place = self.place(at);
            window.is_gap(at) || place.is_none_or(|place| place.cached || place.covered)
        });
        self.rules.check(Rule::WindowAdjoins, adjoins, how)
    }

    /// Fetches a window, or its first part.
    fn open(&mut self, window: Window) {
        // The file begins here.
        let before = self.base.saturating_sub(window.start.0).min(window.size);
        let mark = window.mark();
        let window = Window {
            start: Block(window.start.0 + before),
            size: window.size - before,
            ..window
        };
        let Window { start, size, .. } = window;
        let in_file = self.base.saturating_add(BLOCKS - 1).saturating_sub(start.0);
        let count = size.min(in_file.saturating_add(1));
        if size == 0 || start.0 < self.base || self.place(start).is_none() {
            return;
        }
        let fetched = match self.random.one_in(6) {
            true => self.random.below(u64::from(count)) as u32,
            false => count,
        };
        let stride = window.stride.filter(|stride| !stride.is_read_through);
        for at in (0..fetched).map(|at| Block(start.0 + at)) {
            if stride.is_some_and(|stride| !stride.holds(at)) {
                continue;
            }
            let Some(place) = self.place_mut(at) else {
                continue;
            };
            place.covered = true;
            if !place.cached {
                place.mark = mark == Some(at);
                (place.cached, place.unread) = (true, true);
            }
        }
        if fetched < count {
            let end = Block(start.0 + fetched);
            self.method.get_mut().cut(end);
        }
    }

    /// A block inside a window was in one, or was shown to be cached.
    fn check_inside(&mut self, block: Block, answer: Option<Window>) -> Result<(), Broken> {
        let end = answer.map_or(block, |w| Block(w.start.0.saturating_add(w.size)));
        let near = [
            block.0,
            end.0,
            end.0.saturating_add(1),
            end.0.saturating_sub(1),
        ];
        let anywhere = (0..self.questions).map(|_| self.odd.below(u64::from(BLOCKS)) as u32);
        let anywhere: Vec<u32> = anywhere.map(|at| self.base + at).collect();
        for at in near.into_iter().chain(anywhere).map(Block) {
            let is_inside = self.method.get_mut().inside_window(at);
            let place = self.place(at);
            let honest = place.is_none_or(|place| place.covered || place.shown.get());
            let how = || format!("block {at} is said to be in a window after {answer:?}");
            self.rules
                .check(Rule::InsideIsHonest, honest || !is_inside, how)?;
        }
        Ok(())
    }
}
