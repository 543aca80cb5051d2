//! Parking: what a device could not take yet waits undecided.
//!
//! Called where a block is missing and where a lookahead mark is met, if the fetch would wait in our
//! queue anyway. What waits is the wish, a few words without a frame; when its turn comes the window
//! is decided with what is known then, and goes out.
//!
//! Control law of memory: only readers whose turn it is hold blocks not read yet, one run a device
//! and the one after it. So the memory that keeps devices busy is given by devices, not by how many
//! readers wait: those who wait hold nothing, and nobody's blocks are given up for theirs.
//!
//! It does not choose among wishes: see [`send`](super::send). Reads that the plan announced are not
//! parked: their fetches were decided long before.

use alloc::vec::Vec;

use super::Engine;
use crate::detect::{Access, Cause};
use crate::device::{Device, Parked, Wish};
use crate::dispatch::Waiting;
use crate::units::{Block, DeviceId, Extent, ReaderId};

/// Blocks of a window to come that may be there already, through the plan; as many as one read has.
const PASSED_MAX: usize = Engine::READ_MAX as usize;

impl Engine {
    /// Whether a fetch for this reader may have to wait for others.
    pub(super) fn holds_back_for(&self, reader: ReaderId) -> bool {
        self.device_of(reader).is_some_and(|d| self.holds_back(d))
    }

    /// The lookahead mark was met: the next window is welcome.
    pub(super) fn want_window(&mut self, reader: ReaderId, access: Access) {
        if !self.holds_back_for(reader) {
            self.trigger(reader, Cause::Mark, access);
        } else if let Some(end) = self.end_of_windows(reader, access.block) {
            let wish = Wish::Window {
                reader,
                access,
                end,
            };
            self.park(reader, wish);
        }
    }

    /// Leaves a wish with the reader's device, which may be able to take it at once.
    pub(super) fn park(&mut self, reader: ReaderId, wish: Wish) {
        let Some(id) = self.device_id_of(reader) else {
            return;
        };
        if let Some(device) = self.devices.get_mut(&id) {
            let came = device.work();
            device.parked.push_back(Parked { wish, came });
            self.dispatch(id);
        }
    }

    /// The device can take a fetch for this.
    pub(super) fn grant_wish(&mut self, wish: Wish) {
        match wish {
            Wish::Demand(read) => self.fetch_demand(read),
            Wish::Window {
                reader,
                access,
                end,
            } => {
                // Unless a read that went on from there had its window meanwhile.
                if self.end_of_windows(reader, access.block) == Some(end) {
                    self.trigger(reader, Cause::Mark, access);
                }
            }
        }
    }

    /// Parked reads whose block is on its way by now wait for that.
    pub(super) fn unpark(&mut self, extent: Extent) {
        let device = self.files.get(&extent.file).map(|f| f.device);
        let Some(device) = device.and_then(|id| self.devices.get_mut(&id)) else {
            return;
        };
        let (reads, table) = (&self.reads, &self.memory.table);
        let mut coming = Vec::new();
        device.parked.retain(|parked| {
            let Wish::Demand(id) = parked.wish else {
                return true;
            };
            let comes = reads.get(&id).is_some_and(|read| {
                let block = read.access.block;
                read.file == extent.file
                    && extent.contains(block)
                    && table.find(read.file, block).is_some()
            });
            if comes {
                coming.push(id);
            }
            !comes
        });
        for read in coming {
            self.go_on(read);
        }
    }

    /// A reader closes, and its reads are gone.
    pub(super) fn drop_wishes(&mut self, id: ReaderId) {
        let device = self.device_id_of(id);
        let reads = &self.reads;
        if let Some(device) = device.and_then(|id| self.devices.get_mut(&id)) {
            device.parked.retain(|parked| match &parked.wish {
                Wish::Demand(read) => reads.contains_key(read),
                Wish::Window { reader, .. } => *reader != id,
            });
        }
    }

    /// Where the fetch of a wish would begin, and when it is due. A wish that nobody has any more is
    /// due at once, to be gone.
    pub(super) fn waiting_parked(&self, parked: &Parked) -> Waiting {
        let reader = match parked.wish {
            Wish::Demand(read) => self.reads.get(&read).map(|read| read.reader),
            Wish::Window { reader, .. } => Some(reader),
        };
        let account = reader
            .and_then(|reader| self.readers.get(&reader))
            .map_or(0, |reader| reader.account);
        let place = self.wished(&parked.wish).map(|extent| self.place(extent));
        place.map_or(
            Waiting {
                position: u64::MAX,
                due: 0,
            },
            |(position, _)| Waiting {
                position,
                due: account.max(parked.came),
            },
        )
    }

    /// What is wished for, as far as it is known: of a window, its first block.
    pub(super) fn wished(&self, wish: &Wish) -> Option<Extent> {
        Some(match wish {
            Wish::Demand(read) => {
                let read = self.reads.get(read)?;
                Extent {
                    file: read.file,
                    first: read.access.block,
                    count: read.access.count,
                }
            }
            Wish::Window { reader, end, .. } => {
                let file = self.readers.get(reader)?.file;
                let is_missing = |at: &u32| self.memory.table.find(file, Block(*at)).is_none();
                let first = Block((end.0..).take(PASSED_MAX).find(is_missing)?);
                Extent {
                    file,
                    first,
                    count: 1,
                }
            }
        })
    }

    /// The first block that no window of this run has covered.
    fn end_of_windows(&self, reader: ReaderId, block: Block) -> Option<Block> {
        let stream = self.readers.get(&reader)?.streams.at(block);
        let end = stream.map_or(u64::from(block.0) + 1, |stream| stream.end);
        u32::try_from(end).ok().map(Block)
    }

    pub(super) fn device_id_of(&self, reader: ReaderId) -> Option<DeviceId> {
        let file = self.readers.get(&reader)?.file;
        Some(self.files.get(&file)?.device)
    }

    pub(super) fn device_of(&self, reader: ReaderId) -> Option<&Device> {
        self.devices.get(&self.device_id_of(reader)?)
    }
}
