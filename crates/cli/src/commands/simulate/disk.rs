//! The disk that the flags of a simulation name: a device by name, one from a user's file, or the theory.

use forerun_sim::device::{DeviceError, from_toml};
use forerun_sim::simulate::disk::{Disk, DiskError};

use super::with_nearest;
use crate::args::Simulate;
use crate::failure::Failure;
use crate::files;

/// A description of a device is a page; a file longer than this is something else.
const MODEL_BYTES_MAX: u64 = 1 << 20;

/// From the arguments.
///
/// # Errors
/// A device there is not, a file that describes none, or a scheduler that has no meaning there.
pub(super) fn disk(args: &Simulate) -> Result<Disk, Failure> {
    let is_unit = args.device_file.is_none() && args.device == "unit";
    let flags = [
        ("--warm", !args.warm.is_empty()),
        ("--fetch-units", args.fetch_units.is_some()),
    ];
    if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given && !is_unit) {
        return Err(Failure::Usage(format!("{flag}: is for --device unit")));
    }
    let scheduler = args.scheduler.as_deref();
    let disk = match &args.device_file {
        Some(path) => {
            let text = files::read_text(path, MODEL_BYTES_MAX)?;
            let model = from_toml(&text).map_err(|e| Failure::unusable(path, e))?;
            Disk::of_model(model, &path.display().to_string(), scheduler)
        }
        None => Disk::named(&args.device, scheduler),
    };
    disk.map_err(|e| match e {
        DiskError::Device(text, DeviceError::Choice(error)) => {
            Failure::Usage(format!("--device {text}: {}", with_nearest(&error)))
        }
        DiskError::Device(text, error) => Failure::Usage(format!("--device {text}: {error}")),
        DiskError::Scheduler(name, error) => Failure::Usage(format!("--scheduler {name}: {error}")),
        DiskError::Unit => {
            let why = "--device unit serves in the order in which fetches begin";
            Failure::Usage(format!("--scheduler: {why}"))
        }
    })
}
