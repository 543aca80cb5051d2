//! The grid: presets by numbers of disks by cache sizes, checked before any of it is run.
//!
//! Every check that needs no run is done here, and its error names the flag or the line. `run.rs`
//! makes the runs.

use forerun_core::hinted::Setup;
use forerun_core::hinted::policy::Policy;
use forerun_core::preset::Preset;
use forerun_core::settings::SettingsError;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings};
use forerun_sim::hinted::host::{self, Host};
use forerun_sim::simulate::placing::{Layout, Placing};
use forerun_sim::simulate::recorded::Recorded;
use forerun_sim::workload;

use super::disk::Disk;
use super::input::Input;
use crate::args::{Simulate, Simulated};
use crate::composition;
use crate::failure::Failure;

/// See the [module](self).
pub(super) struct Cell {
    pub(super) preset: Simulated,
    pub(super) wanted: Option<u16>,
    pub(super) layout: Option<Layout>,
    pub(super) cache_blocks: u32,
}

/// All runs, of which every one can be tried.
///
/// # Errors
/// A preset that does not go with the device or the input, or a block beyond a disk's end.
pub(super) fn grid(args: &Simulate, input: &Input, disk: &Disk) -> Result<Vec<Cell>, Failure> {
    let disks = args.disks.iter().map(|d| u16::try_from(*d).ok());
    let disks: Vec<_> = if args.disks.is_empty() {
        vec![None]
    } else {
        disks.collect()
    };
    check_flags(args)?;
    let own = input.recorded.as_ref().map_or(1, |it| it.disks(None));
    if own > 1 && !args.disks.is_empty() {
        tracing::warn!(
            "{}: --disks in place of its own {own}: all blocks are striped, in the order of first \
             use",
            input.name
        );
    }
    let layout = layout(args, input, &disks, disk)?;
    let mut cells = Vec::new();
    for preset in &args.preset.0 {
        check(preset, input, disk, &disks)?;
        for wanted in &disks {
            for cache_blocks in &args.cache_blocks {
                cells.push(Cell {
                    preset: with_flags(preset, args, disk)?,
                    wanted: *wanted,
                    layout,
                    cache_blocks: *cache_blocks,
                });
                match preset {
                    Simulated::Engine(preset) => {
                        check_files(input, *wanted, disk)?;
                        settings(preset, args, (*cache_blocks, input.block_bytes))?;
                    }
                    preset if preset.is_lru() || disk.is_unit() => {}
                    Simulated::Hinted(choice, name) => {
                        let references =
                            input.recorded.as_ref().map_or(0, |r| r.references().len());
                        let setup = setup(choice, wanted.unwrap_or(1), *cache_blocks);
                        let checked =
                            host::settings(&setup, &host(args, input.block_bytes), references);
                        checked.map_err(|e| refused(name, *cache_blocks, &e))?;
                    }
                }
            }
        }
    }
    Ok(cells)
}

fn check(
    preset: &Simulated,
    input: &Input,
    disk: &Disk,
    disks: &[Option<u16>],
) -> Result<(), Failure> {
    let refused = |name: &str, why: &str| Err(Failure::Usage(format!("--preset {name}: {why}")));
    let own = input
        .recorded
        .as_ref()
        .map_or(1, |recorded| recorded.disks(None));
    match preset {
        Simulated::Hinted(_, name) if input.recorded.is_none() => refused(
            name,
            "a hinted method plans for one reader, and this workload has more, whose order depends \
             on the run: take presets of the engine (see `forerun list presets`)",
        ),
        Simulated::Engine(preset) if disk.is_unit() => {
            refused(preset.name, "--device unit is for hinted methods")
        }
        Simulated::Engine(preset) if own > 1 && disks.contains(&None) => refused(
            preset.name,
            "the trace has several devices: give --disks to stripe over",
        ),
        _ => Ok(()),
    }
}

