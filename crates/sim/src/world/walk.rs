//! A walk: one process lists folders, opens their files one after the other, reads and closes them.
//!
//! Called where a reader has no step left, and after each input. Each visit of a file is a reader;
//! the world opens it when its turn comes, or ahead, when the engine asks for it:
//!
//! ```text
//! reader 7 closes --> Folder, if another one begins --> Open 8 --> Entered 8 --> it thinks, reads
//!        OpenAhead --> Open of the next visit of that file --> Ahead
//! ```
//!
//! An open takes no time. The engine predicts the visits.

use std::collections::{BTreeMap, VecDeque};

use forerun_core::{FileId, FolderId, Input, ReaderId};

use super::carry::plus;
use super::{World, WorldError};
use crate::workload::{Visit, Walk};

/// The engine's request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errand {
    Open(Visit),
    Close(ReaderId),
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Walking {
    walk: Walk,
    /// The next visit.
    at: usize,
    /// The visits of each file, the last one first.
    visits: BTreeMap<Visit, Vec<usize>>,
    /// Whether a visit's reader is open.
    open: Vec<bool>,
    errands: VecDeque<Errand>,
    /// One is being run.
    is_busy: bool,
}

impl Walking {
    pub(super) fn new(walk: Walk) -> Self {
        let mut visits: BTreeMap<Visit, Vec<usize>> = BTreeMap::new();
        for (at, visit) in walk.visits.iter().enumerate().rev() {
            visits.entry(*visit).or_default().push(at);
        }
        Self {
            open: vec![false; walk.visits.len()],
            walk,
            at: 0,
            visits,
            errands: VecDeque::new(),
            is_busy: false,
        }
    }

    pub(super) fn note(&mut self, errand: Errand) {
        self.errands.push_back(errand);
    }

    /// The reader that comes for a file next.
    fn next_visit(&mut self, visit: Visit) -> Option<usize> {
        let own = self.visits.get_mut(&visit)?;
        while own.last().is_some_and(|at| *at < self.at) {
            own.pop();
        }
        own.last().copied()
    }
}

impl World<'_, '_> {
    /// A reader of the walk is done: it closes, and the next file's turn has come.
    pub(super) fn leave(&mut self, reader: usize) -> Result<(), WorldError> {
        let is_last = self
            .walking
            .as_ref()
            .is_none_or(|walking| walking.at == walking.walk.visits.len());
        if !is_last {
            // The processor is the next one's.
            let one = &mut self.readers[reader];
            self.owed = plus(self.now, one.hand_over(self.now));
        }
        self.close(reader)?;
        self.walk_on()
    }

    /// The next file is opened, if there is one.
    pub(super) fn walk_on(&mut self) -> Result<(), WorldError> {
        let Some(walking) = &mut self.walking else {
            return Ok(());
        };
        let at = walking.at;
        let Some(visit) = walking.walk.visits.get(at).copied() else {
            return Ok(());
        };
        walking.at += 1;
        let before = at.checked_sub(1).and_then(|at| walking.walk.visits.get(at));
        let is_new = before.is_none_or(|before| before.folder != visit.folder);
        let listing = walking.walk.listings.get(visit.folder as usize);
        let listing = listing.filter(|_| is_new).cloned();
        let is_open = std::mem::replace(&mut walking.open[at], true);
        let folder = FolderId(visit.folder);
        self.turn = Some(at);
        if let Some(entries) = listing {
            self.handle(Input::Folder { folder, entries })?;
        }
        let reader = ReaderId(at as u32);
        if !is_open {
            let file = FileId(self.readers[at].file as u32);
            self.handle(Input::Open { reader, file })?;
        }
        self.handle(Input::Entered {
            folder,
            entry: visit.entry,
            reader,
            opener: 1,
        })?;
        let one = &mut self.readers[at];
        one.come_back(self.now);
        let owed = self.owed.since(self.now);
        one.report.driver = plus(one.report.driver, owed);
        one.free_at = plus(self.now, owed);
        self.think(at)
    }

    /// Runs the errands of the engine.
    pub(super) fn run_errands(&mut self) -> Result<(), WorldError> {
        match &mut self.walking {
            Some(walking) if !walking.is_busy => walking.is_busy = true,
            _ => return Ok(()),
        }
        while let Some(walking) = &mut self.walking
            && let Some(errand) = walking.errands.pop_front()
        {
            match errand {
                Errand::Close(reader) => {
                    walking.open[reader.0 as usize] = false;
                    self.handle(Input::Close { reader })?;
                }
                Errand::Open(visit) => {
                    let at = walking.next_visit(visit);
                    let at = at.filter(|at| !std::mem::replace(&mut walking.open[*at], true));
                    let reader = at.map(|at| ReaderId(at as u32));
                    if let (Some(reader), Some(at)) = (reader, at) {
                        let file = FileId(self.readers[at].file as u32);
                        self.handle(Input::Open { reader, file })?;
                    }
                    let (folder, entry) = (FolderId(visit.folder), visit.entry);
                    self.handle(Input::Ahead {
                        folder,
                        entry,
                        reader,
                    })?;
                }
            }
        }
        if let Some(walking) = &mut self.walking {
            walking.is_busy = false;
        }
        Ok(())
    }
}
