//! The members of a simulation's array: a device by name, one from a user's file, or the theory;
//! and the order in which each disk gets waiting requests.
//!
//! Checked once; every run builds its own. Unless one is named, a disk gets `cscan`, and a device
//! that works on several requests at once gets them as they come, which a row calls `fcfs`.

use forerun_sim::device::{self, Device, Model, from_toml};
use forerun_sim::scheduled::{BehindError, NONE, behind, model_behind, own};

use crate::args::Simulate;
use crate::failure::Failure;
use crate::files;

/// A description of a device is a page; a file longer than this is something else.
const MODEL_BYTES_MAX: u64 = 1 << 20;

/// The scheduler of operating systems of the time (Kimbrel et al. 1996, section 3.1).
const USUAL: &str = "cscan";

/// See the [module](self).
pub(super) struct Disk {
    what: What,
    scheduler: String,
    /// The device has its scheduler already, or none.
    is_complete: bool,
}

enum What {
    /// The theory.
    Unit,
    /// A device of the list.
    Named(String),
    /// A user's.
    Model(Box<Model>, String),
}

impl Disk {
    /// From the arguments.
    ///
    /// # Errors
    /// A device there is not, a file that describes none, or a scheduler that has no meaning there.
    pub(super) fn new(args: &Simulate) -> Result<Self, Failure> {
        let what = What::new(args)?;
        let own = match &what {
            What::Named(text) => own(text).map(str::to_owned),
            What::Unit | What::Model(..) => None,
        };
        let (wanted, is_complete) = match (&args.scheduler, own) {
            (None, Some(own)) => (own, true),
            (wanted, _) => (wanted.as_deref().unwrap_or(USUAL).to_owned(), false),
        };
        let mut disk = Self {
            what,
            scheduler: wanted,
            is_complete,
        };
        if matches!(disk.what, What::Unit) {
            if args.scheduler.as_deref().is_some_and(|name| name != NONE) {
                let why = "--scheduler: --device unit serves in the order in which fetches begin";
                return Err(Failure::Usage(why.to_owned()));
            }
            NONE.clone_into(&mut disk.scheduler);
            return Ok(disk);
        }
        match disk.try_build() {
            Ok(_) => Ok(disk),
            Err(BehindError::Servers(..)) if args.scheduler.is_none() => Ok(Self {
                scheduler: NONE.to_owned(),
                ..disk
            }),
            Err(e) => {
                let name = &disk.scheduler;
                Err(Failure::Usage(format!("--scheduler {name}: {e}")))
            }
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        match &self.what {
            What::Unit => "unit",
            What::Named(name) | What::Model(_, name) => name,
        }
    }

    /// Its model, if it is one alone: a user's, or a built-in one.
    pub(super) fn model(&self) -> Option<Model> {
        match &self.what {
            What::Model(model, _) => Some((**model).clone()),
            What::Named(name) => Model::built_in(name),
            What::Unit => None,
        }
    }

    /// The order in which it gets waiting requests.
    pub(super) fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// Whether it is the theory.
    pub(super) fn is_unit(&self) -> bool {
        matches!(self.what, What::Unit)
    }

    /// A new one, with its scheduler in front.
    ///
    /// # Errors
    /// None but for the theory, which has no devices.
    pub(super) fn build(&self) -> Result<Box<dyn Device>, Failure> {
        if self.is_unit() {
            return Err(Failure::Usage("unit is no disk".to_owned()));
        }
        self.try_build().map_err(|e| Failure::Usage(e.to_string()))
    }

    fn try_build(&self) -> Result<Box<dyn Device>, BehindError> {
        match &self.what {
            What::Named(text) if self.is_complete => Ok(device::parse(text)?),
            What::Named(text) => behind(text, &self.scheduler),
            What::Model(model, name) => model_behind(name, model, &self.scheduler),
            What::Unit => behind("instant", NONE),
        }
    }
}

impl What {
    fn new(args: &Simulate) -> Result<Self, Failure> {
        let is_unit = args.device_file.is_none() && args.device == "unit";
        let flags = [
            ("--warm", !args.warm.is_empty()),
            ("--fetch-units", args.fetch_units.is_some()),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given && !is_unit) {
            return Err(Failure::Usage(format!("{flag}: is for --device unit")));
        }
        if let Some(path) = &args.device_file {
            let text = files::read_text(path, MODEL_BYTES_MAX)?;
            let model = from_toml(&text).map_err(|e| Failure::unusable(path, e))?;
            return Ok(Self::Model(Box::new(model), path.display().to_string()));
        }
        if is_unit {
            return Ok(Self::Unit);
        }
        match device::parse(&args.device) {
            Ok(_) => Ok(Self::Named(args.device.clone())),
            Err(e) => Err(Failure::Usage(format!("--device {}: {e}", args.device))),
        }
    }
}
