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
use crate::shape::StripedWindow;
use crate::units::{Block, ReaderId};

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
        if file.layout.strip(window.start).is_none() {
            return Some(window);
        }
        let striped = StripedWindow {
            start: window.start,
            end,
            wanted: asked.min(end),
            room: end.saturating_add(room).min(file.blocks).max(end),
            layout: &file.layout,
        };
        let shaped = self.setup.shape.end(&striped);
        let shaped = shaped.clamp(u64::from(window.start.0) + 1, striped.room);
        if shaped == end {
            return Some(window);
        }
        let block = u32::try_from(shaped).map_or(Block(u32::MAX), Block);
        let state = self.readers.reader_mut(reader)?;
        state.detect.shaped(block);
        Some(window.shaped(block))
    }
}
