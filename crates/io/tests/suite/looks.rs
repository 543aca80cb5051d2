//! When a source is looked at for changes: rarely, by its readers, and soon enough.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use forerun_core::{Bytes, preset};
use forerun_io::arena::Target;
use forerun_io::source::{Identity, Key};
use forerun_io::{Config, Driver, Error, Looks, Reader, Source, error, generated};

const BYTES: u64 = 64 << 20;

/// Each byte is the number of the version and the count of late writes.
#[derive(Debug, Default)]
struct Changing {
    version: AtomicU64,
    young: AtomicBool,
    late: AtomicU64,
    looks: Mutex<Vec<ThreadId>>,
}

impl Changing {
    fn looks(&self) -> usize {
        self.looks.lock().unwrap().len()
    }
}

impl Source for Changing {
    fn key(&self) -> Key {
        Key::Inode(1 << 33, 1)
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 33)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES)
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        self.looks.lock().unwrap().push(std::thread::current().id());
        let version = self.version.load(Ordering::SeqCst) as i64;
        Ok(Some(Identity {
            inode: (1 << 33, 1),
            bytes: BYTES,
            modified: (version, 0),
            changed: (version, 0),
            born: None,
            young: self.young.load(Ordering::SeqCst),
        }))
    }

    fn read(&self, target: &mut Target, _: u64, skip: usize) -> io::Result<usize> {
        let bytes = self.version.load(Ordering::SeqCst) + self.late.load(Ordering::SeqCst);
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(bytes as u8));
        Ok(end)
    }
}

fn driver(looks: Looks) -> Driver {
    let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
    let mut config = Config::new(settings);
    config.looks = looks;
    Driver::new(config).unwrap()
}

#[test]
fn a_source_is_looked_at_once_in_100_ms_at_most_and_by_its_readers_alone() {
    let source = Arc::new(Changing::default());
    let driver = driver(Looks::EachInterval);
    let reader = driver.open_source(source.clone()).unwrap();
    let (begun, mut reads) = (Instant::now(), 0);
    let mut piece = vec![0; 16 << 10];
    // In a 64th of the memory that the file would take, most reads miss.
    while begun.elapsed() < Duration::from_millis(350) {
        let offset = reads * 7919 * 4096 % (BYTES - piece.len() as u64);
        reader.read_at(&mut piece, offset).unwrap();
        reads += 1;
    }
    // One at the open, and one after each whole interval; a step of the clock may cut one short.
    let most = begun.elapsed().as_millis() as usize / 90 + 1;
    assert!(
        source.looks() <= most,
        "{} looks at {reads} reads",
        source.looks()
    );
    let own = std::thread::current().id();
    let looks = source.looks.lock().unwrap();
    assert!(
        looks.iter().all(|thread| *thread == own),
        "by another thread"
    );
}

#[test]
fn a_change_is_seen_with_the_second_look_after_it() {
    let source = Arc::new(Changing::default());
    let driver = driver(Looks::EachInterval);
    let reader = driver.open_source(source.clone()).unwrap();
    let mut piece = [0; 100];
    for version in 1..4 {
        reader.read_at(&mut piece, 0).unwrap();
        let before = source.looks();
        source.version.store(version, Ordering::SeqCst);
        while piece != [version as u8; 100] {
            // A look that was under way during the change may have missed it; no further one may.
            assert!(source.looks() <= before + 1, "version {version}: {piece:?}");
            reader.read_at(&mut piece, 0).unwrap();
        }
    }
}

#[test]
fn with_a_look_at_each_read_a_change_is_seen_by_the_next_one() {
    let source = Arc::new(Changing::default());
    let driver = driver(Looks::EachRead);
    let reader = driver.open_source(source.clone()).unwrap();
    let mut piece = [0; 100];
    for version in 1..100 {
        source.version.store(version, Ordering::SeqCst);
        reader.read_at(&mut piece, version * 1_000).unwrap();
        assert_eq!(piece, [version as u8; 100]);
    }
}

