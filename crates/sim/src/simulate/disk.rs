//! The members of a simulation's array: a device by name, one of a model, or the theory; and the order in which each
//! disk gets waiting requests.
//!
//! Checked once; every run builds its own. Unless a scheduler is named, a disk gets `cscan`, and a device
//! that works on several requests at once gets them as they come, which is called `fcfs`.

use core::fmt;

use crate::device::{self, Device, DeviceError, Model};
use crate::scheduled::{BehindError, NONE, behind, model_behind, own};

/// The scheduler of operating systems of the time (Kimbrel et al. 1996, section 3.1).
const USUAL: &str = "cscan";

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Disk {
    kind: Kind,
    scheduler: String,
    /// The device has its scheduler already, or none.
    is_complete: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The theory.
    Unit,
    /// A device of the list.
    Named(String),
    /// A model, with its name.
    Model(Box<Model>, String),
}

/// Why there is no such disk.
#[derive(Clone, PartialEq, Debug)]
pub enum DiskError {
    /// There is no device of this name.
    Device(String, DeviceError),
    /// A scheduler that there is not, or that has no meaning there.
    Scheduler(String, BehindError),
    /// The theory serves in the order in which fetches begin.
    Unit,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(text, error) => write!(f, "device {text}: {error}"),
            Self::Scheduler(name, error) => write!(f, "scheduler {name}: {error}"),
            Self::Unit => {
                f.write_str("scheduler: device unit serves in the order in which fetches begin")
            }
        }
    }
}

impl core::error::Error for DiskError {}

impl Disk {
    /// The device of this name, `unit` for the theory.
    ///
    /// # Errors
    /// See [`DiskError`].
    pub fn named(text: &str, scheduler: Option<&str>) -> Result<Self, DiskError> {
        if text == "unit" {
            return match scheduler.filter(|name| *name != NONE) {
                None => Ok(Self {
                    kind: Kind::Unit,
                    scheduler: NONE.to_owned(),
                    is_complete: true,
                }),
                Some(_) => Err(DiskError::Unit),
            };
        }
        device::parse(text).map_err(|e| DiskError::Device(text.to_owned(), e))?;
        let own = own(text).filter(|_| scheduler.is_none());
        match own {
            Some(own) => Ok(Self {
                kind: Kind::Named(text.to_owned()),
                scheduler: own.to_owned(),
                is_complete: true,
            }),
            None => Self::behind(Kind::Named(text.to_owned()), scheduler),
        }
    }

    /// A device of this model and name.
    ///
    /// # Errors
    /// See [`DiskError`].
    pub fn of_model(model: Model, name: &str, scheduler: Option<&str>) -> Result<Self, DiskError> {
        Self::behind(Kind::Model(Box::new(model), name.to_owned()), scheduler)
    }

    fn behind(kind: Kind, scheduler: Option<&str>) -> Result<Self, DiskError> {
        let disk = Self {
            kind,
            scheduler: scheduler.unwrap_or(USUAL).to_owned(),
            is_complete: false,
        };
        match disk.build() {
            Ok(_) => Ok(disk),
            Err(BehindError::Servers(..)) if scheduler.is_none() => Ok(Self {
                scheduler: NONE.to_owned(),
                ..disk
            }),
            Err(e) => Err(DiskError::Scheduler(disk.scheduler, e)),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Unit => "unit",
            Kind::Named(name) | Kind::Model(_, name) => name,
        }
    }

    /// Its model, if it is one alone: a user's, or a built-in one.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        match &self.kind {
            Kind::Model(model, _) => Some((**model).clone()),
            Kind::Named(name) => Model::built_in(name),
            Kind::Unit => None,
        }
    }

    /// The order in which it gets waiting requests.
    #[must_use]
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// Whether it is the theory.
    #[must_use]
    pub fn is_unit(&self) -> bool {
        matches!(self.kind, Kind::Unit)
    }

    /// A new device, with its scheduler in front; of the theory one that takes no time.
    ///
    /// # Errors
    /// None, as it was built once when it was checked.
    pub fn build(&self) -> Result<Box<dyn Device>, BehindError> {
        match &self.kind {
            Kind::Named(text) if self.is_complete => Ok(device::parse(text)?),
            Kind::Named(text) => behind(text, &self.scheduler),
            Kind::Model(model, name) => model_behind(name, model, &self.scheduler),
            Kind::Unit => behind("instant", NONE),
        }
    }
}
