//! Asynchronous reads end, whatever their buffer and the memory.
//!
//! A read that would not end is cut after [`BOUND`].

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::arena::Target;
use forerun_io::reader::asynchronous::AsyncReader;
use forerun_io::source::Key;
use forerun_io::{Config, Driver, Source, generated};
use futures::{AsyncRead, AsyncReadExt, AsyncSeekExt};

const BOUND: Duration = Duration::from_secs(600);
const SEED: u64 = 17;

/// Reads a whole file into one buffer.
fn read_whole(memory: u64, bytes: usize) {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let settings = preset::default().settings(Bytes(memory)).unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let mut reader = AsyncReader::new(driver.open_generated(SEED, 1, bytes as u64).unwrap());
        let mut into = vec![0; bytes];
        futures::executor::block_on(reader.read_exact(&mut into)).unwrap();
        generated::check(SEED, 1, 0, &into).unwrap();
        drop(reader);
        driver.finish().unwrap().check().unwrap();
        tell.send(()).unwrap();
    });
    assert_eq!(told.recv_timeout(BOUND), Ok(()), "{bytes} in {memory}");
}

#[test]
fn a_buffer_larger_than_the_memory_is_filled() {
    read_whole(1 << 20, 4 << 20);
}

#[test]
fn a_buffer_larger_than_the_engine_lets_a_read_wait_for_is_filled() {
    read_whole(64 << 20, (24 << 20) + 1);
}

#[test]
fn a_read_takes_a_quarter_of_what_the_limit_leaves() {
    let settings = preset::default().settings(Bytes(16 << 20)).unwrap();
    let driver = Driver::new(Config::new(settings)).unwrap();
    let mut reader = AsyncReader::new(driver.open_generated(SEED, 1, 8 << 20).unwrap());
    let mut into = vec![0; 4 << 20];
    let mut read = || futures::executor::block_on(reader.read(&mut into)).unwrap();
    assert_eq!(read(), 1 << 20);
    driver.limit_memory(Bytes(1 << 20)).unwrap();
    let taken = read();
    assert!((1..=1 << 18).contains(&taken), "{taken}");
    driver.limit_memory(Bytes(16 << 20)).unwrap();
    assert_eq!(read(), 1 << 20);
}

/// Does not answer for its first MiB before the test's end of the channel is gone.
#[derive(Debug)]
struct Gated(Mutex<Receiver<()>>);

impl Source for Gated {
    fn key(&self) -> Key {
        let (name, version) = ("gated".into(), "1".into());
        Key::Object { name, version }
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(64 << 20)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        if offset < 1 << 20 {
            let _ = self.0.lock().unwrap().recv();
        }
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(7));
        Ok(end)
    }
}

#[test]
fn a_read_behind_a_seek_does_not_wait_for_the_place_of_one_that_was_let_go_of() {
    let (open, gate) = channel::<()>();
    let settings = preset::default().settings(Bytes(16 << 20)).unwrap();
    let driver = Driver::new(Config::new(settings)).unwrap();
    let reader = driver.open_source(Arc::new(Gated(gate.into()))).unwrap();
    let mut reader = AsyncReader::new(reader);
    let mut task = Context::from_waker(Waker::noop());
    assert!(
        Pin::new(&mut reader)
            .poll_read(&mut task, &mut [0; 4096])
            .is_pending()
    );
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut into = [0; 4096];
        let read = futures::executor::block_on(async {
            reader.seek(SeekFrom::Start(32 << 20)).await?;
            reader.read_exact(&mut into).await
        });
        // The test may have failed meanwhile.
        let _ = tell.send((read.is_ok(), into == [7; 4096]));
    });
    let read = told.recv_timeout(BOUND);
    drop(open);
    assert_eq!(read, Ok((true, true)));
}
