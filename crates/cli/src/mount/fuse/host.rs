//! Who opens files ahead when the engine asks for it: threads of lanes, never the one that asked.
//!
//! Called by the driver on any thread. A file of a folder is opened in one of [`LANES`] lanes of that
//! folder, so that a disk sees some of them at a time, in about the order asked for, and a server that
//! does not answer holds up this folder's files alone.

use std::sync::{Arc, Weak};

use forerun_core::{FolderId, ReaderId};
use forerun_io::OpensAhead;

use super::calls::Served;
use crate::mount::lanes::{LaneOf, Lanes};

/// Opens at a time of one folder: enough for a disk's scheduler to sort, few enough to be threads.
const LANES: u32 = 4;

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
        let lane = LaneOf::Ahead(folder.0, entry % LANES);
        self.lanes.later(lane, move || {
            if let Some(served) = served.upgrade() {
                served.fs.open_ahead(folder, entry);
            }
        });
    }

    fn close(&self, reader: ReaderId) {
        let served = self.served.clone();
        let lane = LaneOf::NotAhead(reader.0 % LANES);
        self.lanes.later(lane, move || {
            drop(served.upgrade().map(|served| served.fs.not_ahead(reader)));
        });
    }
}
