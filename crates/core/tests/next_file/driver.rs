//! A small driver, which answers each `OpenAhead` at once, or as late as a test wants. Files are of one to
//! four pages, or as long as a test wants, on a disk that takes one request at a time unless the test says more.

use std::collections::BTreeMap;

use forerun_baselines::METHODS;
use forerun_core::detect::Access;
use forerun_core::next_file::Entry;
use forerun_core::protocol::Wants;
use forerun_core::spec::Choice;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, Fetch, FetchOutcome, FileId, FolderId, Input, Nanos, Output,
    Placement, Profile, ReadId, ReaderId, preset,
};

pub(crate) const PAGE: u64 = 4096;

pub(crate) struct Driver {
    pub(crate) engine: Engine,
    pub(crate) fetches: Vec<Fetch>,
    pub(crate) asked: Vec<u32>,
    /// Files asked for in one answer of the engine, in its order.
    pub(crate) batches: Vec<Vec<u32>>,
    pub(crate) ahead: BTreeMap<u32, ReaderId>,
    pub(crate) closed: Vec<ReaderId>,
    readers: u32,
    /// Blocks of each file.
    lengths: Vec<u64>,
    /// Every request that the disk was sent.
    pub(crate) sent: Vec<Fetch>,
}

/// The inode of a file, and the rank of its name.
pub(crate) fn inode(file: u32, files: u32) -> u32 {
    file * 7 % files
}

pub(crate) fn rank(file: u32, files: u32) -> u32 {
    file * 11 % files
}

/// So many of the default disks.
fn disks(servers: u32) -> Profile {
    Profile::default().with_servers(servers).unwrap()
}

impl Driver {
    /// Folders of so many files each, none of them listed. Files are numbered through.
    pub(crate) fn new(method: &str, files: u32, memory: u64) -> Self {
        let lengths = (0..files).map(|file| u64::from(file % 4 + 1)).collect();
        Self::of(method, lengths, memory)
    }

    /// The same, of files of so many blocks.
    pub(crate) fn of(method: &str, lengths: Vec<u64>, memory: u64) -> Self {
        Self::made(disks(1), "online", method, lengths, memory)
    }

    /// The same, on a device that works on so many requests at once, of costs that are known: time stands still.
    pub(crate) fn on(servers: u32, method: &str, lengths: Vec<u64>, memory: u64) -> Self {
        Self::made(disks(servers), "given", method, lengths, memory)
    }

    /// The same, on a store that works on so many requests at once.
    pub(crate) fn on_store(servers: u32, method: &str, lengths: Vec<u64>, memory: u64) -> Self {
        let store = disks(servers).with_most(4 * servers);
        Self::made(store, "given", method, lengths, memory)
    }

