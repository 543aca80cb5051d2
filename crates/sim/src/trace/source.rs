//! The bytes of a trace: decompressed if need be, its beginning known, in lines or records.
//!
//! Compression goes by the magic bytes, not by the file's name: gzip (any number of members), zstd
//! (any number of frames, skippable ones skipped) and xz (any number of streams), checksums
//! included. All are decoders in Rust without a build step in C. Memory is bounded by the window a
//! file asks for, at most 128 MiB.
//!
//! ```text
//! file -> magic -> decompressor -> head kept for guessing -> lines, records
//! ```

use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::error::Cause;

/// How much of the beginning is kept for guessing the format: some fifty lines.
const HEAD: usize = 4096;
/// `zstd --long` and `xz -9` ask for windows of 128 MiB at most.
const WINDOW_MAX: u32 = 128 << 20;
/// The longest line: a csv row with long names fits hundreds of times.
pub(super) const LINE_MAX: usize = 64 << 10;

/// The mark that some editors put before UTF-8; it is no part of the first line.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

type Bytes = Box<dyn Read>;

/// See the [module](self).
pub(super) struct Source {
    bytes: BufReader<Ahead>,
    compression: Option<&'static str>,
    head: Vec<u8>,
    is_whole: bool,
    /// The line or record last read.
    unit: Vec<u8>,
    /// Bytes read so far, and lines.
    byte: u64,
    line: u64,
}

impl Source {
    pub(super) fn new(file: impl Read + 'static) -> Result<Self, Cause> {
        let mut file = Ahead::new(Box::new(BufReader::new(file)));
        let compression = compression(file.peek(6)?);
        let bytes: Bytes = match compression {
            None => Box::new(file),
            Some("gzip") => Box::new(MultiGzDecoder::new(file)),
            Some("zstd") => Box::new(Frames::Between(file)),
            Some("xz") => Box::new(XzReader::new_mem_limit(file, true, WINDOW_MAX >> 10)),
            Some(kind) => {
                let reason = "not read; gzip, zstd and xz are".to_owned();
                return Err(Cause::Compressed { kind, reason });
            }
        };
        let mut bytes = Ahead::new(bytes);
        let head = bytes
            .peek(HEAD)
            .map_err(|error| damage(compression, &error))?
            .to_vec();
        Ok(Self {
            bytes: BufReader::with_capacity(64 << 10, bytes),
            compression,
            is_whole: head.len() < HEAD,
            head,
            unit: Vec::new(),
            byte: 0,
            line: 0,
        })
    }

    /// The beginning.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the beginning is all there is.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The number of the line last read.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The position after the last unit read.
    pub(super) fn byte(&self) -> u64 {
        self.byte
    }

    /// The line last read, without its end, or the record.
    pub(super) fn unit(&self) -> &[u8] {
        &self.unit
    }

    /// Reads the next line; false at the end.
    pub(super) fn next_line(&mut self) -> Result<bool, Cause> {
        self.unit.clear();
        self.line += 1;
        let mut limited = (&mut self.bytes).take(LINE_MAX as u64 + 1);
        let read = limited
            .read_until(b'\n', &mut self.unit)
            .map_err(|error| damage(self.compression, &error))?;
        if read > LINE_MAX {
            return Err(Cause::LongLine { max: LINE_MAX });
        }
        self.byte += read as u64;
        while let Some(b'\n' | b'\r') = self.unit.last() {
            self.unit.pop();
        }
        if self.line == 1 && self.unit.starts_with(MARK) {
            self.unit.drain(..MARK.len());
        }
        if self.unit.contains(&b'\r') {
            return Err(Cause::carriage_return(&self.unit));
        }
        Ok(read > 0)
    }

    /// Reads the next record of a given size; false at the end.
    pub(super) fn next_record(&mut self, bytes: usize) -> Result<bool, Cause> {
        self.unit.clear();
        // The usual case: it is in the buffer as a whole.
        if let Some(record) = self.bytes.buffer().get(..bytes) {
            self.unit.extend_from_slice(record);
            self.bytes.consume(bytes);
            self.byte += bytes as u64;
            return Ok(true);
        }
        let read = (&mut self.bytes)
            .take(bytes as u64)
            .read_to_end(&mut self.unit)
            .map_err(|error| damage(self.compression, &error))?;
        if read == 0 || read == bytes {
            self.byte += read as u64;
            return Ok(read > 0);
        }
        Err(Cause::Cut {
            found: read,
            accepted: bytes,
        })
    }
}

/// The compression named by the first bytes.
fn compression(start: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 6] = [
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
        (b"BZh", "bzip2"),
        (b"PK\x03\x04", "zip"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    ];
    let known = MAGIC.iter().find(|(magic, _)| start.starts_with(magic));
    known.map(|(_, name)| *name).or_else(|| {
        let skippable = matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        skippable.then_some("zstd")
    })
}

