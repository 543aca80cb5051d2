//! A reader as `std::io::Read` and `Seek`: for code that takes any stream.
//!
//! Each reader has one cursor. Programs with several threads use [`Reader::read_at`], which has none.

use std::io::{self, Read, Seek, SeekFrom};

use super::Reader;

impl Read for Reader {
    /// As [`Reader::read_at`], at the cursor, which moves behind the bytes read.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(buf, self.cursor)?;
        self.cursor += read as u64;
        Ok(read)
    }
}

impl Seek for Reader {
    /// Moves the cursor; past the end of the file nothing is read. The end is that of the [last
    /// look](Reader::size).
    ///
    /// # Errors
    /// A place before the beginning, or beyond 2^64.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.cursor.checked_add_signed(by),
            SeekFrom::End(by) => self.size().checked_add_signed(by),
        };
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "seek before the beginning");
        self.cursor = place.ok_or_else(refused)?;
        Ok(self.cursor)
    }
}
