//! Panics of code that the driver calls end in its own call: every other reader is read, and the driver ends.
//!
//! A wait that would not end is cut after [`BOUND`].

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::arena::Target;
use forerun_io::source::{Key, Pending, Source};
use forerun_io::{BackendChoice, Config, Driver, Error, Reader};

const BOUND: Duration = Duration::from_secs(600);
const BLOCK: usize = 4096;
const BYTES: u64 = 64 << 20;

fn config(backend: &str) -> Config {
    let settings = preset::default().settings(Bytes(8 << 20)).unwrap();
    Config::new(settings).backend(BackendChoice::named(backend).unwrap())
}

/// A panic that prints nothing.
fn panics() -> ! {
    resume_unwind(Box::new("as the test wants it"))
}

/// Runs a call that may wait for ever in a thread of its own.
fn bounded<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        // The test may have failed meanwhile.
        let _ = tell.send(work());
    });
    told.recv_timeout(BOUND).unwrap()
}

/// Reads here, and as often as there are threads of a device; then ends the driver.
fn reads_and_ends(driver: Driver, reader: Reader) {
    bounded(move || {
        for at in 0..20 {
            let mut into = [0; BLOCK];
            assert_eq!(reader.read_at(&mut into, at * (3 << 20)).unwrap(), BLOCK);
        }
        drop(reader);
        driver.finish().unwrap();
    });
}

#[test]
fn a_call_that_panics_keeps_no_other_reader_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(BYTES)
        .unwrap();
    for (backend, is_file) in [("auto", true), ("auto", false), ("pread", true)] {
        let driver = Driver::new(config(backend)).unwrap();
        let open = |index| match is_file {
            true => driver.open(&path).unwrap(),
            false => driver.open_generated(17, index, BYTES).unwrap(),
        };
        let (reader, other) = (open(1), open(2));
        // As many as a device has threads.
        for at in 0..16 {
            reader.when_resident(at * (1 << 20), BLOCK, true, |_| panics());
        }
        reads_and_ends(driver, other);
    }
}

/// Panics where the test has it panic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Panics {
    AsItIsHandedOver,
    InBegin,
    AtTheEnd,
    Never,
}

#[derive(Debug)]
struct Object(Panics);

impl Source for Object {
    fn key(&self) -> Key {
        let (name, version) = (format!("{:?}", self.0).into(), "1".into());
        Key::Object { name, version }
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES)
    }

    fn read(&self, target: &mut Target, _: u64, skip: usize) -> io::Result<usize> {
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(7));
        Ok(end)
    }

    fn begin(self: Arc<Self>, pending: Pending) -> Option<Pending> {
        match self.0 {
            Panics::InBegin => panics(),
            _ => Some(pending),
        }
    }

    fn requests_max(&self) -> Option<u32> {
        match self.0 {
            Panics::AsItIsHandedOver => panics(),
            _ => None,
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.0 == Panics::AtTheEnd && !std::thread::panicking() {
            panics();
        }
    }
}

#[test]
fn a_source_that_panics_as_it_takes_a_read_fails_that_read_alone() {
    for panics in [Panics::InBegin, Panics::AsItIsHandedOver] {
        let driver = Driver::new(config("auto")).unwrap();
        let reader = driver.open_source(Arc::new(Object(panics))).unwrap();
        let other = driver.open_source(Arc::new(Object(Panics::Never))).unwrap();
        let error = bounded(move || reader.read_at(&mut [0; BLOCK], 0).unwrap_err());
        assert_eq!(
            forerun_io::error::number(&error),
            Some(libc::EIO),
            "{panics:?}"
        );
        reads_and_ends(driver, other);
    }
}

#[test]
fn a_source_that_panics_at_its_end_keeps_no_other_reader_waiting() {
    let driver = Driver::new(config("auto")).unwrap();
    let other = driver.open_source(Arc::new(Object(Panics::Never))).unwrap();
    let source = Arc::new(Object(Panics::AtTheEnd));
    let reader = driver.open_source(source.clone()).unwrap();
    let (hold, held) = channel();
    let (go_on, gone_on) = channel::<()>();
    // The last hold of the source is that of the request whose end calls this.
    reader.when_resident(0, BLOCK, true, move |_| {
        hold.send(()).unwrap();
        // An error is as good: the test has ended early.
        let _ = gone_on.recv();
    });
    held.recv_timeout(BOUND).unwrap();
    drop((reader, source));
    drop(go_on);
    reads_and_ends(driver, other);
}

/// A writer that panics once it is told to.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<AtomicBool>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.load(Ordering::Relaxed) {
            true => panics(),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_panics_ends_its_lines_and_nothing_else() {
    let lines = Lines::default();
    let driver = Driver::new(config("pread").journal(lines.clone())).unwrap();
    lines.0.store(true, Ordering::Relaxed);
    let ended = bounded(move || {
        let reader = driver.open_generated(17, 1, BYTES).unwrap();
        for at in 0..20 {
            let mut into = [0; BLOCK];
            assert_eq!(reader.read_at(&mut into, at * (3 << 20)).unwrap(), BLOCK);
        }
        driver.write_journal();
        [driver.finish(), driver.finish()]
    });
    // The error is reported once.
    let is_once = matches!(ended, [Err(Error::Journal(_)), Ok(_)]);
    assert!(is_once, "{ended:?}");
}
