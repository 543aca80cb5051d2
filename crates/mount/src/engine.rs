//! The engine of a mount until the mount ends: its driver, its reports and its limits.
//!
//! Held by the [file system](super::mounted), which opens files through the driver; reports, metrics,
//! announcements and the control socket ask here. [`take`](EngineOfMount::take) ends it: later
//! calls get `None` or `ESHUTDOWN`, and an open that is under way may hold the driver for a while.
//! No node, name or attribute is known here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use forerun_core::engine::view::{DeviceView, StreamView};
use forerun_core::{Bytes, FolderId, Ledger};
use forerun_io::{DeviceUse, Driver, Error as DriverError, Reader};

use crate::estimate::{Estimate, device_names};
use crate::mounted::Refused;

/// Streams, and devices with their numbers in the source's system.
pub type UnderWay = (Vec<StreamView>, Vec<(Option<u64>, DeviceView)>);

/// See the [module](self).
#[derive(Debug)]
pub struct EngineOfMount {
    /// None once the mount has ended.
    driver: RwLock<Option<Arc<Driver>>>,
    /// Limit of bytes awaited at once.
    awaited_max: AtomicU64,
}

impl EngineOfMount {
    /// Of this driver.
    #[must_use]
    pub fn new(driver: Driver) -> Self {
        Self {
            awaited_max: awaited_max(&driver).into(),
            driver: Some(Arc::new(driver)).into(),
        }
    }

    /// The driver, until the mount ends.
    pub fn driver(&self) -> Option<Arc<Driver>> {
        let driver = self.driver.read().unwrap_or_else(PoisonError::into_inner);
        driver.clone()
    }

    /// The counters, and those of the emulated device; none once the mount has ended.
    #[must_use]
    pub fn counters(&self) -> Option<(Ledger, Option<DeviceUse>)> {
        let driver = self.driver()?;
        Some((driver.ledger(), driver.device_use()))
    }

    /// Streams, and devices with their queues; none once the mount has ended.
    #[must_use]
    pub fn under_way(&self) -> Option<UnderWay> {
        let driver = self.driver()?;
        Some((driver.streams(), driver.queues()))
    }

    /// Reads that wait for an answer.
    #[must_use]
    pub fn reads_waiting(&self) -> usize {
        let driver = self.driver();
        driver.map_or(0, |driver| driver.reads_waiting())
    }

    /// A device's costs as the engine takes them to be.
    #[must_use]
    pub fn estimate(&self, (number, view): &(Option<u64>, DeviceView)) -> Estimate {
        let prior = self
            .driver()
            .map(|driver| driver.prior_source(*number).into());
        Estimate::new(&view.profile, view.confidence, prior.unwrap_or_default())
    }

    /// The names of devices.
    #[must_use]
    pub fn device_names(&self, devices: &[(Option<u64>, DeviceView)]) -> Vec<String> {
        let is_emulated = self.driver().is_some_and(|driver| driver.is_emulated());
        // Without one, of an array that the user described.
        let other = if is_emulated { "emulated" } else { "disk" };
        let numbers: Vec<Option<u64>> = devices.iter().map(|(number, _)| *number).collect();
        device_names(&numbers, other)
    }

    /// No file is open ahead for an entry that was asked for: its folder is not known any more.
    pub fn not_opened_ahead(&self, folder: FolderId, entry: u32) {
        if let Some(driver) = self.driver() {
            driver.not_opened_ahead(folder, entry);
        }
    }

    /// Announces reads: reader, offset and length, in the order in which they come. How many of
    /// them there was room for.
    ///
    /// # Errors
    /// The mount has ended.
    pub fn announce<'a>(
        &self,
        order: impl IntoIterator<Item = (&'a Reader, u64, u64)>,
    ) -> Result<usize, Refused> {
        let driver = self.driver().ok_or(Refused::Ended)?;
        match driver.hint(order) {
            Ok(taken) => Ok(taken),
            // Not even one; how many fit depends on their lengths, so the number is a guess.
            Err(DriverError::HintsFull { .. }) => Ok(0),
            Err(_) => Err(Refused::Ended),
        }
    }

    /// The error that ended the writing of the journal, if one did.
    #[must_use]
    pub fn journal_error(&self) -> Option<std::io::Error> {
        self.driver()?.journal_error()
    }

    /// The most memory the engine uses; none once the mount has ended.
    #[must_use]
    pub fn memory_limit(&self) -> Option<Bytes> {
        self.driver().map(|driver| driver.memory_limit())
    }

    /// Limits the memory the engine uses.
    ///
    /// # Errors
    /// Out of range, or the mount has ended; in words.
    pub fn limit_memory(&self, memory: Bytes) -> Result<(), String> {
        let driver = self.driver().ok_or("the mount has ended")?;
        driver.limit_memory(memory).map_err(|e| e.to_string())?;
        let most = awaited_max(&driver);
        self.awaited_max.store(most, Ordering::Relaxed);
        Ok(())
    }

    /// Limit of bytes awaited at once, asked for often.
    #[must_use]
    pub fn awaited_max(&self) -> u64 {
        self.awaited_max.load(Ordering::Relaxed)
    }

    /// Takes the driver out, so that it can be ended. Nothing is opened from then on; an open that
    /// is under way may hold it for a while.
    #[must_use]
    pub fn take(&self) -> Option<Arc<Driver>> {
        self.driver
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// Limit of bytes awaited at once.
fn awaited_max(driver: &Driver) -> u64 {
    driver.awaited_max().map_or(u64::MAX, |bytes| bytes.0)
}
