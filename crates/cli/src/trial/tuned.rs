//! The kernel with its best constant setting, as a candidate of a trial.
//!
//! Before a run the setting is made, after it the one from before is put back, so that the other candidates read with the
//! kernel as it is. A guardian puts it back if the trial is killed: [`crate::tune::trying`].

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::files::Part;
use super::side::{Kernel, Run, Side};
use crate::failure::Failure;
use crate::tune::Setting;
use crate::tune::devices::Devices;
use crate::tune::trying::{Trying, values};

/// See the [module](self).
#[derive(Debug)]
pub struct Tuned {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The devices below it.
    pub devices: Rc<Devices>,
    /// The setting.
    pub setting: Setting,
    /// The guardian that puts it back.
    pub trying: Rc<RefCell<Trying>>,
}

impl Side for Tuned {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let run = TunedRun {
            kernel: Kernel {
                folder: self.folder.clone(),
            },
            devices: self.devices.clone(),
            trying: self.trying.clone(),
        };
        run.trying
            .borrow_mut()
            .set(&values(&self.devices, &self.setting))?;
        Ok(Box::new(run))
    }
}

/// A run while the setting is made.
struct TunedRun {
    kernel: Kernel,
    devices: Rc<Devices>,
    trying: Rc<RefCell<Trying>>,
}

impl Run for TunedRun {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        self.kernel.rate(parts, each)
    }
}

impl Drop for TunedRun {
    fn drop(&mut self) {
        // Requests under way would slow the next candidate.
        self.devices.wait_until_idle(&|| false);
        if let Err(failure) = self.trying.borrow_mut().pause() {
            tracing::error!("{failure}");
        }
    }
}
