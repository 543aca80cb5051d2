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
use crate::tune::folder::{Alone, Folder};
use crate::tune::trying::{Trying, values};

/// Another candidate beside no watch: its read-ahead is that which the kernel has.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a candidate has none")]
pub struct Unwatched<'a> {
    /// The candidate.
    pub side: &'a dyn Side,
    /// Where the lock of the bdi is.
    pub folder: &'a Folder,
    /// The bdi.
    pub bdi: &'a str,
}

impl Side for Unwatched<'_> {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let alone = self.folder.alone(self.bdi)?;
        let run = self.side.begin()?;
        Ok(Box::new(UnwatchedRun { run, _alone: alone }))
    }
}

/// A run while no watch begins. It ends before the lock goes.
struct UnwatchedRun {
    run: Box<dyn Run>,
    _alone: Alone,
}

impl Run for UnwatchedRun {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        self.run.rate(parts, each)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn a_run_is_beside_no_watch_and_lets_one_begin_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::of(&Environment {
            forerun_runtime_dir: Some(dir.path().join("run").into()),
            ..Environment::default()
        });
        let kernel = Kernel {
            folder: dir.path().to_owned(),
        };
        let side = Unwatched {
            side: &kernel,
            folder: &folder,
            bdi: "8:0",
        };
        let run = side.begin().unwrap();
        assert!(folder.taken("8:0").is_some() && folder.alone("8:0").is_err());
        drop(run);
        let watch = folder.alone("8:0").unwrap();
        assert!(side.begin().is_err());
        drop(watch);
        side.begin().unwrap();
    }
}
