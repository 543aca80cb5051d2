//! A file or block device read around the page cache, with a clock beside it.
//!
//! Made by `forerun profile`. Direct reads require aligned memory and positions; the
//! buffer is taken larger than needed and used from its first aligned byte on, so no `unsafe` is.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use forerun_core::{Bytes, Nanos};
use rustix::fs::{Mode, OFlags};

use super::{Subject, UNIT, threads, whole_units};
use crate::failure::Failure;
use crate::files;
use crate::quantity::size;

/// A file or block device opened for direct reads.
#[derive(Debug)]
pub struct Direct {
    file: File,
    bytes: Bytes,
    memory: Vec<u8>,
}

impl Direct {
    /// Opens a path for measuring.
    ///
    /// # Errors
    /// It cannot be read, is too small, is mostly holes, or refuses direct reads.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        files::check(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let mut file: File = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|e| {
                Failure::unusable(path, format!("does not take direct reads (O_DIRECT): {e}"))
            })?
            .into();
        // The end of a block device, too, whose metadata says zero.
        let end = file
            .seek(SeekFrom::End(0))
            .map_err(|e| Failure::unusable(path, e))?;
        let bytes = whole_units(path, Bytes(end))?;
        check_not_sparse(path, &file)?;
        Ok(Self {
            file,
            bytes,
            memory: Vec::new(),
        })
    }

    fn buffer(memory: &mut Vec<u8>, count: usize) -> &mut [u8] {
        memory.resize(memory.len().max(count + UNIT as usize), 0);
        let start = memory
            .as_ptr()
            .align_offset(UNIT as usize)
            .min(UNIT as usize);
        &mut memory[start..start + count]
    }
}

/// Holes are not on the device; reading them would measure nothing.
fn check_not_sparse(path: &Path, file: &File) -> Result<(), Failure> {
    let there = file.metadata().map_err(|e| Failure::unusable(path, e))?;
    let stored = there.blocks() * 512;
    if there.file_type().is_block_device() || stored >= there.len() / 2 {
        return Ok(());
    }
    let (stored, whole) = (size(Bytes(stored)), size(Bytes(there.len())));
    let why = format!("only {stored} of {whole} are stored, the rest are holes");
    Err(Failure::unusable(path, why))
}

impl Subject for Direct {
    fn bytes(&self) -> Bytes {
        self.bytes
    }

    fn read(&mut self, offset: u64, count: usize) -> io::Result<Nanos> {
        let buffer = Self::buffer(&mut self.memory, count);
        let begun = Instant::now();
        self.file.read_exact_at(buffer, offset)?;
        Ok(Nanos(
            u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        ))
    }

    fn read_together(&mut self, offsets: &[u64], count: usize, at_once: u32) -> io::Result<Nanos> {
        let file = &self.file;
        threads::read_all(offsets, at_once, || {
            let mut memory = Vec::new();
            move |offset| file.read_exact_at(Self::buffer(&mut memory, count), offset)
        })
    }
}