#[test]
fn bytes_of_a_version_that_was_young_are_read_once_more_when_it_is_old() {
    for reopened in [false, true] {
        let source = Arc::new(Changing::default());
        source.young.store(true, Ordering::SeqCst);
        let driver = driver(Looks::EachInterval);
        let mut reader = driver.open_source(source.clone()).unwrap();
        let mut piece = [0; 100];
        reader.read_at(&mut piece, 0).unwrap();
        assert_eq!(piece, [0; 100]);
        // The write comes to these bytes, and no time moves any more.
        source.late.store(1, Ordering::SeqCst);
        assert!(!reader.look().unwrap(), "a look finds nothing");
        source.young.store(false, Ordering::SeqCst);
        match reopened {
            true => reader = driver.open_source(source.clone()).unwrap(),
            false => assert!(reader.look().unwrap()),
        }
        reader.read_at(&mut piece, 0).unwrap();
        assert_eq!(piece, [1; 100], "reopened: {reopened}");
        assert!(!reader.look().unwrap(), "once is enough");
    }
}

/// A file that each look finds with more bytes, on a device that takes longer than the time from look to look.
#[derive(Debug)]
struct Growing {
    bytes: AtomicU64,
    is_rewritten: bool,
    request: Duration,
    /// Looks during the first request for each place behind the middle; those places.
    other: Mutex<Option<(Reader, HashSet<u64>)>>,
}

impl Growing {
    fn new(is_rewritten: bool, request: Duration) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(BYTES),
            is_rewritten,
            request,
            other: Mutex::default(),
        })
    }

    fn look(&self, offset: u64) {
        let mut other = self.other.lock().unwrap();
        if let Some((reader, places)) = other.as_mut()
            && places.insert(offset)
        {
            assert!(reader.look().unwrap());
        }
    }
}

impl Source for Growing {
    fn key(&self) -> Key {
        Key::Inode(1 << 33, 2)
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 33)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.load(Ordering::SeqCst))
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        let bytes = self.bytes.fetch_add(1, Ordering::SeqCst);
        let modified = (bytes as i64, 0);
        Ok(Some(Identity {
            inode: (1 << 33, 2),
            bytes: if self.is_rewritten { BYTES } else { bytes },
            modified,
            changed: modified,
            born: None,
            young: true,
        }))
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let begun = Instant::now();
        while begun.elapsed() < self.request {
            std::thread::park_timeout(self.request);
        }
        if offset >= BYTES / 2 {
            self.look(offset);
        }
        let end = target.bytes();
        target.fill(skip, end, |at, memory| {
            generated::fill(1, 1, offset + at as u64, memory)
        });
        Ok(end)
    }
}

#[test]
fn a_file_that_only_grows_is_read_however_long_requests_take() {
    let slow = Growing::new(false, Duration::from_millis(120));
    let driver = driver(Looks::EachInterval);
    let reader = driver.open_source(slow).unwrap();
    let mut piece = vec![0; 64 << 10];
    for offset in [0, BYTES / 2 + 1] {
        assert_eq!(reader.read_at(&mut piece, offset).unwrap(), piece.len());
        assert_eq!(generated::check(1, 1, offset, &piece), Ok(()));
    }
    // The end at the beginning of the read or at its end, as with `pread(2)`.
    let read = reader.read_at(&mut piece, BYTES - 100).unwrap();
    assert!((100..200).contains(&read), "{read}");
    assert_eq!(generated::check(1, 1, BYTES - 100, &piece[..read]), Ok(()));
}

#[test]
fn a_read_that_growth_interrupts_again_and_again_goes_on_where_it_was() {
    let source = Growing::new(false, Duration::ZERO);
    let driver = driver(Looks::EachInterval);
    let open = || driver.open_source(source.clone()).unwrap();
    let reader = open();
    *source.other.lock().unwrap() = Some((open(), HashSet::new()));
    // In several parts, because it is larger than the memory; the middle lies in it.
    let mut piece = vec![0; 32 << 20];
    let offset = BYTES / 2 - (2 << 20);
    assert_eq!(reader.read_at(&mut piece, offset).unwrap(), piece.len());
    assert_eq!(generated::check(1, 1, offset, &piece), Ok(()));
    let (_other, places) = source.other.lock().unwrap().take().unwrap();
    assert!(places.len() > 16, "{places:?}");
}

