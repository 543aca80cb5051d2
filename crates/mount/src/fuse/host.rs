//! Opens files ahead for the engine, on threads of lanes, never on the one that asked.
//!
//! Called by the driver on any thread. Each folder has one lane, so its files are opened one after
//! the other, in the order of the disk: opened four at a time they were fetched in no order, and
//! each cost a switch. A server that does not answer delays this folder's files alone.

use std::sync::{Arc, Weak};

use forerun_core::{FolderId, ReaderId};
use forerun_io::{Driver, OpensAhead};

use crate::lanes::{LaneOf, Lanes};

/// Files that are closed at a time.
const CLOSES: u32 = 4;

/// A file system whose files can be opened ahead.
pub(crate) trait HasAhead: Send + Sync + 'static {
    /// Opens entries of a folder ahead, in the order of the disk, and tells the driver how that went.
    fn open_ahead(self: Arc<Self>, folder: FolderId, entries: Vec<u32>);
    /// No program comes for the file of this reader: it is closed.
    fn close_ahead(&self, reader: ReaderId);
}

/// See the [module](self).
pub(crate) struct AheadHost<S> {
    served: Weak<S>,
    lanes: Arc<Lanes>,
}

impl<S: HasAhead> AheadHost<S> {
    /// Opens ahead by this driver from now on.
    pub(crate) fn serve(served: &Arc<S>, driver: Option<Arc<Driver>>, lanes: &Arc<Lanes>) {
        let host = Self {
            served: Arc::downgrade(served),
            lanes: lanes.clone(),
        };
        if let Some(driver) = driver {
            driver.open_ahead_with(Arc::new(host));
        }
    }
}

impl<S: HasAhead> OpensAhead for AheadHost<S> {
    fn open(&self, folder: FolderId, entries: Vec<u32>) {
        let served = self.served.clone();
        self.lanes.later(LaneOf::Ahead(folder.0), move || {
            if let Some(served) = served.upgrade() {
                served.open_ahead(folder, entries);
            }
        });
    }

    fn close(&self, reader: ReaderId) {
        let served = self.served.clone();
        let lane = LaneOf::NotAhead(reader.0 % CLOSES);
        self.lanes.later(lane, move || {
            if let Some(served) = served.upgrade() {
                served.close_ahead(reader);
            }
        });
    }
}
