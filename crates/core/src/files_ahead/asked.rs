//! Files asked for, and their outcome: answers of the driver, and files given up.
//!
//! ```text
//! OpenAhead -> Pending --- Ahead{reader} --> Ahead ---- entered with it ---> unread --- read ---> used
//!                 |  \--- Ahead{none}: refused in this pass \  (nothing was fetched: used) \ closed
//!                 | given up                                 \ given up, or closed          v
//!                 v                                           v                            wasted
//!             CalledOff --- Ahead{reader} --- CloseAhead ---> wasted
//! ```
//!
//! Called by [the runs](super) for files that are entered, passed over or of a run that is over,
//! and by the engine's stage `next` with the driver's answers.

use super::habit::{Parts, Run};
use super::{Answered, Asked, CameFor, FilesAhead, State};
use crate::next_file::{Place, RunId};
use crate::protocol::Output;
use crate::units::ReaderId;

impl FilesAhead {
    /// The driver's answer: a reader, of a file of so many blocks. `None` if it was not asked.
    pub(crate) fn answer(
        &mut self,
        place: Place,
        reader: Option<(ReaderId, u64)>,
    ) -> Option<Answered> {
        let is_known = |(reader, _): (ReaderId, u64)| {
            self.files.readers.contains_key(&reader) || self.files.came_for.contains_key(&reader)
        };
        if reader.is_some_and(is_known) {
            return None;
        }
        let asked = self.files.asked.get_mut(&place)?;
        match (asked.state, reader) {
            (State::Ahead(_), _) => return None,
            (State::Pending, Some((reader, blocks))) => {
                let habit = self.habits.of(place.folder);
                let mut left = asked.blocks;
                asked.state = State::Ahead(reader);
                asked.parts = habit.parts(blocks, left).map(|part| {
                    let count = part.count.min(left);
                    left -= count;
                    Run { count, ..part }
                });
                // Its size was not known, or its folder's habit is another one now.
                asked.blocks -= left;
                self.files.blocks -= left;
                let (parts, [head, ..]) = (asked.parts, asked.parts);
                self.files.readers.insert(reader, place);
                self.counts.ahead += 1;
                let reads_on = head.count < blocks && habit.reads_behind(head.count);
                return Some(Answered::Fetch { parts, reads_on });
            }
            (State::Pending, None) => {
                self.take(place);
                if let Some(folder) = self.folders.get_mut(place.folder) {
                    folder.refuse(place.entry);
                }
            }
            (State::CalledOff, reader) => {
                let blocks = asked.blocks;
                self.files.asked.remove(&place);
                if let Some((reader, _)) = reader {
                    self.counts.ahead += 1;
                    self.counts.waste(blocks);
                    self.out.push(Output::CloseAhead { reader });
                }
            }
        }
        Some(Answered::Nothing)
    }

    /// The driver closes a reader. The parts that were fetched, if it was opened ahead.
    pub(crate) fn close(&mut self, reader: ReaderId) -> Option<Parts> {
        self.habits.closed(reader);
        if let Some(place) = self.files.readers.get(&reader).copied() {
            let asked = self.files.asked.get(&place).copied()?;
            self.take(place);
            self.counts.waste(asked.blocks);
            return Some(asked.parts);
        }
        let CameFor { parts, is_used } = self.files.came_for.remove(&reader)?;
        if !is_used {
            self.counts.waste(parts.iter().map(|part| part.count).sum());
        }
        Some(parts)
    }

    /// A pending or open file ahead is neither any more.
    pub(super) fn take(&mut self, place: Place) {
        let Some(asked) = self.files.asked.remove(&place) else {
            return;
        };
        if let State::Ahead(reader) = asked.state {
            self.files.readers.remove(&reader);
        }
        if asked.state != State::CalledOff {
            self.files.blocks -= asked.blocks;
            if let Some(run) = self.walks.runs.iter_mut().find(|run| run.id == asked.run) {
                run.open -= 1;
            }
        }
    }

    /// A file stays unused: it is closed, or will be once it is open.
    pub(super) fn give_up(&mut self, place: Place) {
        let Some(asked) = self.files.asked.get(&place).copied() else {
            return;
        };
        match asked.state {
            State::CalledOff => {}
            State::Ahead(reader) => {
                self.take(place);
                self.counts.waste(asked.blocks);
                self.out.push(Output::CloseAhead { reader });
            }
            State::Pending => {
                self.take(place);
                let state = State::CalledOff;
                self.files.asked.insert(place, Asked { state, ..asked });
            }
        }
    }

    /// The same for those that are a run's.
    pub(super) fn give_up_of(&mut self, run: RunId, places: impl IntoIterator<Item = Place>) {
        for place in places {
            if self
                .files
                .asked
                .get(&place)
                .is_some_and(|asked| asked.run == run)
            {
                self.give_up(place);
            }
        }
    }
}
