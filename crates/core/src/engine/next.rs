//! Next file: folders that are walked, and files opened ahead of the walker.
//!
//! Called with the folder inputs of drivers, and when a reader closes. Which files and how many is decided by
//! [`files_ahead`](crate::files_ahead); here they are fetched and come back to their programs.
//!
//! ```text
//! Folder, Entered --> method: a run? --> OpenAhead ..    Ahead --> window of its reader, fetched
//!                                    \-> CloseAhead      Entered with that reader: the program's
//! ```
//!
//! A reader ahead is a reader like any other, with two differences. Its requests are of the class `Ahead` of the
//! [queues](crate::queues): behind all that is fetched for programs. And it takes no share of a stream: files ahead
//! have a part of the frames of their own.
//!
//! Example: a program opens entries 7, 8, 9 of a folder. Entries 10 to 13 are opened ahead, and the beginnings of
//! their files are queued as one batch. The program comes for 10 before it was fetched: where other programs wait, it
//! goes out with theirs; else the batch goes on in its order.

use alloc::sync::Arc;

use super::Engine;
use crate::detect::Window;
use crate::files_ahead::{Answered, Budget};
use crate::next_file::{Entry, Place};
use crate::units::{Block, FolderId, ReaderId};

impl Engine {
    pub(super) fn list_folder(&mut self, folder: FolderId, entries: Arc<[Entry]>) -> Option<()> {
        if folder.0 >= FolderId::LIMIT || entries.len() > Self::FOLDER_MAX {
            return None;
        }
        if self.next_file.is_on() {
            self.next_file.list(folder, entries, &mut self.work.out);
            self.charge_next_file();
        }
        Some(())
    }

    pub(super) fn forget_folder(&mut self, folder: FolderId) -> Option<()> {
        self.next_file.forget(folder, &mut self.work.out);
        self.charge_next_file();
        Some(())
    }

    pub(super) fn enter(&mut self, place: Place, reader: ReaderId, opener: u64) -> Option<()> {
        self.readers.reader(reader)?;
        let budget = self.budget_ahead();
        let out = &mut self.work.out;
        self.next_file.enter(place, reader, opener, &budget, out)?;
        self.readers.set_ahead(reader, false);
        self.charge_next_file();
        Some(())
    }

    /// A reader read something, or closed.
    pub(super) fn begun(&mut self, reader: ReaderId) {
        let budget = self.budget_ahead();
        self.next_file.begun(reader, &budget, &mut self.work.out);
        self.charge_next_file();
    }

    /// The driver opened a file ahead, or could not.
    pub(super) fn answer_ahead(&mut self, place: Place, reader: Option<ReaderId>) -> Option<()> {
        if let Some(reader) = reader {
            self.readers.reader(reader)?;
        }
        let answered = self.next_file.answer(place, reader, &mut self.work.out)?;
        if let (Some(reader), Answered::Fetch(blocks)) = (reader, answered) {
            self.fetch_file(reader, blocks);
        }
        self.charge_next_file();
        Some(())
    }

    /// A reader closes; a file ahead stays unused then.
    pub(super) fn close_ahead(&mut self, reader: ReaderId) {
        self.next_file.close(reader);
        self.charge_next_file();
    }

    /// The beginning of a file is a window of the reader that was opened ahead.
    fn fetch_file(&mut self, id: ReaderId, most: u64) {
        self.readers.set_ahead(id, true);
        let file = self.readers.file_of(id);
        let blocks = file.map_or(0, |file| file.blocks);
        let size = u32::try_from(blocks.min(most)).unwrap_or(u32::MAX);
        // Where the file goes on, so does the reader in time.
        let async_size = if blocks > most { size / 2 } else { 0 };
        let window = Window::forward(Block(0), size, async_size);
        self.open_first(id, window);
    }

    fn budget_ahead(&self) -> Budget {
        Budget {
            blocks: self.shares().ahead_max(),
            block_bytes: self.settings.block_bytes.into(),
        }
    }

    fn charge_next_file(&mut self) {
        let growth = self.next_file.growth();
        self.memory.charge(growth);
    }
}
