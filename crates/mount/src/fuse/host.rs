//! Opens files ahead for the engine, on threads of lanes, never on the one that asked.
//!
//! Called by the driver on any thread. Each folder has one lane, so its files are opened in the
//! order of the requests, which is that of the disk: opened four at a time they were fetched in no
//! order, and each cost a switch. A server that does not answer delays this folder's files alone.

use std::sync::{Arc, Weak};

use forerun_core::{FolderId, ReaderId};
use forerun_io::OpensAhead;

use super::calls::Served;
use crate::lanes::{LaneOf, Lanes};

/// Files that are closed at a time.
const CLOSES: u32 = 4;

/// See the [module](self).
pub(super) struct AheadHost {
    served: Weak<Served>,
    lanes: Arc<Lanes>,
}

impl AheadHost {
    /// Opens ahead for this mount from now on.
    pub(super) fn serve(served: &Arc<Served>, lanes: &Arc<Lanes>) {
        let host = Self {
            served: Arc::downgrade(served),
            lanes: lanes.clone(),
        };
        served.fs.open_ahead_with(Arc::new(host));
    }
}

impl OpensAhead for AheadHost {
    fn open(&self, folder: FolderId, entry: u32) {
        let served = self.served.clone();
        self.lanes.later(LaneOf::Ahead(folder.0), move || {
            if let Some(served) = served.upgrade() {
                served.fs.open_ahead(folder, entry);
            }
        });
    }

    fn close(&self, reader: ReaderId) {
        let served = self.served.clone();
        let lane = LaneOf::NotAhead(reader.0 % CLOSES);
        self.lanes.later(lane, move || {
            drop(served.upgrade().map(|served| served.fs.not_ahead(reader)));
        });
    }
}
