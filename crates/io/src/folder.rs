//! Folders: a host reports walks of them, and is asked to open files ahead of a walk.
//!
//! Called by a mount, or by any host that sees which files programs open in which folders. The
//! engine's `next_file` method then expects the files that come next; the driver asks the host to
//! open them, and the engine fetches their beginning. Where the method is `none`, or no host opens
//! ahead, all of this is nothing.
//!
//! ```text
//! host                                   driver
//!  folder(entries), entered(file)  -->
//!                                  <--   OpensAhead::open(folder, entries)    soon, on a thread of the host's
//!  opened_ahead(entry, reader)     -->   its beginning is fetched
//!  entered(entry, that reader)     -->   a program has it now
//!                                  <--   OpensAhead::close(reader)            or no program came
//! ```

use std::mem;
use std::sync::Arc;

use forerun_core::next_file::Entry;
use forerun_core::{FolderId, Input, ReaderId};

use crate::driver::Driver;
use crate::engine_host::EngineHost;
use crate::engine_state::EngineState;
use crate::foreign::guarded;
use crate::reader::Reader;

/// Opens files ahead and closes them. Called on whatever thread made the engine decide, so it MUST
/// wait for nothing and MUST NOT call the driver: it leaves the work to a thread of its own.
///
/// # Examples
/// Leaves the work to a thread at the other end of a channel.
///
/// ```
/// use std::sync::Mutex;
/// use std::sync::mpsc::Sender;
///
/// use forerun_core::{FolderId, ReaderId};
/// use forerun_io::OpensAhead;
///
/// enum Order {
///     Open(FolderId, Vec<u32>),
///     Close(ReaderId),
/// }
///
/// struct Orders(Mutex<Sender<Order>>);
///
/// impl Orders {
///     fn put(&self, order: Order) {
///         // Without the thread at the other end nothing is opened ahead any more.
///         let _ = self.0.lock().map(|orders| orders.send(order));
///     }
/// }
///
/// impl OpensAhead for Orders {
///     fn open(&self, folder: FolderId, entries: Vec<u32>) {
///         self.put(Order::Open(folder, entries));
///     }
///     fn close(&self, reader: ReaderId) {
///         self.put(Order::Close(reader));
///     }
/// }
/// ```
pub trait OpensAhead: Send + Sync {
    /// These entries of the folder are to be opened; [`Folder::opened_ahead`] MUST be called for each, also
    /// if it cannot be, or [`Driver::not_opened_ahead`] if the folder was dropped. They are fetched in the order of these calls: a host that can tell makes it that of the disk.
    fn open(&self, folder: FolderId, entries: Vec<u32>);
    /// No program comes for the file of this reader: it is to be dropped.
    fn close(&self, reader: ReaderId);
}

/// An order to the host that opens files ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Open(FolderId, u32),
    Close(ReaderId),
}

/// A folder the engine knows. Forgotten when dropped.
pub struct Folder {
    engine_host: Arc<EngineHost>,
    id: FolderId,
}

impl Driver {
    /// Has files opened ahead by this host from now on; the first one counts.
    pub fn open_ahead_with(&self, host: Arc<dyn OpensAhead>) {
        self.engine_host().opens_ahead(host);
    }

    /// Whether it is worth while to tell of folders.
    #[must_use]
    pub fn follows_folders(&self) -> bool {
        let engine_host = self.engine_host();
        engine_host.host().is_some() && engine_host.with(|state| state.follows_folders())
    }

    /// The answer to [`OpensAhead::open`] for an entry of a folder that its host has dropped meanwhile.
    pub fn not_opened_ahead(&self, folder: FolderId, entry: u32) {
        let reader = None;
        self.engine_host().after_deferred(|state| {
            state.feed(Input::Ahead {
                folder,
                entry,
                reader,
            });
        });
    }

    /// A folder was listed. None if no files are opened ahead, or there are too many entries or folders.
    #[must_use]
    pub fn folder(&self, entries: Arc<[Entry]>) -> Option<Folder> {
        let engine_host = self.engine_host().clone();
        if entries.len() > forerun_core::Engine::FOLDER_MAX || engine_host.host().is_none() {
            return None;
        }
        let id = engine_host.after_deferred(|state| state.add_folder(entries))?;
        Some(Folder { engine_host, id })
    }
}

