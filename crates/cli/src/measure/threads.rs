//! Reads at several places by several threads, timed together.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use forerun_core::Nanos;

/// Address space of a thread: hundreds of them touch little of it, a client of a store more than 64 KiB.
const STACK_BYTES: usize = 1 << 20;

/// Reads at all places in their order, `at_once` at a time; each thread reads with a function of its own.
///
/// # Errors
/// Errors of one of the reads; no more threads.
pub(super) fn read_all<R: FnMut(u64) -> io::Result<()>>(
    offsets: &[u64],
    at_once: u32,
    reader: impl Fn() -> R + Sync,
) -> io::Result<Nanos> {
    let next = AtomicUsize::new(0);
    let read = || {
        let mut read = reader();
        while let Some(offset) = offsets.get(next.fetch_add(1, Ordering::Relaxed)) {
            read(*offset)?;
        }
        Ok(())
    };
    let begun = Instant::now();
    thread::scope(|scope| {
        let start = |_| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, read)
        };
        let reads: io::Result<Vec<_>> = (0..at_once).map(start).collect();
        let ended = reads?.into_iter().map(|read| match read.join() {
            Ok(result) => result,
            Err(_) => Err(io::Error::other("a reading thread ended early")),
        });
        ended.collect::<io::Result<Vec<()>>>()
    })?;
    Ok(since(begun))
}

/// The time since then.
pub(super) fn since(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