#[test]
fn a_file_that_is_rewritten_all_the_time_and_one_that_grows_beside_one_version_are_errors() {
    for is_rewritten in [true, false] {
        let driver = driver(Looks::EachRead);
        let source = Growing::new(is_rewritten, Duration::ZERO);
        let reader = driver.open_source(source).unwrap();
        let error = reader.read_at(&mut [0; 100], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    }
}

/// A source with a defect.
#[derive(Debug)]
struct Panics;

impl Source for Panics {
    fn key(&self) -> Key {
        Key::Object {
            name: "panics".into(),
            version: "1".into(),
        }
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES)
    }

    fn read(&self, _: &mut Target, _: u64, _: usize) -> io::Result<usize> {
        panic!("a defect of the source")
    }
}

#[test]
fn a_source_that_panics_fails_its_reader_and_no_other() {
    let driver = driver(Looks::default());
    let broken = driver.open_source(Arc::new(Panics)).unwrap();
    let error = broken.read_at(&mut [0; 100], 0).unwrap_err();
    assert_eq!(error::number(&error), Some(libc::EIO), "{error}");
    let fine = driver.open_source(Arc::new(Changing::default())).unwrap();
    assert_eq!(fine.read_at(&mut [0; 100], 0).unwrap(), 100);
}

/// Zeros, of which there are as many as the test says.
#[derive(Debug)]
struct Zeros(AtomicU64);

impl Source for Zeros {
    fn key(&self) -> Key {
        Key::Inode(1 << 33, 2)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.load(Ordering::SeqCst))
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        let bytes = self.bytes()?;
        Ok(Some(Identity {
            inode: (1 << 33, 2),
            bytes,
            modified: (bytes as i64, 0),
            changed: (bytes as i64, 0),
            born: None,
            young: false,
        }))
    }

    fn read(&self, target: &mut Target, _: u64, skip: usize) -> io::Result<usize> {
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(0));
        Ok(end)
    }
}

#[test]
fn a_file_that_grows_past_the_largest_that_is_opened_is_read_up_to_there_and_has_no_end_there() {
    let limit = u64::from(u32::MAX) * 4096;
    let source = Arc::new(Zeros(AtomicU64::new(limit)));
    let driver = driver(Looks::EachRead);
    let reader = driver.open_source(source.clone()).unwrap();
    let mut piece = [1; 8192];
    let end = limit - 4096;
    assert_eq!(reader.read_at(&mut piece, end).unwrap(), 4096);
    assert_eq!(reader.read_at(&mut piece, limit).unwrap(), 0);
    let grown = limit + 5;
    source.0.store(grown, Ordering::SeqCst);
    assert_eq!(reader.read_at(&mut piece, end).unwrap(), 4096);
    assert_eq!(reader.size(), grown);
    assert!(driver.open_source(source).is_err());
    for offset in [limit, grown - 1] {
        let refused = reader.read_at(&mut piece, offset).unwrap_err();
        assert_eq!(error::number(&refused), Some(libc::EFBIG));
        assert_eq!(reader.read_at(&mut [], offset).unwrap(), 0);
        assert_eq!(reader.read_resident_at(&mut piece, offset, true), None);
        let (tell, told) = std::sync::mpsc::channel();
        reader.when_resident(offset, 1, true, move |there| tell.send(there).unwrap());
        assert_eq!(told.recv(), Ok(false));
    }
    for offset in [grown, u64::MAX] {
        assert_eq!(reader.read_at(&mut piece, offset).unwrap(), 0);
    }
    // As of any file, no more are announced than there is room for.
    let hinted = driver.hint([(&reader, 0, u64::MAX)]);
    assert!(matches!(hinted, Err(Error::HintsFull { .. })), "{hinted:?}");
    driver.hint([(&reader, end, u64::MAX)]).unwrap();
    let ledger = driver.ledger();
    assert_eq!((ledger.hints, ledger.refused_inputs), (1, 0));
}
