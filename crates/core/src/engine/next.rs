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
//! The parts of a file that are fetched follow from the parts that programs read of files before it. Each is a window
//! of its own.
//!
//! A reader ahead is a reader like any other, with two differences. Its requests are of the class `Ahead` of the
//! [queues](crate::queues): behind all that is fetched for programs. And it takes no share of a stream: files ahead
//! have a part of the frames of their own.
//!
//! Example: a program opens entries 7, 8, 9 of a folder and reads them. Entries 10 to 13 are opened ahead, and the
//! parts are queued as one batch. The program comes for 10 before it was fetched: where other programs wait, it
//! goes out with theirs; else the batch goes on in its order.

use alloc::sync::Arc;

use super::Engine;
use crate::detect::Window;
use crate::files_ahead::habit::{Parts, Run};
use crate::files_ahead::{Answered, Budget};
use crate::next_file::{Entry, Place};
use crate::queues::Device;
use crate::table::flag;
use crate::units::{Block, Extent, FolderId, ReaderId, saturate};

impl Engine {
    pub(super) fn list_folder(&mut self, folder: FolderId, entries: Arc<[Entry]>) -> Option<()> {
        if folder.0 >= FolderId::LIMIT || entries.len() > Self::FOLDER_MAX {
            return None;
        }
        if let Some(files) = &mut self.producers.files {
            files.list(folder, entries);
        }
        self.end_ahead();
        Some(())
    }

    pub(super) fn enter(&mut self, place: Place, reader: ReaderId, opener: u64) -> Option<()> {
        self.readers.reader(reader)?;
        let budget = self.budget_ahead(reader);
        let file = (reader, self.blocks_of_reader(reader));
        if let Some(files) = &mut self.producers.files {
            files.enter(place, file, opener, &budget)?;
        }
        self.readers.set_ahead(reader, false);
        self.end_ahead();
        Some(())
    }

    /// A reader reads these blocks.
    pub(super) fn note_read(&mut self, reader: ReaderId, first: Block, count: u32) {
        if let Some(files) = &mut self.producers.files {
            let first = u64::from(first.0);
            let count = u64::from(count);
            files.read(reader, Run { first, count });
        }
    }

    /// A reader read something, or closed: a run may have waited for that.
    pub(super) fn begun(&mut self, reader: ReaderId) {
        let files = self.producers.files.as_mut();
        let Some(run) = files.and_then(|files| files.begun(reader)) else {
            return;
        };
        let budget = self.budget_ahead(reader);
        if let Some(files) = &mut self.producers.files {
            files.extend(run, &budget);
        }
        self.end_ahead();
    }

    /// The driver opened a file ahead, or could not.
    pub(super) fn answer_ahead(&mut self, place: Place, reader: Option<ReaderId>) -> Option<()> {
        if let Some(reader) = reader {
            self.readers.reader(reader)?;
        }
        let opened = reader.map(|reader| (reader, self.blocks_of_reader(reader)));
        let files = self.producers.files.as_mut()?;
        let answered = files.answer(place, opened)?;
        if let (Some(reader), Answered::Fetch { parts, reads_on }) = (reader, answered) {
            self.fetch_parts(reader, parts, reads_on);
        }
        self.end_ahead();
        Some(())
    }

    /// A reader closes; a file ahead stays unused then.
    pub(super) fn close_ahead(&mut self, reader: ReaderId) {
        let files = self.producers.files.as_mut();
        if let Some(parts) = files.and_then(|files| files.close(reader)) {
            self.ledger.files_ahead_unread += self.unread_of(reader, parts);
        }
        self.end_ahead();
    }

    /// Unread blocks of these extents that were fetched ahead or are in flight.
    fn unread_of(&self, reader: ReaderId, parts: Parts) -> u64 {
        let Some(file) = self.readers.reader(reader).map(|reader| reader.file) else {
            return 0;
        };
        let is_unread = |block: &Block| {
            let found = self.memory.table.find(file, *block);
            found.is_some_and(|found| found.flags & flag::UNREAD != 0)
        };
        let blocks = parts.iter().flat_map(|part| {
            let first = Block(saturate(part.first));
            Extent::new(file, first, saturate(part.count)).blocks()
        });
        blocks.filter(is_unread).count() as u64
    }

    /// Each part of a file is a window of the reader that was opened ahead.
    fn fetch_parts(&mut self, id: ReaderId, parts: Parts, reads_on: bool) {
        self.readers.set_ahead(id, true);
        for part in parts.iter().filter(|part| part.count > 0) {
            let size = saturate(part.count);
            // Where the file is read on, the reader goes on in time.
            let async_size = match reads_on && part.first == 0 {
                true => size / 2,
                false => 0,
            };
            let first = Block(saturate(part.first));
            let window = Window::forward(first, size, async_size);
            self.ledger.windows += 1;
            self.note(id, first, window);
            self.open_window(id, None, Some(window));
        }
    }

    fn blocks_of_reader(&self, reader: ReaderId) -> u64 {
        let reader = self.readers.reader(reader);
        let file = reader.and_then(|reader| self.readers.file(reader.file));
        file.map_or(0, |file| file.blocks)
    }

    /// The bytes that files ahead may take while this reader is at work.
    fn budget_ahead(&self, reader: ReaderId) -> Budget {
        let block_bytes = self.block_bytes();
        let device = self.device_of(reader, Block(0)).map(|(_, device)| device);
        // Of a disk the number may be unknown.
        let servers = |device: &Device| {
            let profile = device.profile();
            match profile.kind().any_worker() || profile.is_parallel() {
                true => profile.servers(),
                false => 1,
            }
        };
        Budget {
            blocks: self.shares().ahead_max(),
            block_bytes,
            depth: device.map_or(0, |device| device.depth().0) / block_bytes,
            servers: device.map_or(1, servers).into(),
            any_worker: device.is_some_and(|device| device.profile().kind().any_worker()),
        }
    }

    fn end_ahead(&mut self) {
        if let Some(files) = &mut self.producers.files {
            self.memory.charge(files.growth());
            self.work.out.extend(files.out.drain(..));
        }
    }
}
