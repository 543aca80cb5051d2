//! Readers of one key: each has its source for itself, and requests go through the newest that is not refused.
//!
//! A wait that would not end is cut after [`BOUND`].

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use forerun_core::Bytes;
use forerun_io::arena::Target;
use forerun_io::source::{Key, Pending, Source};
use forerun_io::{Config, Driver, Reader, error};

const BOUND: Duration = Duration::from_secs(60);
const BYTES: u64 = 8 << 20;
const BLOCK: usize = 4096;

fn driver() -> Driver {
    let settings = forerun_baselines::preset("none")
        .unwrap()
        .settings(Bytes(1 << 20));
    Driver::new(Config::new(settings.unwrap())).unwrap()
}

/// A source of one object that all of these are of.
#[derive(Debug, Default)]
struct Handle {
    /// The error of its reads; all of its bytes are 7 if there is none.
    error: Option<i32>,
    /// Reads that failed.
    failed: AtomicU32,
    /// Takes its reads.
    takes: Mutex<Option<Sender<Pending>>>,
}

impl Handle {
    fn good() -> Arc<Self> {
        Arc::default()
    }

    /// Its token has ended.
    fn refused() -> Arc<Self> {
        Self::failing(libc::EACCES)
    }

    fn failing(error: i32) -> Arc<Self> {
        Arc::new(Self {
            error: Some(error),
            ..Self::default()
        })
    }

    /// Its reads end as the test says, and fail once it takes none any more.
    fn held() -> (Arc<Self>, Receiver<Pending>) {
        let (tell, told) = channel();
        let takes = Mutex::new(Some(tell));
        let handle = Self {
            error: Some(libc::EBADF),
            takes,
            ..Self::default()
        };
        (Arc::new(handle), told)
    }

    fn failed(&self) -> u32 {
        self.failed.load(Ordering::SeqCst)
    }
}

impl Source for Handle {
    fn key(&self) -> Key {
        Key::Object {
            name: "one".into(),
            version: "1".into(),
        }
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES)
    }

    fn read(&self, target: &mut Target, _: u64, skip: usize) -> io::Result<usize> {
        if let Some(error) = self.error {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return Err(io::Error::from_raw_os_error(error));
        }
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(7));
        Ok(end)
    }

    fn begin(self: Arc<Self>, pending: Pending) -> Option<Pending> {
        match &*self.takes.lock().unwrap() {
            Some(takes) => takes.send(pending).err().map(|refused| refused.0),
            None => Some(pending),
        }
    }
}

/// Reads a block; the number of the error if it fails.
fn read(reader: &Reader, block: u64) -> Option<i32> {
    let mut into = [0; BLOCK];
    match reader.read_at(&mut into, block * BLOCK as u64) {
        Ok(count) => {
            assert_eq!((count, into), (BLOCK, [7; BLOCK]));
            None
        }
        Err(error) => Some(error::number(&error).unwrap()),
    }
}

/// Has a block fetched.
fn ask(reader: &Reader, block: u64) -> Receiver<bool> {
    let (tell, told) = channel();
    reader.when_resident(block * BLOCK as u64, BLOCK, true, move |there| {
        tell.send(there).unwrap();
    });
    told
}

#[test]
fn a_reader_is_not_read_through_the_source_of_one_that_opened_before() {
    let driver = driver();
    let before = driver.open_source(Handle::refused()).unwrap();
    assert_eq!(read(&before, 0), Some(libc::EACCES));
    let after = driver.open_source(Handle::good()).unwrap();
    assert_eq!(read(&after, 0), None);
    drop(before);
    assert_eq!(read(&after, 1), None);
}

#[test]
fn where_the_newest_reader_closed_the_one_before_is_read_through() {
    let driver = driver();
    let readers = [Handle::good(), Handle::refused(), Handle::good()];
    let readers = readers.map(|source| driver.open_source(source).unwrap());
    let [oldest, middle, newest] = readers;
    assert_eq!(read(&oldest, 0), None);
    drop(newest);
    assert_eq!(read(&oldest, 1), None);
    drop(middle);
    assert_eq!(read(&oldest, 2), None);
}

