//! The lab: `synth` under one method on so many modelled disks, each run made once.
//!
//! The conditions are those of kimbrel96 section 3: an HP 97560 a disk, CSCAN, striping by one
//! block, a cache of 1280 blocks, half a millisecond of processor a fetch. Many claims ask for
//! the same run.

use std::collections::BTreeMap;

use forerun_core::hinted::Setup;

use super::Broken;
use crate::device;
use crate::hinted::host::{self, Host, HostReport};
use crate::hinted::synth::{CACHE_BLOCKS, synth};

/// The paper's disk and scheduler.
pub const DISK: &str = "cscan:hp97560";

/// The seed of the compute times, which add up to 0.3 s more than the paper's 99.9 s.
pub const SEED: u64 = 1;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Lab {
    runs: BTreeMap<(String, u16), HostReport>,
}

impl Lab {
    /// The run of this method, with its parameters, on so many disks.
    ///
    /// # Errors
    /// A method or a device there is not, or a run that came to no end.
    pub fn synth(&mut self, policy: &str, disks: u16) -> Result<&HostReport, Broken> {
        let key = (policy.to_owned(), disks);
        if !self.runs.contains_key(&key) {
            let report = run(policy, disks)?;
            self.runs.insert(key.clone(), report);
        }
        self.runs.get(&key).ok_or(Broken::Books)
    }
}

fn run(policy: &str, disks: u16) -> Result<HostReport, Broken> {
    let setup = Setup::of(policy, disks, CACHE_BLOCKS)?;
    let devices = (0..disks).map(|_| device::parse(DISK));
    let mut devices = devices.collect::<Result<Vec<_>, _>>()?;
    let reads = synth(disks, SEED);
    let report = host::run(&setup, &Host::default(), &reads, &mut devices)?;
    if report.adds_up() {
        Ok(report)
    } else {
        Err(Broken::Books)
    }
}
