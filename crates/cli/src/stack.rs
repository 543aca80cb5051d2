//! A driver in real time, its storage, and the journal it writes.
//!
//! Built by `read` and `bench` from settings and the storage flags. The journal gets its name
//! when the run has ended, also when it ended in a failure: that run is the most interesting.

use forerun_core::engine::view::DeviceView;
use forerun_core::spec::Choice;
use forerun_core::{Ledger, Settings};
use forerun_io::emulate::Emulate;
use forerun_io::{Config, Driver};

use crate::args::Storage;
use crate::estimate::{DeviceEstimate, Estimate, device_name, name_nth};
use crate::failure::Failure;
use crate::files::NewFile;
use crate::profile_file;

/// See the [module](self).
#[derive(Debug)]
pub struct Stack {
    driver: Driver,
    journal: Option<NewFile>,
}

impl Stack {
    /// Builds the driver.
    ///
    /// # Errors
    /// A profile that cannot be read, a journal that cannot be begun, a backend there is not.
    pub fn build(settings: Settings, storage: &Storage) -> Result<Self, Failure> {
        let mut config = config(settings, storage)?;
        let journal = storage
            .journal
            .as_deref()
            .map(NewFile::journal)
            .transpose()?;
        if let Some(file) = &journal {
            config.journal = Some(Box::new(file.writer()?));
        }
        let driver = Driver::new(config).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(Self { driver, journal })
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The devices with their costs as of now.
    #[must_use]
    pub fn estimates(&self) -> Vec<DeviceEstimate> {
        let word = match self.driver.is_emulated() {
            true => "emulated",
            false => "generated",
        };
        let queues = self.driver.queues();
        let unnumbered = queues.iter().filter(|(number, _)| number.is_none()).count();
        let estimate = |(nth, (number, view)): (usize, &(Option<u64>, DeviceView))| {
            let name = || name_nth(word, nth, unnumbered);
            let prior = self.driver.prior_source(*number).into();
            DeviceEstimate {
                device: number.map_or_else(name, |number| device_name(Some(number))),
                estimate: Estimate::new(&view.profile, view.confidence, prior),
            }
        };
        queues.iter().enumerate().map(estimate).collect()
    }

    /// Ends the run: the counters, and the journal under its name. Readers must be closed.
    ///
    /// # Errors
    /// A journal that could not be written, or counters that do not add up.
    pub fn finish(self) -> Result<Ledger, Failure> {
        let ledger = self
            .driver
            .finish()
            .map_err(|e| Failure::Run(e.to_string()))?;
        self.journal.map_or(Ok(()), NewFile::finish)?;
        ledger
            .check()
            .map_err(|e| Failure::Run(format!("the counters do not add up: {e}")))?;
        Ok(ledger)
    }
}

/// The parts of a driver, but for the journal.
///
/// # Errors
/// A profile that cannot be read.
pub fn config(settings: Settings, storage: &Storage) -> Result<Config, Failure> {
    let mut config = Config::new(settings);
    config.backend = storage.backend.unwrap_or_default();
    config.profile = storage
        .profile
        .as_deref()
        .map(profile_file::load)
        .transpose()?;
    if storage.profile_fixed {
        config.settings.measure = Choice::of(&forerun_baselines::measure::given::METHOD);
    }
    config.lab.disks = storage.disks;
    let device = storage
        .emulate
        .map(|emulated| Box::new(emulated.device) as Box<dyn Emulate>);
    config.lab.emulate = device;
    config.lab.striping = storage.striping().map(|array| array.of_driver());
    Ok(config)
}
