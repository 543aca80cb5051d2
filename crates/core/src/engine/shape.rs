//! Shape: where a window ends on the array that its file lies on. The stage *shape*.
//!
//! Called by [`window`](super::window) with the detector's window; the [method](crate::shape)
//! answers with an end, and the detector learns of it. Windows that are read backward or leave out
//! gaps stay as they are, as do those of files whose layout has no strips. A leaf: it asks
//! [`place`](super::place) alone.
//!
//! Control law of memory: a window is widened no further than its stream's share and the frames
//! that can be had beside the reserve for demand reads.

use super::Engine;
use super::place::FILE;
use crate::detect::{Access, Direction, Window};
use crate::known;
use crate::readers::File;
use crate::shape::{Strip, Strips};
use crate::units::{Block, DeviceId, ReaderId, saturate};

struct View<'a> {
    window: Window,
    wanted: u64,
    room: u64,
    file: &'a File,
    array: DeviceId,
    block_bytes: u64,
}

impl Strips for View<'_> {
    fn start(&self) -> Block {
        self.window.start
    }

    fn end(&self) -> u64 {
        self.window.end()
    }

    fn wanted(&self) -> u64 {
        self.wanted
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn array(&self) -> DeviceId {
        self.array
    }

    fn spread(&self) -> u32 {
        saturate(self.file.layout.spread())
    }

    fn strip(&self, block: Block) -> Option<Strip> {
        let offset = u64::from(block.0).checked_mul(self.block_bytes)?;
        let strip = self.file.layout.strip(offset)?;
        let blocks = |bytes: u64| saturate(bytes / self.block_bytes);
        let left = blocks(strip.left.0).max(1);
        Some(Strip {
            number: strip.number,
            left,
            left_of_stripe: blocks(strip.left_of_stripe.0).max(left),
            stripe: blocks(strip.stripe.0).max(1),
        })
    }
}

impl Engine {
    /// The window as it is to be fetched. `room` is how many blocks more than it has the memory
    /// allows.
    pub(super) fn shaped(
        &mut self,
        reader: ReaderId,
        access: &Access,
        window: Window,
        room: u64,
    ) -> Option<Window> {
        if window.direction != Direction::Forward || window.stride.is_some() {
            return Some(window);
        }
        let number = self.readers.reader(reader)?.file;
        let file = known(self.readers.file(number), FILE)?;
        let (end, asked) = (
            window.end(),
            u64::from(access.block.0) + u64::from(access.count),
        );
        let view = View {
            window,
            wanted: asked.min(end),
            room: end.saturating_add(room).min(file.blocks).max(end),
            file,
            array: file.layout.devices().next()?,
            block_bytes: self.block_bytes(),
        };
        if view.strip(window.start).is_none() {
            return Some(window);
        }
        let shaped = self.setup.shape.end(&view);
        let shaped = shaped.clamp(u64::from(window.start.0) + 1, view.room);
        if shaped == end {
            return Some(window);
        }
        let block = u32::try_from(shaped).map_or(Block(u32::MAX), Block);
        let state = self.readers.reader_mut(reader)?;
        state.detect.shaped(block);
        Some(window.shaped(block))
    }
}
