//! The part of a read that is still to do: which blocks, and which bytes of the buffer they fill.
//!
//! Arithmetic alone, used by [`crate::reader`] and [`crate::hit`]. A read is done in segments of
//! as many blocks as the engine takes at once.

use forerun_core::{Block, Engine};

/// The part of a read that is still to do.
pub(crate) struct Span<'a> {
    /// The bytes to fill, those of the whole read.
    buf: &'a mut [u8],
    /// Where in the file the read begins.
    offset: u64,
    /// Where in the file it ends.
    end: u64,
    /// Blocks are two to this power bytes.
    shift: u32,
    /// The next block.
    pub(crate) at: Block,
    /// Blocks from there on in this segment, which is as much as the engine takes at once.
    pub(crate) left: u32,
    /// Blocks after this segment.
    beyond: u32,
    /// The block touched last.
    pub(crate) previous: Option<Block>,
    /// The block touched last before this segment.
    pub(crate) before: Option<Block>,
    /// Blocks of this segment taken.
    pub(crate) head: u32,
}

impl<'a> Span<'a> {
    /// The read of `buf` at `offset`, in a file of `file_bytes`; none if nothing lies there.
    pub(crate) fn new(
        buf: &'a mut [u8],
        offset: u64,
        file_bytes: u64,
        shift: u32,
        previous: Option<Block>,
    ) -> Option<Self> {
        let end = offset.saturating_add(buf.len() as u64).min(file_bytes);
        if offset >= end {
            return None;
        }
        let first = offset >> shift;
        let at = Block(u32::try_from(first).ok()?);
        let beyond = u32::try_from(((end - 1) >> shift) - first + 1).unwrap_or(u32::MAX);
        Some(Self {
            buf,
            offset,
            end,
            shift,
            at,
            left: 0,
            beyond,
            previous,
            before: previous,
            head: 0,
        })
    }

    /// Goes on to the next segment; false if there is none.
    pub(crate) fn next_segment(&mut self) -> bool {
        self.left = self.beyond.min(Engine::READ_MAX);
        self.beyond -= self.left;
        self.before = self.previous;
        self.head = 0;
        self.left > 0
    }

    /// The bytes of the next block that are wanted: where in the block they begin, and where they
    /// go.
    pub(crate) fn piece(&mut self) -> (usize, &mut [u8]) {
        let block = u64::from(self.at.0) << self.shift;
        let from = self.offset.max(block);
        let to = self.end.min(block + (1 << self.shift)).max(from);
        let into = (from - self.offset) as usize..(to - self.offset) as usize;
        ((from - block) as usize, &mut self.buf[into])
    }

    /// The next block was taken.
    pub(crate) fn advance(&mut self) {
        self.previous = Some(self.at);
        self.left -= 1;
        self.head += 1;
        self.at = Block(self.at.0.saturating_add(1));
    }

    /// Bytes taken so far.
    pub(crate) fn taken(&self) -> usize {
        let reached = u64::from(self.at.0) << self.shift;
        (reached.clamp(self.offset, self.end) - self.offset) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_up_to_the_whole_read_whatever_its_ends() {
        for offset in [0, 1, 511, 512, 700, 5 * 512 - 1] {
            for length in [1, 2, 511, 512, 513, 3000] {
                let (mut buf, file_bytes) = (vec![0; length], 2600);
                let end = (offset + length as u64).min(file_bytes);
                let mut span = Span::new(&mut buf, offset, file_bytes, 9, None).unwrap();
                let mut reached = offset;
                while span.next_segment() {
                    while span.left > 0 {
                        let at = u64::from(span.at.0) << 9;
                        let (from, into) = span.piece();
                        assert_eq!(at + from as u64, reached);
                        reached += into.len() as u64;
                        span.advance();
                        assert_eq!(span.taken() as u64, reached - offset);
                    }
                }
                assert_eq!(reached, end);
            }
        }
        assert!(Span::new(&mut [0; 8], 2600, 2600, 9, None).is_none());
        assert!(Span::new(&mut [], 0, 2600, 9, None).is_none());
    }

    #[test]
    fn a_long_read_has_several_segments() {
        let blocks = 2 * Engine::READ_MAX as usize + 1;
        let mut buf = vec![0; blocks * 512];
        let mut span = Span::new(&mut buf, 0, u64::MAX, 9, None).unwrap();
        let mut segments = Vec::new();
        while span.next_segment() {
            segments.push(span.left);
        }
        assert_eq!(segments, [Engine::READ_MAX, Engine::READ_MAX, 1]);
    }
}
