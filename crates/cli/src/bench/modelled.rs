//! A preset in virtual time: the same plan, in the simulator, on the emulated devices.
//!
//! Called by `commands::bench` for `--clock virtual`. The device is that of `--emulate`, the same as in real
//! time, or `forerun-sim`'s switching device with a measured `--profile` as a whole; without
//! either, the default device. With both, the device has the one's costs and the engine is given
//! the other's, as in real time. The driver is free and copying takes no time: a run in real time
//! differs by the machine, not by the decisions.

use std::fmt;
use std::io::{BufWriter, Write};
use std::path::Path;

use forerun_core::{Nanos, Profile, Settings};
use forerun_sim::device::switching::Switching;
use forerun_sim::device::{Completion, Device, Request, Usage};
use forerun_sim::workload::Workload;
use forerun_sim::world::Striping;
use forerun_sim::{DeviceReport, Report, Scene, Text, WorldError};
use indicatif::ProgressBar;

use super::plan::Plan;
use super::{DeviceUse, Measured, SourceCache};
use crate::args::Storage;
use crate::estimate::{Basis, DeviceEstimate, Estimate, name_nth};
use crate::failure::Failure;
use crate::files::{RunFile, RunWriter};
use crate::profile_file;

/// Runs the plan once.
///
/// # Errors
/// A journal that cannot be written, or an engine that breaks a rule.
pub fn run(plan: &Plan, settings: &Settings, bar: &ProgressBar) -> Result<Measured, Failure> {
    let workload = plan.workload()?;
    let announced = plan.announced(&*workload);
    let workload = announced
        .as_ref()
        .map_or(&*workload, |a| a as &dyn Workload);
    let disk = || Believed::new(&plan.storage);
    let disks = (1..plan.storage.disks).map(|_| Ok(Box::new(disk()?) as Box<dyn Device>));
    let settings = plan.storage.measured(settings.clone());
    let mut scene = Scene::new(settings, disk()?, workload);
    if let Some(array) = plan.storage.striping() {
        let extra = (1..array.disks()).map(|_| Ok(Box::new(disk()?) as Box<dyn Device>));
        let extra: Vec<_> = extra.collect::<Result<_, Failure>>()?;
        scene.devices.extend(extra);
        let (layout, fragments) = (array.layout(), None);
        scene.striping = Some(Striping { layout, fragments });
    }
    scene
        .devices
        .extend(disks.collect::<Result<Vec<_>, Failure>>()?);
    let report = match &plan.storage.journal {
        None => scene.run(&mut ()).map_err(broken_rule)?,
        Some(path) => recorded(scene, path)?,
    };
    bar.inc(report.bytes.0);
    Ok(Measured {
        elapsed: report.elapsed,
        readers: report.readers.iter().map(|reader| reader.elapsed).collect(),
        bytes: report.bytes.0,
        is_saturated: report.is_growing,
        device: Some(DeviceUse {
            requests: report.device_requests(),
            bytes: report.device_bytes().0,
        }),
        emulated: None,
        estimate: Some(estimates(plan, &report)),
        responses: report.responses,
        ledger: Some(report.ledger),
        block_bytes: report.block_bytes,
        source_cache: SourceCache::None,
    })
}

/// The costs of the devices as the engine took them to be in the end.
fn estimates(plan: &Plan, report: &Report) -> Vec<DeviceEstimate> {
    let storage = &plan.storage;
    let prior = match storage.profile.is_some() || storage.emulate.is_some() {
        true => Basis::Told,
        false => Basis::Assumed,
    };
    let devices = report.devices.iter().enumerate();
    let estimate = |(nth, device): (usize, &DeviceReport)| DeviceEstimate {
        device: name_nth("modelled", nth, report.devices.len()),
        estimate: Estimate::new(&device.estimate, device.confidence, prior),
    };
    devices.map(estimate).collect()
}

/// Runs a scene with its journal written, also if the run ends in a broken rule.
fn recorded(scene: Scene<'_>, path: &Path) -> Result<Report, Failure> {
    let file = RunFile::journal(path)?;
    file.begin()?;
    let mut text = Text::new(Utf8(BufWriter::new(file.writer()?)));
    let report = scene.run(&mut text);
    let flush = |Utf8(mut writer): Utf8| writer.flush().map_err(|_| fmt::Error);
    let written = text.finish().and_then(flush);
    written.map_err(|_| Failure::broken(path, "the journal cannot be written"))?;
    report.map_err(broken_rule)
}

fn broken_rule(error: WorldError) -> Failure {
    Failure::Run(format!("simulation: {error}"))
}

/// A file as a writer of text.
struct Utf8(BufWriter<RunWriter>);

impl fmt::Write for Utf8 {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// A device with costs other than those given to the engine.
#[derive(Debug)]
struct Believed {
    device: Box<dyn Device>,
    profile: Profile,
}

impl Believed {
    fn new(storage: &Storage) -> Result<Self, Failure> {
        let measured = storage
            .profile
            .as_deref()
            .map(profile_file::load)
            .transpose()?;
        let emulated = storage.emulate.map(|emulated| emulated.device);
        let costs = emulated.map(|device| device.profile());
        let costs = costs.or_else(|| measured.clone()).unwrap_or_default();
        let device = match emulated {
            Some(device) => device.device(),
            None => Box::new(Switching::new(costs.clone())),
        };
        Ok(Self {
            device,
            profile: measured.unwrap_or(costs),
        })
    }
}

impl Device for Believed {
    fn profile(&self) -> Profile {
        self.profile.clone()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.device.submit(now, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }

    fn usage(&self) -> Usage {
        self.device.usage()
    }

    fn servers(&self) -> u32 {
        self.device.servers()
    }
}
