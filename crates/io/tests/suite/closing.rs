//! The end of a source: when its last reader and its last fetch are over, without the engine's lock.
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

/// Hands its reads to the test, and at its end waits until another thread has entered the engine.
#[derive(Debug)]
struct Closes {
    reads: Sender<Pending>,
    driver: Weak<Driver>,
    /// Whether the engine could be entered.
    ended: Sender<bool>,
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

impl Drop for Closes {
    fn drop(&mut self) {
        let (tell, told) = channel();
        let driver = self.driver.upgrade();
        std::thread::spawn(move || {
            let _ = driver.map(|driver| driver.ledger());
            let _ = tell.send(());
        });
        // The test may have failed meanwhile.
        let _ = self.ended.send(told.recv_timeout(BOUND).is_ok());
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
    let (reads, begun) = channel();
    let (ended, told): (_, Receiver<bool>) = channel();
    let source = Closes {
        reads,
        driver: Arc::downgrade(&driver),
        ended,
    };
    let reader = driver.open_source(Arc::new(source)).unwrap();
    reader.when_resident(0, 4096, true, |_| {});
    let pending = begun.recv_timeout(BOUND).unwrap();
    drop(reader);
    assert!(told.try_recv().is_err(), "a fetch has it still");
    end(pending);
    assert_eq!(told.recv_timeout(2 * BOUND), Ok(true));
}
