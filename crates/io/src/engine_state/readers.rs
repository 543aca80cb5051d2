//! Open readers, and their reads that are under way.
//!
//! Each reader has the numbers of its reads beside it, so that its end costs as much as it has reads, however many others wait.

use std::collections::HashSet;
use std::sync::Arc;

use forerun_core::{FileId, Input, Ledger, Nanos, ReadId, ReaderId, Served};

use super::EngineState;
use crate::owner::Owned;
use crate::reader::Position;
use crate::wait::Waiter;

/// A reader, and its reads that are not over.
#[derive(Debug)]
pub(super) struct OpenReader {
    position: Arc<Position>,
    reads: HashSet<u32>,
}

impl EngineState {
    /// Numbers a reader and opens it.
    pub(crate) fn open(&mut self, file: FileId, position: Arc<Position>) -> ReaderId {
        let reads = HashSet::new();
        let open = OpenReader { position, reads };
        let reader = ReaderId(self.readers.insert(open));
        self.feed(Input::Open { reader, file });
        reader
    }

    /// Whether the reader of this position is open under this number, which another has later.
    pub(crate) fn is_open(&self, reader: ReaderId, position: &Arc<Position>) -> bool {
        let open = self.readers.get(reader.0);
        open.is_some_and(|open| Arc::ptr_eq(&open.position, position))
    }

    /// Closes a reader. The engine answers its reads no more: its waiters, to be dropped without the lock.
    pub(crate) fn close(&mut self, reader: ReaderId, file: FileId) -> Vec<Arc<Waiter>> {
        let open = self.readers.get(reader.0);
        let Some(position) = open.map(|open| open.position.clone()) else {
            return Vec::new();
        };
        self.report_hits(reader, &position);
        self.feed(Input::Close { reader });
        let reads = self.readers.remove(reader.0).map(|open| open.reads);
        self.catalog.closed(file, reader);
        let reads = reads.into_iter().flatten();
        let waiters = reads.filter_map(|read| self.reads.remove(read));
        waiters.map(|(_, waiter)| waiter).collect()
    }

    /// Begins a read whose answer goes to `waiter`.
    pub(crate) fn begin_read(
        &mut self,
        reader: ReaderId,
        waiter: Arc<Waiter>,
        read: impl FnOnce(ReadId) -> Input,
    ) {
        let number = ReadId(self.reads.insert((reader, waiter)));
        if let Some(open) = self.readers.get_mut(reader.0) {
            open.reads.insert(number.0);
        }
        self.feed(read(number));
    }

    pub(super) fn serve(&mut self, read: ReadId, served: Served) {
        let Some((_, waiter)) = self.reads.get(read.0).cloned() else {
            return;
        };
        waiter.answer(read, served);
        self.woken.push(waiter);
        match served {
            Served::Blocks { .. } => self.answered = true,
            Served::Failed { .. } | Served::End => self.end_read(read),
        }
    }

    /// Its number is free.
    pub(super) fn end_read(&mut self, read: ReadId) {
        let ended = self.reads.remove(read.0);
        let open = ended.and_then(|(reader, _)| self.readers.get_mut(reader.0));
        if let Some(open) = open {
            open.reads.remove(&read.0);
        }
    }

    fn report_hits(&mut self, reader: ReaderId, position: &Position) {
        let mut left = position.take_hits();
        // The engine takes no more at once.
        while left > 0 {
            let blocks = left.min(u32::MAX.into());
            self.feed(Input::Hits { reader, blocks });
            left -= blocks;
        }
    }

    /// The counters without the hits that readers have not reported yet: no reader is visited.
    pub(crate) fn ledger_as_reported(&self) -> Ledger {
        self.engine.ledger()
    }

    /// The counters, hits so far included.
    pub(crate) fn ledger(&mut self) -> Ledger {
        let readers: Vec<_> = self
            .readers
            .iter()
            .map(|(n, open)| (ReaderId(n), open.position.clone()))
            .collect();
        for (reader, position) in readers {
            self.report_hits(reader, &position);
        }
        self.engine.ledger()
    }

    /// The open readers whose owner is known.
    pub(crate) fn owned(&self) -> Vec<Owned> {
        let readers = self.readers.iter().filter_map(|(number, open)| {
            Some(Owned {
                reader: ReaderId(number),
                thread: open.position.owner.thread()?,
                position: open.position.clone(),
            })
        });
        readers.collect()
    }

    /// Owners have computed for so long, as far as their readers are open still.
    pub(crate) fn tell_cpu_times(&mut self, times: &[(Owned, Nanos)]) {
        for (owned, time) in times {
            let (reader, time) = (owned.reader, *time);
            if self.is_open(reader, &owned.position) {
                self.feed(Input::CpuTime { reader, time });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use forerun_core::{Bytes, preset};

    use crate::arena::Target;
    use crate::source::{Key, Pending, Source};
    use crate::{Config, Driver, Reader};

    const BYTES: usize = 1 << 20;
    /// A wait that takes longer has failed.
    const BOUND: Duration = Duration::from_secs(60);

    /// Hands its reads to the test.
    #[derive(Debug)]
    struct Held(Sender<Pending>);

    impl Source for Held {
        fn key(&self) -> Key {
            let (name, version) = ("held".into(), "1".into());
            Key::Object { name, version }
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(BYTES as u64)
        }

        fn read(&self, target: &mut Target, _: u64, _: usize) -> io::Result<usize> {
            Ok(target.bytes())
        }

        fn begin(self: Arc<Self>, pending: Pending) -> Option<Pending> {
            self.0.send(pending).err().map(|refused| refused.0)
        }
    }

    /// How many reads are under way, by the reader and in all.
    fn reads(driver: &Driver, reader: &Reader) -> (usize, usize) {
        driver.engine_host().after_deferred(|state| {
            let of = |open: &super::OpenReader| open.reads.len();
            let its = state.readers.get(reader.id().0).map_or(0, of);
            assert_eq!(
                state
                    .readers
                    .iter()
                    .map(|(_, open)| of(open))
                    .sum::<usize>(),
                state.reads.iter().count()
            );
            (its, state.reads.iter().count())
        })
    }

    #[test]
    fn a_reader_has_its_reads_until_they_are_over_or_it_closes() {
        let settings = preset::default().settings(Bytes(8 << 20)).unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let (tell, held) = channel();
        let source = Arc::new(Held(tell));
        let open = || driver.open_source(source.clone()).unwrap();
        let (reader, closed) = (open(), open());
        for at in 0..3 {
            reader.when_resident(at * 4096, 4096, true, |_| ());
            closed.when_resident(at * 4096, 4096, true, |_| ());
        }
        assert_eq!(reads(&driver, &reader), (3, 6));
        drop(closed);
        assert_eq!(reads(&driver, &reader), (3, 3));
        drop(source);
        let (tell, told) = channel();
        reader.when_resident(0, BYTES, true, move |there| tell.send(there).unwrap());
        std::thread::spawn(move || held.iter().for_each(|pending| pending.end(Ok(BYTES))));
        assert_eq!(told.recv_timeout(BOUND), Ok(true));
        assert_eq!(reader.read_at(&mut [0; BYTES], 0).unwrap(), BYTES);
        assert_eq!(reads(&driver, &reader), (0, 0));
    }
}
