//! `forerun tune`: the best constant read-ahead and scheduler of a device, and setting them.
//!
//! Finds the devices below a path, measures their costs, simulates Linux readahead with each limit, tries settings for
//! real if asked to, and prints the advised one with its reasons. The parts are in [`crate::tune`].

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use forerun_core::Bytes;
use forerun_surface::undo::knob::Knob;

use crate::args::{ListFormat, Tune};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::files::plain;
use crate::mount::ending;
use crate::progress;
use crate::trial::busy;
use crate::trial::files::Chosen;
use crate::tune::advice::{self, Grid};
use crate::tune::applied::{self, Applied};
use crate::tune::costs::Costs;
use crate::tune::devices::Devices;
use crate::tune::folder::{Alone, Folder};
use crate::tune::measured::Plan;
use crate::tune::report::{Report, undone};
use crate::tune::trying::{self, Trying, values};
use crate::tune::{Setting, memory, simulated};

/// Runs the command.
///
/// # Errors
/// A path whose device cannot be tuned, a right that is lacking, a run that failed.
pub fn run(args: &Tune, environment: &Environment, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = Folder::of(environment);
    clear_what_was_left(&folder);
    let devices = Devices::of(&args.path)?;
    if args.undo {
        let knobs = all_knobs(&devices);
        check_writable("--undo", &knobs)?;
        let undone = undone(&applied::undo(&folder, &devices.bdi, &knobs)?, args.format);
        return undone.and_then(|text| print(out, &text));
    }
    let mut tuned = Tuning::new(args, &devices, &folder)?;
    let costs = match &args.profile {
        Some(path) => Costs::load(path)?,
        None => Costs::measure(&args.path, &devices)?,
    };
    let memory = args.memory.unwrap_or_else(memory::available);
    let simulated = simulate(&costs, &tuned.present, &tuned.readers, memory)?;
    if args.format == ListFormat::Table && args.measure.is_some() {
        print(out, &busy::warning().unwrap_or_default())?;
    }
    let measured = tuned.measure()?;
    // To apply takes the lock of the bdi anew.
    tuned.trial = None;
    let grid = measured.as_ref().unwrap_or(&simulated);
    let advised = grid.settings[grid.advised(&tuned.present)].clone();
    let applied = match args.apply {
        true => apply(&folder, &devices, &advised)?,
        false => Vec::new(),
    };
    let report = Report {
        path: &args.path,
        file_system: devices.file_system.as_deref(),
        devices: &devices,
        costs: &costs,
        memory,
        present: &tuned.present,
        advised: &advised,
        simulated: &simulated,
        measured: measured.as_ref(),
        applied: &applied,
    };
    let text = match args.format {
        ListFormat::Table => report.text(),
        ListFormat::Json => format!("{:#}\n", report.json()),
    };
    print(out, &text)
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// The present setting.
#[must_use]
pub fn present(devices: &Devices) -> Setting {
    Setting {
        read_ahead_kib: devices.read_ahead_kib,
        scheduler: devices.scheduler(),
    }
}

/// The simulated rates of the usual values and the present one.
///
/// # Errors
/// A memory that cannot be.
pub fn simulate(
    costs: &Costs,
    present: &Setting,
    readers: &[u32],
    memory: Bytes,
) -> Result<Grid, Failure> {
    let settings = advice::settings(present, &[]);
    let bar = progress::steps("simulating", (settings.len() * readers.len()) as u64);
    let grid = simulated::grid(costs, settings, readers.to_vec(), memory, &|| bar.inc(1));
    bar.finish_and_clear();
    grid
}

/// The sides that are compared, and how.
struct Tuning<'a> {
    devices: &'a Devices,
    folder: &'a Folder,
    present: Setting,
    readers: Vec<u32>,
    /// The real runs that are wanted.
    trial: Option<(Chosen, &'a Tune, Alone)>,
}

impl<'a> Tuning<'a> {
    /// Checks the arguments before minutes of measuring.
    fn new(args: &'a Tune, devices: &'a Devices, folder: &'a Folder) -> Result<Self, Failure> {
        let mut readers = args.readers.clone();
        readers.sort_unstable();
        readers.dedup();
        let mut tuned = Self {
            devices,
            folder,
            present: present(devices),
            readers,
            trial: None,
        };
        let knobs = all_knobs(devices);
        if args.apply {
            check_writable("--apply", &knobs)?;
            drop(folder.alone(&devices.bdi)?);
        }
        if let Some(seconds) = args.measure {
            check_writable("--measure", &knobs)?;
            let chosen = Chosen::of(&args.path)?;
            if let Some(most) = tuned.readers.iter().find(|n| **n > chosen.readers_max()) {
                let enough = chosen.readers_max();
                let why = format!(
                    "--readers {most}: must lie from 1 to {enough} with these files, of which each reader takes 1 MiB or more"
                );
                return Err(Failure::unusable(&args.path, why));
            }
            tuned.plan(&chosen, args, seconds).check()?;
            let alone = folder.alone(&devices.bdi)?;
            tuned.trial = Some((chosen, args, alone));
        }
        Ok(tuned)
    }

    fn plan<'p>(&'p self, chosen: &'p Chosen, args: &'p Tune, seconds: u32) -> Plan<'p> {
        // Leaves with different schedulers keep them.
        let schedulers = match self.present.scheduler {
            Some(_) => self.devices.schedulers(),
            None => Vec::new(),
        };
        let mut settings = advice::settings(&self.present, &schedulers);
        // The kernel ends processes of a cgroup when windows that are being read fill its memory.
        let most = self.readers.iter().copied().max().unwrap_or(1);
        let memory = args.memory.unwrap_or_else(memory::available);
        settings.retain(|setting| {
            let windows = simulated::windows(setting.read_ahead_kib, most);
            *setting == self.present || windows <= memory
        });
        Plan {
            path: &args.path,
            chosen,
            devices: self.devices,
            settings,
            readers: self.readers.clone(),
            time: Duration::from_secs(seconds.into()),
        }
    }

    /// The real runs, if they are wanted.
    fn measure(&self) -> Result<Option<Grid>, Failure> {
        let Some((chosen, args, _)) = &self.trial else {
            return Ok(None);
        };
        let plan = self.plan(chosen, args, args.measure.unwrap_or_default());
        let is_stopped = stopped_by_signals()?;
        let mut trying = Trying::begin(self.folder, all_knobs(self.devices))?;
        let bar = progress::steps("trying", plan.runs().into());
        let is_stopped = || is_stopped.load(Ordering::Relaxed);
        let grid = plan.run(&mut trying, &is_stopped, &|| bar.inc(1))?;
        bar.finish_and_clear();
        Ok(Some(grid))
    }
}