/// Flags that none of the presets takes would be ignored without a word.
fn check_flags(args: &Simulate) -> Result<(), Failure> {
    for (param, flag, value) in [
        ("batch_blocks", "--batch", args.batch),
        ("horizon_refs", "--horizon", args.horizon),
    ] {
        let takes = |preset: &Simulated| match preset {
            Simulated::Hinted(choice, _) => choice.spec().params.iter().any(|p| p.name == param),
            Simulated::Engine(_) => false,
        };
        if value.is_some() && !args.preset.0.iter().any(takes) {
            return Err(Failure::Usage(format!(
                "{flag}: no preset named has a {param}"
            )));
        }
    }
    let takes_notice = |preset: &Simulated| preset.is_hinted() && !preset.is_lru();
    if args.noticing.notice.is_some() && !args.preset.0.iter().any(takes_notice) {
        return Err(Failure::Usage(
            "--notice: no preset named follows announced reads (see `forerun list hinted`)".into(),
        ));
    }
    let methods = &args.methods;
    for (flag, is_given) in [
        ("--detect", methods.detect.is_some()),
        ("--depth", methods.depth.is_some()),
        ("--shape", methods.shape.is_some()),
        ("--dispatch", methods.dispatch.is_some()),
        ("--reclaim", methods.reclaim.is_some()),
        ("--split", methods.split.is_some()),
        ("--next-file", methods.next_file.is_some()),
        ("--measure", methods.measure.is_some()),
    ] {
        if is_given && args.preset.0.iter().all(Simulated::is_hinted) {
            return Err(Failure::Usage(format!(
                "{flag}: no preset named is one of the engine's (see `forerun list presets`)"
            )));
        }
    }
    Ok(())
}

/// The method with the parameters of the flags.
fn with_flags(preset: &Simulated, args: &Simulate, disk: &Disk) -> Result<Simulated, Failure> {
    let Simulated::Hinted(choice, name) = preset else {
        return Ok(preset.clone());
    };
    let units = disk.is_unit().then(|| args.fetch_units() * 100);
    let mut choice: Choice<Box<dyn Policy>> = choice.clone();
    for (param, flag, value) in [
        ("batch_blocks", "--batch", args.batch),
        ("horizon_refs", "--horizon", args.horizon),
        ("fetch_percent", "--fetch-units", units),
    ] {
        let takes = choice.spec().params.iter().any(|p| p.name == param) && !name.contains(param);
        if let (true, Some(value)) = (takes, value) {
            let with = choice.with(param, value);
            choice = with.map_err(|e| Failure::Usage(format!("{flag}: {e}")))?;
        }
    }
    Ok(Simulated::Hinted(choice, name.clone()))
}

/// Where blocks lie. Unless the user says so, blocks at an address that a disk or a file does not
/// reach lie in the order of first use, with a note.
fn layout(
    args: &Simulate,
    input: &Input,
    disks: &[Option<u16>],
    disk: &Disk,
) -> Result<Option<Layout>, Failure> {
    let asked = args.place.map(Layout::from);
    let (Some(recorded), false) = (&input.recorded, disk.is_unit()) else {
        return Ok(asked);
    };
    let capacity = disk.build()?.capacity();
    let beyond = |layout| {
        let mut placings = disks
            .iter()
            .map(|wanted| Placing::new(recorded, *wanted, layout, input.block_bytes));
        placings.find_map(|placing| beyond(args, recorded, &placing, capacity))
    };
    let Some(first) = beyond(asked) else {
        return Ok(asked);
    };
    let dense = Some(Layout::Dense);
    let why = |beyond: &Beyond| match (beyond.end, capacity) {
        (Some(end), Some(capacity)) => {
            let name = disk.name();
            format!("ends at byte {end} of its disk, {name} has {capacity} bytes")
        }
        _ => "is beyond the 2^32 - 1 blocks of a file that an engine has".to_owned(),
    };
    let name = &input.name;
    match asked {
        None => match beyond(dense) {
            None => {
                let (number, why) = (first.number, why(&first));
                tracing::warn!(
                    "{name}: block {number} {why}: blocks lie in the order of first use (--place)"
                );
                Ok(dense)
            }
            Some(first) => {
                let (number, why) = (first.number, why(&first));
                Err(Failure::Usage(format!(
                    "{name}: in the order of first use block {number} {why}; more --disks or a \
                     larger --device hold all"
                )))
            }
        },
        Some(layout) => {
            let source = input.source.as_ref();
            let at = source.and_then(|source| source.position_of(first.device, first.number));
            let at = at.map_or(String::new(), |at| at.to_string());
            let way_out = match layout {
                Layout::Address => "--place dense lays blocks in the order of first use",
                Layout::Dense => "more --disks or a larger --device hold all",
            };
            let (number, why) = (first.number, why(&first));
            Err(Failure::Usage(format!(
                "{name}{at}: block {number} {why}; {way_out}"
            )))
        }
    }
}

