//! Batches: how many fetches a free disk gets at once, and which.
//!
//! A disk that sees several requests can reorder them, so aggressive, reverse aggressive and
//! forestall hand them out in batches (Kimbrel et al. 1996, sections 2.6 and 2.7). A disk is *free*
//! when nothing asked of it is still to come; it then gets up to a batch. If several are free,
//! their missing blocks are considered together, soonest first, each going to its own disk's batch,
//! until the batches are full or doing no harm forbids the next one (and then also all after it).

use alloc::vec::Vec;

use super::board::{Board, Position};
use crate::units::DeviceId;

/// Batch size by number of disks (Kimbrel et al. 1996, Table 6): 1 to 7 disks, then 4. Few disks
/// are the bottleneck and gain from reordering; with many, fetching out of order costs more.
pub const TABLE_6: [u32; 7] = [80, 40, 40, 16, 16, 8, 8];

/// The batch size of Table 6 for so many disks.
#[must_use]
pub fn table_6(disks: u32) -> u32 {
    let row = (disks as usize).saturating_sub(1);
    TABLE_6.get(row).copied().unwrap_or(4)
}

/// Free places of each disk's batch in this round.
#[derive(Clone, Debug)]
pub struct Batches {
    /// 0 stands for Table 6.
    size: u32,
    room: Vec<u32>,
}

impl Batches {
    /// Batches of a size; 0 takes it from Table 6.
    #[must_use]
    pub fn of(size: u32) -> Self {
        Self {
            size,
            room: Vec::new(),
        }
    }

    /// A round begins: free disks get a batch, the others nothing.
    pub fn open(&mut self, board: &Board) {
        self.open_where(board, |disk| board.in_flight(disk) == 0);
    }

    /// A round begins: disks of which `due` holds get a batch.
    pub fn open_where(&mut self, board: &Board, mut due: impl FnMut(DeviceId) -> bool) {
        let size = match self.size {
            0 => table_6(board.disk_count()),
            size => size,
        };
        let mut room = |disk| if due(disk) { size } else { 0 };
        self.room.clear();
        self.room.extend(board.disks().map(&mut room));
    }

    /// Whether a disk's batch has room.
    #[must_use]
    pub fn has_room(&self, disk: DeviceId) -> bool {
        self.room
            .get(usize::from(disk.0))
            .is_some_and(|room| *room > 0)
    }

    /// The soonest missing block on any disk whose batch has room.
    #[must_use]
    pub fn soonest(&self, board: &Board) -> Option<Position> {
        let open = board.disks().filter(|disk| self.has_room(*disk));
        open.filter_map(|disk| board.first_missing(disk)).min()
    }

    /// One fetch goes to a disk.
    pub fn spend(&mut self, disk: DeviceId) {
        if let Some(room) = self.room.get_mut(usize::from(disk.0)) {
            *room = room.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_table_6() {
        let sizes = [1, 2, 3, 4, 5, 6, 7, 8, 16].map(table_6);
        assert_eq!(sizes, [80, 40, 40, 16, 16, 8, 8, 4, 4]);
    }
}