#[test]
fn a_source_ends_with_its_own_reader() {
    let driver = driver();
    let sources = [(); 3].map(|()| Handle::good());
    let mut readers: Vec<_> = (sources.iter())
        .map(|source| driver.open_source(source.clone()).unwrap())
        .collect();
    assert_eq!(read(&readers[0], 0), None);
    for (closed, left) in [(1, [0, 2].as_slice()), (0, &[2]), (0, &[])] {
        drop(readers.remove(closed));
        for (number, source) in sources.iter().enumerate() {
            let is_open = || Arc::strong_count(source) > 1;
            // The thread of a request lets go of its source after its reader has the bytes.
            let until = Instant::now() + BOUND;
            while is_open() && !left.contains(&number) && Instant::now() < until {
                std::thread::yield_now();
            }
            assert_eq!(is_open(), left.contains(&number), "{number} of {left:?}");
        }
    }
}

#[test]
fn a_request_whose_source_fails_is_carried_out_by_a_reader_that_opened_since() {
    let driver = driver();
    let (held, reads) = Handle::held();
    let before = driver.open_source(held).unwrap();
    let asked = ask(&before, 0);
    let pending = reads.recv_timeout(BOUND).unwrap();
    let after = driver.open_source(Handle::good()).unwrap();
    let joined = ask(&after, 0);
    pending.end(Err(io::Error::from_raw_os_error(libc::EBADF)));
    assert_eq!(asked.recv_timeout(BOUND), Ok(true));
    assert_eq!(joined.recv_timeout(BOUND), Ok(true));
    assert_eq!(driver.ledger().failed, 0);
}

#[test]
fn an_awaited_block_that_cannot_be_had_tells_the_error() {
    let driver = driver();
    let reader = driver.open_source(Handle::refused()).unwrap();
    let (tell, told) = channel();
    reader.when_resident_or_failed(0, BLOCK, true, move |there| tell.send(there).unwrap());
    let error = told.recv().unwrap().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    assert!(!ask(&reader, 0).recv().unwrap());
}

#[test]
fn a_request_fails_if_all_sources_do() {
    let driver = driver();
    let (held, reads) = Handle::held();
    let before = driver.open_source(held.clone()).unwrap();
    let asked = ask(&before, 0);
    let pending = reads.recv_timeout(BOUND).unwrap();
    let after = driver.open_source(Handle::refused()).unwrap();
    *held.takes.lock().unwrap() = None;
    pending.end(Err(io::Error::from_raw_os_error(libc::EBADF)));
    assert_eq!(asked.recv_timeout(BOUND), Ok(false));
    assert_eq!(read(&after, 0), Some(libc::EACCES));
}

#[test]
fn a_source_that_is_refused_is_passed_by_once_and_then_comes_last() {
    let driver = driver();
    let handles = [Handle::good(), Handle::refused(), Handle::refused()];
    let readers = handles.clone().map(|it| driver.open_source(it).unwrap());
    for block in 0..4 {
        assert_eq!(read(&readers[block as usize % 3], block), None, "{block}");
    }
    assert_eq!(handles.each_ref().map(|it| it.failed()), [0, 1, 1]);
}

#[test]
fn a_good_source_is_found_behind_any_number_that_are_refused() {
    for refused in [1, 15, 16, 40] {
        let driver = driver();
        let good = driver.open_source(Handle::good()).unwrap();
        let _others: Vec<_> = (0..refused)
            .map(|_| driver.open_source(Handle::refused()).unwrap())
            .collect();
        let tries = (0..4).find(|block| read(&good, *block).is_none());
        assert!(tries.is_some(), "{refused}");
        assert_eq!(read(&good, 9), None, "{refused}");
    }
}

#[test]
fn each_source_is_tried_once_where_it_is_refused_and_one_alone_where_the_server_fails() {
    for (error, failed) in [
        (libc::EACCES, [2, 2, 2]),
        (libc::ESTALE, [2, 2, 2]),
        (libc::ETIMEDOUT, [0, 1, 1]),
        (libc::EIO, [0, 1, 1]),
        (libc::ENOENT, [0, 1, 1]),
    ] {
        let driver = driver();
        let handles = [(); 3].map(|()| Handle::failing(error));
        let readers = handles.clone().map(|it| driver.open_source(it).unwrap());
        // The engine asks once more for the block alone.
        assert_eq!(ask(&readers[0], 0).recv_timeout(BOUND), Ok(false));
        assert_eq!(handles.each_ref().map(|it| it.failed()), failed, "{error}");
        assert_eq!(read(&readers[0], 0), Some(error));
    }
}
