//! A driver in real time, its storage, and the journal it writes.
//!
//! Built by `read` and `bench` from settings and the storage flags. A run that hangs or is killed is the most
//! interesting one, so its journal is written as the run goes on: by the 64 KiB of the driver, and ten times a second
//! by a thread of its own, for which no read waits.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use forerun_core::engine::view::DeviceView;
use forerun_core::{Ledger, Settings};
use forerun_io::emulate::Emulate;
use forerun_io::{Config, Driver};

use crate::args::Storage;
use crate::estimate::{DeviceEstimate, Estimate, device_names};
use crate::failure::Failure;
use crate::files::{RunFile, plain};
use crate::profile_file;

/// How often the lines of the journal are written, at the latest.
const PERIOD: Duration = Duration::from_millis(100);

/// How long the counters of a run wait for its last requests: longer than a slow disk takes for the memory of a run.
pub const LAST: Duration = Duration::from_secs(60);

/// See the [module](self).
#[derive(Debug)]
pub struct Stack {
    driver: Arc<Driver>,
    /// The word for devices without a number.
    others: &'static str,
    /// The thread that writes the journal ends with it.
    _writing: Option<Sender<()>>,
}

impl Stack {
    /// Builds the driver and begins its journal: one from before stays where either cannot be.
    ///
    /// # Errors
    /// A profile that cannot be read, a journal that cannot be begun, a backend there is not.
    pub fn build(settings: Settings, storage: &Storage) -> Result<Self, Failure> {
        let mut config = config(settings, storage)?;
        let path = storage.journal.as_deref();
        let journal = path.map(RunFile::journal).transpose()?;
        if let Some(file) = &journal {
            config.journal = Some(Box::new(file.writer()?));
        }
        let driver = Driver::new(config).map_err(|e| Failure::Usage(e.to_string()))?;
        let driver = Arc::new(driver);
        let begin = |file: RunFile| {
            let writing = writing(Arc::downgrade(&driver))?;
            file.begin()?;
            driver.write_journal();
            Ok::<_, Failure>(writing)
        };
        let writing = journal.map(begin).transpose()?;
        let others = match (driver.is_emulated(), storage.stripe) {
            (true, _) => "emulated",
            (false, Some(_)) => "disk",
            (false, None) => "generated",
        };
        Ok(Self {
            driver,
            others,
            _writing: writing,
        })
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The devices with their costs as of now.
    #[must_use]
    pub fn estimates(&self) -> Vec<DeviceEstimate> {
        let queues = self.driver.queues();
        let numbers: Vec<Option<u64>> = queues.iter().map(|(number, _)| *number).collect();
        let names = device_names(&numbers, self.others).into_iter();
        let estimate = |(device, (number, view)): (String, &(Option<u64>, DeviceView))| {
            let prior = self.driver.prior_source(*number).into();
            let estimate = Estimate::new(&view.profile, view.confidence, prior);
            DeviceEstimate { device, estimate }
        };
        names.zip(&queues).map(estimate).collect()
    }

    /// Ends the run: the counters, and the rest of the journal. Readers must be closed. Requests in flight are waited for
    /// this long at most: a server may never answer one, and of its bytes no program has need.
    ///
    /// # Errors
    /// A journal that could not be written, or counters that do not add up.
    pub fn finish(self, patience: Duration) -> Result<Ledger, Failure> {
        let (ledger, all_ended) = self
            .driver
            .finish_within(patience)
            .map_err(|e| Failure::Run(e.to_string()))?;
        if all_ended {
            ledger
                .check()
                .map_err(|e| Failure::Run(format!("the counters do not add up: {e}")))?;
        }
        Ok(ledger)
    }
}

/// Has the lines of a journal written once in a while, until this is dropped.
fn writing(driver: Weak<Driver>) -> Result<Sender<()>, Failure> {
    let (end, ended) = channel();
    let write = move || {
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout)
            && let Some(driver) = driver.upgrade()
        {
            driver.write_journal();
        }
    };
    let thread = thread::Builder::new().name("forerun-journal".into());
    let begun = thread.spawn(write);
    begun.map_err(|e| Failure::Run(format!("--journal: {}", plain(&e))))?;
    Ok(end)
}

/// The parts of a driver, but for the journal.
///
/// # Errors
/// A profile that cannot be read.
pub fn config(settings: Settings, storage: &Storage) -> Result<Config, Failure> {
    let mut config = Config::new(storage.measured(settings));
    config.backend = storage.backend.unwrap_or_default();
    config.profile = storage
        .profile
        .as_deref()
        .map(profile_file::load)
        .transpose()?;
    config.lab.disks = storage.disks;
    let device = storage
        .emulate
        .map(|emulated| Box::new(emulated.device) as Box<dyn Emulate>);
    config.lab.emulate = device;
    config.lab.striping = storage.striping().map(|array| array.of_driver());
    Ok(config)
}
