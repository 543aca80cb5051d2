//! `forerun try --tuned`: the kernel as it is, at its best constant setting, with windows that a watch steers, and a mount.
//!
//! The setting is found as by `forerun tune`, for one reader and as many as the trial has, and is made for the
//! runs of its candidate alone.

use std::cell::RefCell;
use std::rc::Rc;

use super::told::Told;
use super::{command, quoted, rates, readers};
use crate::args::Try;
use crate::commands::tune::{all_knobs, check_writable, present, simulate};
use crate::failure::Failure;
use crate::quantity::{rough_duration, rough_size};
use crate::trial::choice::{self, Way};
use crate::trial::cold;
use crate::trial::files::Chosen;
use crate::trial::side::{Kernel, Side};
use crate::trial::tuned::{Tuned, Unwatched};
use crate::trial::watched::Watched;
use crate::tune::Setting;
use crate::tune::costs::Costs;
use crate::tune::devices::Devices;
use crate::tune::folder::Folder;
use crate::tune::memory;
use crate::tune::trying::{Trying, values};

/// Finds the devices, which must be there and this user's to set.
pub(super) fn check(args: &Try) -> Result<Devices, Failure> {
    let devices = Devices::of(&args.path)?;
    check_writable("--tuned", &all_knobs(&devices))?;
    Ok(devices)
}

/// Runs the trial of four candidates, or of three where no watch can be had.
pub(super) fn run(
    args: &Try,
    chosen: &Chosen,
    devices: Devices,
    folder: &Folder,
    (kernel, forerun): (&Kernel, &dyn Side),
    told: &mut Told<'_>,
) -> Result<(), Failure> {
    let bdi = devices.bdi.clone();
    // A watch that runs would be found after the minutes that the costs take.
    drop(folder.alone(&bdi)?);
    let (costs, setting) = best(args, chosen, &devices)?;
    let (switching, rate) = (
        rough_duration(costs.switching),
        rough_size(costs.rate as f64),
    );
    let (read_ahead, present) = (setting.read_ahead_kib, devices.read_ahead_kib);
    told.text(&format!(
        "Tuned: read-ahead {read_ahead} KiB in place of {present}, best in the simulator of a device of {switching} a \
         switch and {rate}/s.\n\n"
    ))?;
    let command = command(args, chosen);
    let echo = echo(&devices, &setting);
    let trying = Trying::begin(folder, all_knobs(&devices))?;
    let tuned = Tuned {
        folder: chosen.folder.clone(),
        devices: Rc::new(devices),
        setting,
        trying: Rc::new(RefCell::new(trying)),
    };
    let watched = Watched {
        folder: chosen.folder.clone(),
    };
    let watched = match watched.begin() {
        Ok(_) => Some(watched),
        Err(why) => {
            told.text(&format!("Without a watch ({why}).\n\n"))?;
            None
        }
    };
    let prepare = |parts: &[Vec<_>]| cold::drop_pages(chosen, parts);
    let unwatched = |side| Unwatched {
        side,
        folder,
        bdi: &bdi,
    };
    let (kernel, tuned, forerun) = (unwatched(kernel), unwatched(&tuned), unwatched(forerun));
    let mut sides: Vec<&dyn Side> = vec![&kernel, &tuned];
    sides.extend(watched.as_ref().map(|watched| watched as &dyn Side));
    sides.push(&forerun);
    let all = rates(args, chosen, &sides, &prepare)?;
    let rule = format!("forerun tune {}", quoted(&args.path));
    let ways = [
        ("kernel", "Leave things as they are.".to_owned()),
        (
            "tuned kernel",
            format!(
                "Take the tuned kernel:\n  {echo}\nFor good, the rule that this command prints:\n  {rule}"
            ),
        ),
        (
            "watch",
            format!(
                "Take the watch:\n  forerun watch {}",
                quoted(&chosen.folder)
            ),
        ),
        ("forerun", format!("Take forerun:\n  {command}")),
    ];
    let ways = ways.map(|(name, answer)| Way { name, answer }).into_iter();
    let ways: Vec<Way> = ways
        .filter(|way| way.name != "watch" || watched.is_some())
        .collect();
    told.rates(&all, ways.iter().map(|way| way.name))?;
    told.text(&choice::text(&all, &ways))
}

/// The setting that is best in the simulator.
fn best(args: &Try, chosen: &Chosen, devices: &Devices) -> Result<(Costs, Setting), Failure> {
    let costs = Costs::measure(&args.path, devices)?;
    let present = present(devices);
    let grid = simulate(
        &costs,
        &present,
        &readers(args, chosen),
        memory::available(),
    )?;
    let setting = grid.settings[grid.advised(&present)].clone();
    Ok((costs, setting))
}

/// The commands that set it.
fn echo(devices: &Devices, setting: &Setting) -> String {
    let values = values(devices, setting).into_iter();
    let differs = |(knob, value): &(forerun_surface::undo::knob::Knob, String)| {
        knob.read().ok().as_ref() != Some(value)
    };
    let echo = |(knob, value): (forerun_surface::undo::knob::Knob, String)| {
        format!("echo {value} > {}", knob.path().display())
    };
    values
        .filter(differs)
        .map(echo)
        .collect::<Vec<_>>()
        .join("\n  ")
}