impl Folder {
    /// Its number, by which files of it are asked for.
    #[must_use]
    pub fn id(&self) -> FolderId {
        self.id
    }

    /// It was listed again, and these are its entries now.
    pub fn listed(&self, entries: Arc<[Entry]>) {
        let folder = self.id;
        self.engine_host
            .after_deferred(|state| state.feed(Input::Folder { folder, entries }));
    }

    /// A program opened an entry; `opener` tells programs apart.
    pub fn entered(&self, entry: u32, reader: &Reader, opener: u64) {
        let (folder, reader) = (self.id, reader.id());
        self.engine_host.after_deferred(|state| {
            state.feed(Input::Entered {
                folder,
                entry,
                reader,
                opener,
            });
        });
    }

    /// The answer to [`OpensAhead::open`]: the number of the reader, or that there is none.
    pub fn opened_ahead(&self, entry: u32, reader: Option<ReaderId>) {
        let folder = self.id;
        self.engine_host.after_deferred(|state| {
            state.feed(Input::Ahead {
                folder,
                entry,
                reader,
            });
        });
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.engine_host
            .after_deferred(|state| state.forget_folder(self.id));
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Folder {{ id: {} }}", self.id.0)
    }
}

impl EngineState {
    fn add_folder(&mut self, entries: Arc<[Entry]>) -> Option<FolderId> {
        if !self.follows_folders() || self.folders.next() >= FolderId::LIMIT {
            return None;
        }
        let folder = FolderId(self.folders.insert(()));
        self.feed(Input::Folder { folder, entries });
        Some(folder)
    }

    fn forget_folder(&mut self, folder: FolderId) {
        let entries = Arc::default();
        self.feed(Input::Folder { folder, entries });
        self.folders.remove(folder.0);
    }
}

impl EngineHost {
    /// Hands decided orders to the host. The caller holds no lock.
    pub(crate) fn tell_host(&self, orders: Vec<Order>) {
        let Some(host) = self.host() else { return };
        let mut batch: Option<(FolderId, Vec<u32>)> = None;
        for order in orders {
            if let (Order::Open(folder, entry), Some((of, entries))) = (order, &mut batch)
                && folder == *of
            {
                entries.push(entry);
                continue;
            }
            if let Some((folder, entries)) = batch.take() {
                guarded(|| host.open(folder, entries));
            }
            match order {
                Order::Open(folder, entry) => batch = Some((folder, vec![entry])),
                Order::Close(reader) => {
                    guarded(|| host.close(reader));
                }
            }
        }
        if let Some((folder, entries)) = batch {
            guarded(|| host.open(folder, entries));
        }
    }
}

/// The orders of one holder of the lock.
#[derive(Debug, Default)]
pub(crate) struct Orders(Vec<Order>);

impl Orders {
    pub(crate) fn add(&mut self, order: Order) {
        self.0.push(order);
    }

    pub(crate) fn take(&mut self) -> Vec<Order> {
        mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::sync::Mutex;

    use forerun_core::{Bytes, preset};

    /// Counts its calls, and panics in each.
    #[derive(Default)]
    struct Panics(Mutex<u32>);

    impl Panics {
        fn called(&self) -> ! {
            *self.0.lock() += 1;
            std::panic::resume_unwind(Box::new(()))
        }
    }

    impl OpensAhead for Panics {
        fn open(&self, _: FolderId, _: Vec<u32>) {
            self.called();
        }

        fn close(&self, _: ReaderId) {
            self.called();
        }
    }

    #[test]
    fn a_host_that_panics_gets_every_order_and_harms_no_caller() {
        let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let host = Arc::new(Panics::default());
        driver.open_ahead_with(host.clone());
        let open = |folder, entry| Order::Open(FolderId(folder), entry);
        let orders = [
            open(0, 1),
            open(0, 2),
            open(1, 1),
            Order::Close(ReaderId(0)),
            open(0, 3),
        ];
        driver.engine_host().tell_host(orders.to_vec());
        assert_eq!(*host.0.lock(), 4);
    }
}
