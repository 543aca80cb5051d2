//! The ends of a driver's sources and calls: a source's when its last reader and its last fetch are over, a call's when its
//! reader is. Neither ends under the engine's lock.
//!
//! A wait that would not end is cut after [`BOUND`].

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::arena::Target;
use forerun_io::source::{Key, Pending, Source};
use forerun_io::{Config, Driver};

const BOUND: Duration = Duration::from_secs(60);
const BYTES: u64 = 4096;

fn driver() -> Arc<Driver> {
    let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
    Arc::new(Driver::new(Config::new(settings)).unwrap())
}

fn key() -> Key {
    Key::Object {
        name: "one".into(),
        version: "1".into(),
    }
}

/// Tells at its end whether another thread can enter the engine meanwhile.
#[derive(Debug)]
struct Ends {
    driver: Weak<Driver>,
    tell: Sender<bool>,
}

impl Ends {
    fn of(driver: &Arc<Driver>) -> (Self, Receiver<bool>) {
        let (tell, told) = channel();
        let driver = Arc::downgrade(driver);
        (Self { driver, tell }, told)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let (enter, entered) = channel();
        let driver = self.driver.upgrade();
        std::thread::spawn(move || {
            let _ = driver.map(|driver| driver.ledger());
            let _ = enter.send(());
        });
        // The test may have failed meanwhile.
        let _ = self.tell.send(entered.recv_timeout(BOUND).is_ok());
    }
}

/// Hands its reads to the test.
#[derive(Debug)]
struct Closes {
    reads: Sender<Pending>,
    _ends: Option<Ends>,
}

impl Source for Closes {
    fn key(&self) -> Key {
        key()
    }

    fn is_served(&self) -> bool {
        true
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES)
    }

    fn read(&self, _: &mut Target, _: u64, _: usize) -> io::Result<usize> {
        unreachable!("it takes its reads")
    }

    fn begin(self: Arc<Self>, pending: Pending) -> Option<Pending> {
        self.reads.send(pending).unwrap();
        None
    }
}

fn end(mut pending: Pending) {
    let target = pending.target().unwrap();
    let end = target.bytes();
    target.fill(0, end, |_, memory| memory.fill(7));
    pending.end(Ok(end));
}

#[test]
fn a_source_whose_last_fetch_ends_after_its_last_reader_is_dropped_without_the_lock() {
    let driver = driver();
    let (ends, told) = Ends::of(&driver);
    let (reads, begun) = channel();
    let _ends = Some(ends);
    let source = Arc::new(Closes { reads, _ends });
    let reader = driver.open_source(source).unwrap();
    reader.when_resident(0, 4096, true, |_| {});
    let pending = begun.recv_timeout(BOUND).unwrap();
    drop(reader);
    assert!(told.try_recv().is_err(), "a fetch has it still");
    end(pending);
    assert_eq!(told.recv_timeout(2 * BOUND), Ok(true));
}

#[test]
fn a_call_whose_reader_closes_before_is_dropped_without_the_lock() {
    let driver = driver();
    let (reads, begun) = channel();
    let _ends = None;
    let source = Arc::new(Closes { reads, _ends });
    let reader = driver.open_source(source.clone()).unwrap();
    let other = driver.open_source(source).unwrap();
    let (ends, told) = Ends::of(&driver);
    reader.when_resident(0, 4096, true, move |_| drop(ends));
    let (tell, came) = channel();
    other.when_resident(0, 4096, true, move |there| tell.send(there).unwrap());
    let pending = begun.recv_timeout(BOUND).unwrap();
    assert!(told.try_recv().is_err(), "it waits");
    drop(reader);
    assert_eq!(told.recv_timeout(2 * BOUND), Ok(true));
    end(pending);
    assert_eq!(came.recv_timeout(BOUND), Ok(true), "of another reader");
}
