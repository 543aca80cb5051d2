//! Readers: the open files, the streams of each, and how many streams have blocks ahead over all.
//!
//! A stream's share of memory is by that number, so nothing but [`Readers::change`] may change a stream. A reader
//! that was opened ahead of its program has a part of the memory of its own, and its streams do not count until
//! the program comes for it.
//!
//! Example: readers 1 and 2 have a stream with blocks ahead each, reader 3 is ahead: two are active. Its program
//! comes, and there are three.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::detect::Detect;
use crate::known;
use crate::layout::LayoutMap;
use crate::stream::Streams;
use crate::units::{Block, Bytes, FileId, ReaderId};

/// How requests of a file come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Pace {
    #[default]
    Even,
    /// Several times as late as they should.
    Late,
    /// One hangs, and none has come since.
    Hangs,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) layout: LayoutMap,
    pub(crate) bytes: Bytes,
    pub(crate) blocks: u64,
    /// How many readers have it open.
    readers: u32,
    /// How its last request came.
    pub(crate) pace: Pace,
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) file: FileId,
    pub(crate) detect: Box<dyn Detect>,
    streams: Streams,
    /// Opened ahead; no program came for it yet.
    is_ahead: bool,
    /// The last fetch that waited for a device was for a read elsewhere.
    jumped: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Readers {
    files: BTreeMap<FileId, File>,
    readers: BTreeMap<ReaderId, Reader>,
    active: usize,
}

impl File {
    pub(crate) fn new(layout: LayoutMap, bytes: Bytes, blocks: u64) -> Self {
        Self {
            layout,
            bytes,
            blocks,
            readers: 0,
            pace: Pace::Even,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.readers > 0
    }
}

impl Reader {
    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    pub(crate) fn is_ahead(&self) -> bool {
        self.is_ahead
    }
}

impl Readers {
    /// A file is known from now on.
    pub(crate) fn add_file(&mut self, id: FileId, file: File) {
        let before = self.files.insert(id, file);
        debug_assert!(before.is_none(), "a number is one file's");
    }

    pub(crate) fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(&id)
    }

    pub(crate) fn file_mut(&mut self, id: FileId) -> Option<&mut File> {
        self.files.get_mut(&id)
    }

    /// A file that no reader has open is known no more.
    pub(crate) fn forget(&mut self, id: FileId) -> Option<File> {
        self.files.remove(&id)
    }

    /// A reader opens a known file.
    pub(crate) fn open(
        &mut self,
        id: ReaderId,
        file: FileId,
        detect: Box<dyn Detect>,
    ) -> Option<&File> {
        if self.readers.contains_key(&id) {
            return None;
        }
        self.files.get_mut(&file)?.readers += 1;
        let reader = Reader {
            file,
            detect,
            streams: Streams::default(),
            is_ahead: false,
            jumped: false,
        };
        self.readers.insert(id, reader);
        self.files.get(&file)
    }

    /// A reader whose streams are gone closes its file, which is returned.
    pub(crate) fn close(&mut self, id: ReaderId) -> Option<(FileId, &File)> {
        let reader = self.readers.remove(&id)?;
        debug_assert_eq!(reader.streams.active(), 0, "its streams are gone");
        let file = known(self.files.get_mut(&reader.file), "an open file is known")?;
        file.readers -= 1;
        Some((reader.file, file))
    }

    pub(crate) fn reader(&self, id: ReaderId) -> Option<&Reader> {
        self.readers.get(&id)
    }

    pub(crate) fn reader_mut(&mut self, id: ReaderId) -> Option<&mut Reader> {
        self.readers.get_mut(&id)
    }

    /// In the order of their numbers.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ReaderId> {
        self.readers.keys().copied()
    }

    /// Those of a file, in the order of their numbers.
    pub(crate) fn of(&self, file: FileId) -> Vec<ReaderId> {
        let readers = self.readers.iter().filter(|(_, r)| r.file == file);
        readers.map(|(id, _)| *id).collect()
    }

    /// Streams with blocks ahead of their reader, over all readers that programs have.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Changes a reader's streams; `None` if there is no such reader.
    pub(crate) fn change<R>(
        &mut self,
        id: ReaderId,
        change: impl FnOnce(&mut Streams) -> R,
    ) -> Option<(R, &Reader)> {
        let reader = self.readers.get_mut(&id)?;
        let before = reader.streams.active();
        let changed = change(&mut reader.streams);
        if !reader.is_ahead {
            self.active = self.active + reader.streams.active() - before;
        }
        Some((changed, reader))
    }

    /// A reader was opened ahead, or its program came for it.
    pub(crate) fn set_ahead(&mut self, id: ReaderId, is_ahead: bool) {
        let Some(reader) = self.readers.get_mut(&id) else {
            return;
        };
        if core::mem::replace(&mut reader.is_ahead, is_ahead) != is_ahead {
            let active = reader.streams.active();
            match is_ahead {
                true => self.active -= active,
                false => self.active += active,
            }
        }
    }

    /// A fetch for this reader waits for a device, for a read elsewhere or not. Whether the one before was.
    pub(crate) fn note_jump(&mut self, id: ReaderId, jumps: bool) -> bool {
        let reader = self.readers.get_mut(&id);
        reader.is_some_and(|reader| core::mem::replace(&mut reader.jumped, jumps))
    }

    /// A block's stall is over: its stream opens a longer window next.
    pub(crate) fn note_wait(&mut self, id: ReaderId, block: Block) {
        let reader = self.readers.get_mut(&id);
        if let Some(stream) = reader.and_then(|reader| reader.streams.at_mut(block)) {
            stream.waited = true;
        }
    }
}
