//! Asynchronous reads end, whatever their buffer and the memory.
//!
//! A read that would not end is cut after [`BOUND`].

use std::sync::mpsc::channel;
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::reader::asynchronous::AsyncReader;
use forerun_io::{Config, Driver, generated};
use futures::AsyncReadExt;

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
