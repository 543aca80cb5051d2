//! What stands in the array of a simulation: a device by name, one from a user's file, or the theory.
//!
//! Checked once; every run builds its own.

use forerun_sim::device::{self, Device, Model, from_toml};
use forerun_sim::scheduler::{self, Queued};

use crate::args::Simulate;
use crate::failure::Failure;
use crate::files;

/// A description of a device is a page; a file longer than this is something else.
const MODEL_BYTES_MAX: u64 = 1 << 20;

/// What stands in an array.
pub(super) enum Disk {
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
    /// A device there is not, or a file that describes none.
    pub(super) fn new(args: &Simulate) -> Result<Self, Failure> {
        if let Some(path) = &args.device_file {
            let text = files::read_text(path, MODEL_BYTES_MAX)?;
            let model = from_toml(&text).map_err(|e| Failure::unusable(path, e))?;
            return Ok(Self::Model(Box::new(model), path.display().to_string()));
        }
        if args.device == "unit" {
            return Ok(Self::Unit);
        }
        if !args.warm.is_empty() {
            return Err(Failure::Usage("--warm: is for --device unit".to_owned()));
        }
        match device::parse(&args.device) {
            Ok(_) => Ok(Self::Named(args.device.clone())),
            Err(e) => Err(Failure::Usage(format!("--device {}: {e}", args.device))),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Unit => "unit",
            Self::Named(name) | Self::Model(_, name) => name,
        }
    }

    /// A new one, with this scheduler in front.
    ///
    /// # Errors
    /// None but for the theory, which has no devices.
    pub(super) fn build(&self, scheduler: &str) -> Result<Box<dyn Device>, Failure> {
        let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
        let one = match self {
            Self::Unit => return Err(usage(&"unit is no disk")),
            Self::Named(name) => device::parse(name).map_err(|e| usage(&e))?,
            Self::Model(model, _) => model.build(),
        };
        if scheduler == "fcfs" || one.servers() > 1 {
            // A scheduler gives one request at a time: a device of many servers would lose them.
            return Ok(one);
        }
        let scheduler = scheduler::parse(scheduler).map_err(|e| usage(&e))?;
        Ok(Box::new(Queued::new(scheduler, one)))
    }
}
