//! A preset in virtual time: the same plan, in the simulator, on the emulated device.
//!
//! Called by `commands::bench` for `--clock virtual`. The device is `forerun-sim`'s switching
//! device with the costs of `--emulate`, or with a measured `--profile` as a whole; without
//! either, the device nobody measured. The driver is free and copying takes no time: what differs
//! from a run in real time is the machine, not the decisions.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};

use forerun_core::{Profile, Settings};
use forerun_sim::device::switching::Switching;
use forerun_sim::{Record, Scene, Text};
use indicatif::ProgressBar;

use super::plan::Plan;
use super::{DeviceUse, Measured};
use crate::args::Storage;
use crate::failure::Failure;
use crate::files::NewFile;
use crate::profile_file;

/// Runs the plan once.
///
/// # Errors
/// A journal that cannot be written, or an engine that breaks a rule.
pub fn run(plan: &Plan, settings: &Settings, bar: &ProgressBar) -> Result<Measured, Failure> {
    let workload = plan.workload()?;
    let device = Switching::new(profile(&plan.storage)?);
    let scene = Scene::new(settings.clone(), device, &workload);
    let report = match &plan.storage.journal {
        None => play(scene, &mut ())?,
        Some(path) => {
            let file = NewFile::create(path)?;
            let mut text = Text::new(Utf8(file.writer()?));
            let report = play(scene, &mut text)?;
            let written = text
                .finish()
                .and_then(|Utf8(mut writer)| writer.flush().map_err(|_| fmt::Error));
            written.map_err(|_| Failure::broken(path, "the journal cannot be written"))?;
            file.finish()?;
            report
        }
    };
    bar.inc(report.bytes.0);
    Ok(Measured {
        elapsed: report.elapsed,
        readers: report.readers.iter().map(|reader| reader.elapsed).collect(),
        bytes: report.bytes.0,
        device: Some(DeviceUse {
            requests: report.device_requests(),
            bytes: report.device_bytes().0,
        }),
        ledger: Some(report.ledger),
        block_bytes: report.block_bytes,
    })
}

fn play(scene: Scene<'_>, record: &mut dyn Record) -> Result<forerun_sim::Report, Failure> {
    scene
        .run(record)
        .map_err(|e| Failure::Run(format!("simulation: {e}")))
}

/// A file as a writer of text.
struct Utf8(BufWriter<File>);

impl fmt::Write for Utf8 {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

fn profile(storage: &Storage) -> Result<Profile, Failure> {
    match (&storage.emulate, &storage.profile) {
        (Some(emulation), _) => Ok(emulation.profile()),
        (None, Some(path)) => profile_file::load(path),
        (None, None) => Ok(Profile::default()),
    }
}