/// Becomes true with the first signal.
fn stopped_by_signals() -> Result<Arc<AtomicBool>, Failure> {
    let (tell, told) = mpsc::channel();
    ending::catch_signals(tell)?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let flag = is_stopped.clone();
    let wait = move || {
        while told.recv().is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let started = std::thread::Builder::new()
        .name("forerun-stop".into())
        .spawn(wait);
    started.map_err(|e| Failure::Run(format!("cannot wait for signals: {e}")))?;
    Ok(is_stopped)
}

/// Everything that may be set.
#[must_use]
pub fn all_knobs(devices: &Devices) -> Vec<Knob> {
    let choosing = devices
        .leaves
        .iter()
        .filter(|leaf| leaf.scheduler.is_some());
    let schedulers = choosing.map(crate::tune::devices::Leaf::scheduler_knob);
    [devices.read_ahead.clone()]
        .into_iter()
        .chain(schedulers)
        .collect()
}

/// Looks whether values can be written, without writing.
///
/// # Errors
/// They cannot: the user is not root, or `/sys` is mounted read-only, as in a container.
pub fn check_writable(flag: &str, knobs: &[Knob]) -> Result<(), Failure> {
    for knob in knobs {
        let opened = std::fs::OpenOptions::new().write(true).open(knob.path());
        if let Err(error) = opened {
            let (path, why) = (knob.path().display(), plain(&error));
            return Err(Failure::Usage(format!(
                "{flag}: {path} cannot be written ({why}): it takes root, and /sys that is not read-only as in a container"
            )));
        }
    }
    Ok(())
}

fn apply(folder: &Folder, devices: &Devices, advised: &Setting) -> Result<Vec<Applied>, Failure> {
    let mut values = values(devices, advised);
    values.retain(|(knob, value)| knob.read().map_or(true, |present| &present != value));
    match values.is_empty() {
        true => Ok(Vec::new()),
        false => applied::apply(folder, &devices.bdi, &values),
    }
}

/// Settings that were tried by processes that were killed together with their guardians.
fn clear_what_was_left(folder: &Folder) {
    if !folder.tried().is_empty()
        && rustix::process::geteuid().is_root()
        && let Ok(_lock) = folder.lock()
    {
        trying::clear(folder);
    }
}