fn damage(compression: Option<&'static str>, error: &io::Error) -> Cause {
    match compression {
        None => Cause::Io(error.to_string()),
        Some(kind) => Cause::Compressed {
            kind,
            reason: format!("damaged or cut off: {error}"),
        },
    }
}

/// Bytes of which some were read ahead.
struct Ahead {
    start: Vec<u8>,
    taken: usize,
    /// The error that ended reading ahead early; returned once everything before it was taken.
    failed: Option<io::Error>,
    rest: Bytes,
}

impl Ahead {
    fn new(rest: Bytes) -> Self {
        Self {
            start: Vec::new(),
            taken: 0,
            failed: None,
            rest,
        }
    }

    /// The next bytes, fewer only at the end or before an error.
    fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        self.start.drain(..self.taken);
        self.taken = 0;
        let missing = count.saturating_sub(self.start.len()) as u64;
        match (&mut self.rest).take(missing).read_to_end(&mut self.start) {
            Err(error) if self.start.is_empty() => return Err(error),
            Err(error) => self.failed = Some(error),
            Ok(_) => {}
        }
        Ok(&self.start)
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = &self.start[self.taken..];
        if start.is_empty() {
            return match self.failed.take() {
                Some(error) => Err(error),
                None => self.rest.read(buffer),
            };
        }
        let count = start.len().min(buffer.len());
        buffer[..count].copy_from_slice(&start[..count]);
        self.taken += count;
        Ok(count)
    }
}

/// The frames of a zstd file, one after the other.
enum Frames {
    Between(Ahead),
    Inside(Box<StreamingDecoder<Ahead, FrameDecoder>>),
    Over,
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Over) {
                Self::Over => return Ok(0),
                Self::Between(file) => *self = next_frame(file)?,
                Self::Inside(mut frame) => {
                    let read = frame.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        *self = Self::Inside(frame);
                        return Ok(read);
                    }
                    let (file, decoder) = (*frame).into_parts();
                    let told = decoder.get_checksum_from_data();
                    if told.is_some() && told != decoder.get_calculated_checksum() {
                        return Err(io::Error::other("the checksum differs"));
                    }
                    *self = Self::Between(file);
                }
            }
        }
    }
}

/// Begins the next frame of contents, or skips one of another kind.
fn next_frame(mut file: Ahead) -> io::Result<Frames> {
    match *file.peek(8)? {
        [] => Ok(Frames::Over),
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d] => {
            let length = 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
            if io::copy(&mut (&mut file).take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Frames::Between(file))
        }
        _ => StreamingDecoder::new_with_max_window_size(file, WINDOW_MAX.into())
            .map(|frame| Frames::Inside(Box::new(frame)))
            .map_err(io::Error::other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn lines(bytes: Vec<u8>) -> Result<Vec<String>, Cause> {
        let mut source = Source::new(Cursor::new(bytes))?;
        let mut lines = Vec::new();
        while source.next_line()? {
            lines.push(String::from_utf8(source.unit().to_vec()).unwrap());
        }
        Ok(lines)
    }

    /// "1\n2\n" as xz(1) writes it.
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x03, 0x31, 0x0a, 0x32,
        0x0a,
    ];

    #[test]
    fn lines_end_with_or_without_their_end() {
        assert_eq!(lines(b"a\r\n\nb".to_vec()).unwrap(), ["a", "", "b"]);
        assert_eq!(lines(Vec::new()).unwrap(), [""; 0]);
        assert_eq!(lines(b"\xef\xbb\xbfa\n".to_vec()).unwrap(), ["a"]);
        assert!(lines(vec![b'x'; LINE_MAX]).is_ok());
        let long = lines(vec![b'x'; LINE_MAX + 1]);
        assert_eq!(long, Err(Cause::LongLine { max: LINE_MAX }));
    }

    #[test]
    fn other_compression_is_named() {
        let Err(Cause::Compressed { kind, .. }) = lines(b"BZh91AY".to_vec()) else {
            panic!("bzip2 is not read");
        };
        assert_eq!(kind, "bzip2");
    }

    #[test]
    fn a_file_cut_off_inside_its_compression_is_an_error() {
        assert!(matches!(
            lines(XZ.to_vec()),
            Err(Cause::Compressed { kind: "xz", .. })
        ));
        assert!(matches!(
            lines(vec![0x28, 0xb5, 0x2f, 0xfd, 0]),
            Err(Cause::Compressed { kind: "zstd", .. })
        ));
        assert!(matches!(
            lines(vec![0x1f, 0x8b, 8, 0]),
            Err(Cause::Compressed { kind: "gzip", .. })
        ));
    }
}