    fn made(profile: Profile, measure: &str, method: &str, lengths: Vec<u64>, memory: u64) -> Self {
        let mut settings = preset::find("mount")
            .unwrap()
            .settings(Bytes(memory))
            .unwrap();
        settings.measure = Choice::parse("measure", METHODS.measure, measure).unwrap();
        settings.next_file = METHODS.next_file(method).unwrap();
        let mut driver = Self {
            engine: Engine::new(settings).unwrap(),
            fetches: Vec::new(),
            asked: Vec::new(),
            batches: Vec::new(),
            ahead: BTreeMap::new(),
            closed: Vec::new(),
            readers: 0,
            lengths,
            sent: Vec::new(),
        };
        driver.input(Input::Device {
            device: DeviceId(0),
            profile,
        });
        for (file, blocks) in (0..).zip(driver.lengths.clone()) {
            driver.input(Input::File {
                file: FileId(file),
                placement: Placement::linear(DeviceId(0), Bytes(u64::from(file) << 30)),
                bytes: Bytes(PAGE * blocks),
            });
        }
        driver
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.engine.handle(Nanos(0), input);
        let mut batch = Vec::new();
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Fetch(fetch) => {
                    self.fetches.push(fetch);
                    self.sent.push(fetch);
                }
                Output::OpenAhead { entry, .. } => batch.push(entry),
                Output::CloseAhead { reader } => self.closed.push(reader),
                Output::Cancel { .. } | Output::Serve { .. } => {}
            }
        }
        if !batch.is_empty() {
            self.asked.extend(&batch);
            self.batches.push(batch);
        }
        let ledger = self.engine.ledger();
        ledger.check().unwrap();
        assert_eq!(ledger.refused_inputs, 0);
    }

    pub(crate) fn list(&mut self, folder: u32, files: u32) {
        let lengths = self.lengths.clone();
        self.list_as(folder, files, |file| PAGE * lengths[file as usize]);
    }

    /// The same, with sizes of the test's choice.
    pub(crate) fn list_as(&mut self, folder: u32, files: u32, bytes: impl Fn(u32) -> u64) {
        let entry = |file| Entry {
            name_rank: rank(file, files),
            inode: inode(file, files).into(),
            bytes: bytes(file),
        };
        self.input(Input::Folder {
            folder: FolderId(folder),
            entries: (0..files).map(entry).collect(),
        });
    }

    pub(crate) fn open(&mut self, file: u32) -> ReaderId {
        let reader = ReaderId(self.readers);
        self.readers += 1;
        self.input(Input::Open {
            reader,
            file: FileId(file),
        });
        reader
    }

    /// Opens every file asked for, of a folder that begins with this file number.
    pub(crate) fn answer(&mut self, folder: u32, first: u32) {
        for entry in std::mem::take(&mut self.asked) {
            let reader = self.open(first + entry);
            self.ahead.insert(first + entry, reader);
            self.input(Input::Ahead {
                folder: FolderId(folder),
                entry,
                reader: Some(reader),
            });
        }
    }

    /// A program opens a file; with the reader opened ahead, if there is one.
    pub(crate) fn enter(&mut self, folder: u32, entry: u32, first: u32) -> ReaderId {
        self.enter_as(1, folder, entry, first)
    }

    /// The same, by a given thread.
    pub(crate) fn enter_as(
        &mut self,
        opener: u64,
        folder: u32,
        entry: u32,
        first: u32,
    ) -> ReaderId {
        let ahead = self.ahead.remove(&(first + entry));
        let reader = ahead.unwrap_or_else(|| self.open(first + entry));
        self.input(Input::Entered {
            folder: FolderId(folder),
            entry,
            reader,
            opener,
        });
        reader
    }

    /// All fetches end.
    pub(crate) fn complete(&mut self) {
        while let Some(fetch) = self.fetches.pop() {
            self.input(Input::Completed {
                request: fetch.request,
                outcome: FetchOutcome::Done,
            });
        }
    }

    /// Blocks of a file.
    pub(crate) fn length(&self, file: u32) -> u64 {
        self.lengths[file as usize]
    }

    /// A program reads blocks; all fetches end.
    pub(crate) fn read(&mut self, reader: ReaderId, first: u64, count: u64) {
        let block = Block(u32::try_from(first).unwrap());
        self.input(Input::Read {
            read: ReadId(0),
            reader,
            access: Access::new(block, u32::try_from(count).unwrap()),
            fresh: true,
            wants: Wants::Presence,
        });
        self.complete();
    }

    /// A program opens files of folder 0 one by one and reads them; the driver is quick.
    pub(crate) fn walk(&mut self, entries: impl IntoIterator<Item = u32>) {
        self.walk_reading(entries, |blocks| vec![(0, blocks)]);
    }

    /// The same; it reads these runs of a file of so many blocks.
    pub(crate) fn walk_reading(
        &mut self,
        entries: impl IntoIterator<Item = u32>,
        runs: impl Fn(u64) -> Vec<(u64, u64)>,
    ) {
        for entry in entries {
            let reader = self.enter(0, entry, 0);
            for (first, count) in runs(self.length(entry)) {
                self.read(reader, first, count);
            }
            self.leave(reader);
        }
    }

    /// A program closes a file, and the driver does all that it was asked for.
    pub(crate) fn leave(&mut self, reader: ReaderId) {
        self.input(Input::Close { reader });
        self.answer(0, 0);
        for reader in std::mem::take(&mut self.closed) {
            self.ahead.retain(|_, ahead| *ahead != reader);
            self.input(Input::Close { reader });
        }
        self.complete();
    }

    pub(crate) fn used_and_wasted(&self) -> [u64; 2] {
        let ledger = self.engine.ledger();
        [ledger.files_ahead_used, ledger.files_ahead_wasted]
    }
}