/// A block that its disk or its file does not reach to.
struct Beyond {
    device: u16,
    number: u64,
    /// Where it ends on its disk; none where the file is what is too short.
    end: Option<u64>,
}

/// The first block of a trace that lies beyond its disk, or beyond the file that an engine reads.
fn beyond(
    args: &Simulate,
    recorded: &Recorded,
    placing: &Placing<'_>,
    capacity: Option<Bytes>,
) -> Option<Beyond> {
    let a_disk = capacity.and_then(|capacity| recorded.beyond(placing, capacity));
    if let Some((device, number, end)) = a_disk {
        let end = Some(end);
        return Some(Beyond {
            device,
            number,
            end,
        });
    }
    let has_engine = !args.preset.0.iter().all(Simulated::is_lru);
    let (device, number) = recorded.beyond_a_file(placing).filter(|_| has_engine)?;
    let end = None;
    Some(Beyond {
        device,
        number,
        end,
    })
}

/// A hinted run's parameters, without its references.
pub(super) fn setup(choice: &Choice<Box<dyn Policy>>, disks: u16, cache_blocks: u32) -> Setup {
    Setup {
        policy: choice.clone(),
        disks,
        cache_blocks,
        blocks_max: u32::MAX,
        hints_max: u32::MAX - 1,
    }
}

/// What it runs in.
pub(super) fn host(args: &Simulate, block_bytes: u32) -> Host {
    Host {
        driver: args.driver,
        block_bytes: Bytes(block_bytes.into()),
        notice: args.noticing.notice.unwrap_or_default(),
    }
}

fn refused(name: &str, cache_blocks: u32, error: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!(
        "--preset {name} with --cache-blocks {cache_blocks}: {error}"
    ))
}

/// The files of a workload lie one after the other on the array, a block between.
fn check_files(input: &Input, wanted: Option<u16>, disk: &Disk) -> Result<(), Failure> {
    let Some(name) = &input.workload else {
        return Ok(());
    };
    let workload = workload::parse(name).map_err(|e| Failure::Usage(e.to_string()))?;
    let block = u64::from(input.block_bytes);
    let blocks: Vec<u64> = workload
        .files()
        .into_iter()
        .map(|bytes| bytes.0.div_ceil(block))
        .collect();
    if let Some(most) = blocks.iter().find(|blocks| **blocks > u64::from(u32::MAX)) {
        return Err(Failure::Usage(format!(
            "--workload {name}: a file of {most} blocks: must be at most {}; --block-bytes makes them fewer",
            u32::MAX
        )));
    }
    let Some(capacity) = disk.build()?.capacity() else {
        return Ok(());
    };
    let needed = blocks
        .iter()
        .fold(0u64, |sum, blocks| sum.saturating_add(blocks + 1));
    let needed = needed.saturating_mul(block);
    let there = capacity.0.saturating_mul(wanted.unwrap_or(1).into());
    if needed <= there {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--workload {name}: its files take {needed} bytes, the disks have {there}"
    )))
}

/// An engine with so many blocks of this size as memory for everything.
pub(super) fn settings(
    preset: &Preset,
    args: &Simulate,
    (cache_blocks, block_bytes): (u32, u32),
) -> Result<Settings, Failure> {
    let memory = Bytes(u64::from(cache_blocks) * u64::from(block_bytes));
    let refused = |e: &dyn std::fmt::Display| refused(preset.name, cache_blocks, e);
    // Memory enough for any preset, until the size of a block is known.
    let mut settings = preset.settings(Bytes(1 << 30)).map_err(|e| refused(&e))?;
    (settings.memory, settings.block_bytes) = (memory, block_bytes);
    composition::replace(&mut settings, &args.methods);
    if args.methods.split.is_some() {
        settings.check_split().map_err(composition::name_the_flag)?;
    }
    settings.check().map_err(|e| match e {
        SettingsError::Memory { minimum, .. } => {
            let blocks = minimum.0.div_ceil(block_bytes.into());
            refused(&format!(
                "must be at least {blocks} blocks, {minimum} bytes"
            ))
        }
        other => refused(&other),
    })?;
    Ok(settings)
}
