//! An object of a store, read range by range past the engine, with a clock beside it.
//!
//! Made by `forerun profile` for an address. The switching cost of a store is the time to the first byte, and its
//! servers are the requests at once beyond which throughput does not grow, at most as many as forerun sends to it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use forerun_core::{Bytes, Nanos};
use forerun_io::Source;
use forerun_io::source::fetch;

use super::{Subject, threads, whole_units};
use crate::failure::Failure;

/// See the [module](self).
#[derive(Debug)]
pub struct Remote {
    source: Arc<dyn Source>,
    bytes: Bytes,
}

impl Remote {
    /// Of this object; the path is its address.
    ///
    /// # Errors
    /// It is too small.
    pub fn new(path: &Path, source: Arc<dyn Source>) -> Result<Self, Failure> {
        let bytes = source.bytes().map_err(|e| Failure::unusable(path, e))?;
        let bytes = whole_units(path, Bytes(bytes))?;
        Ok(Self { source, bytes })
    }
}

fn read(source: &dyn Source, offset: u64, count: usize) -> io::Result<()> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    match fetch(source, offset, count)?.len() {
        all if all == count as usize => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl Subject for Remote {
    fn bytes(&self) -> Bytes {
        self.bytes
    }

    fn at_once_max(&self) -> u32 {
        self.source.requests_max().unwrap_or(u32::MAX)
    }

    fn read(&mut self, offset: u64, count: usize) -> io::Result<Nanos> {
        let begun = Instant::now();
        read(&*self.source, offset, count)?;
        Ok(threads::since(begun))
    }

    fn read_together(&mut self, offsets: &[u64], count: usize, at_once: u32) -> io::Result<Nanos> {
        let source = &*self.source;
        threads::read_all(offsets, at_once, || {
            move |offset| read(source, offset, count)
        })
    }
}
