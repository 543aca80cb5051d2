//! One run of the grid: a preset, a number of disks and a cache size.
//!
//! Checked before any run, where the check needs no run. A cell makes its own devices, so cells can
//! run at once.

use forerun_core::hinted::Setup;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings};
use forerun_sim::hinted::Reads;
use forerun_sim::hinted::host::Host;
use forerun_sim::hinted::unit::Instance;
use forerun_sim::simulate::bound::{self, Bound};
use forerun_sim::simulate::recorded::Recorded;
use forerun_sim::simulate::{engine, hinted, in_units};
use forerun_sim::trace::Position;
use forerun_sim::workload;

use super::disk::Disk;
use super::input::Input;
use super::row::Row;
use crate::args::{Simulate, Simulated};
use crate::failure::Failure;

/// See the [module](self).
pub(super) struct Cell {
    preset: Simulated,
    wanted: Option<u16>,
    cache_blocks: u32,
}

/// All cells, of which every one can be tried.
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
    if let (Some(recorded), false) = (&input.recorded, matches!(disk, Disk::Unit)) {
        for wanted in &disks {
            check_end(args, input, recorded, *wanted, disk)?;
        }
    }
    let mut cells = Vec::new();
    for preset in &args.preset.0 {
        check(preset, input, disk, &disks)?;
        for wanted in &disks {
            for cache_blocks in &args.cache_blocks {
                cells.push(Cell {
                    preset: with_flags(preset, args, disk)?,
                    wanted: *wanted,
                    cache_blocks: *cache_blocks,
                });
                if let Simulated::Engine(preset) = preset {
                    check_files(args, input, *wanted, disk)?;
                    settings(preset, args, *cache_blocks)?;
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
            "a hinted method has one reader, this workload has more",
        ),
        Simulated::Engine(preset) if matches!(disk, Disk::Unit) => {
            refused(preset.name, "--device unit is for hinted methods")
        }
        Simulated::Engine(preset) if own > 1 && disks.contains(&None) => refused(
            preset.name,
            "the trace has several devices: give --disks to stripe over",
        ),
        _ => Ok(()),
    }
}

/// The method with what the flags say about it.
fn with_flags(preset: &Simulated, args: &Simulate, disk: &Disk) -> Result<Simulated, Failure> {
    let Simulated::Hinted(choice, name) = preset else {
        return Ok(preset.clone());
    };
    let units = matches!(disk, Disk::Unit).then(|| u64::from(args.fetch_units) * 100);
    let mut choice: Choice = choice.clone();
    for (param, flag, value) in [
        ("batch_blocks", "--batch", args.batch),
        ("horizon_refs", "--horizon", args.horizon),
        ("fetch_percent", "--fetch-units", units),
    ] {
        let takes = choice.spec.params.iter().any(|p| p.name == param) && !name.contains(param);
        if let (true, Some(value)) = (takes, value) {
            let with = choice.with(param, value);
            choice = with.map_err(|e| Failure::Usage(format!("{flag}: {e}")))?;
        }
    }
    Ok(Simulated::Hinted(choice, name.clone()))
}

fn check_end(
    args: &Simulate,
    input: &Input,
    recorded: &Recorded,
    wanted: Option<u16>,
    disk: &Disk,
) -> Result<(), Failure> {
    let reads = recorded.reads(wanted, args.place.map(Into::into), args.block_bytes);
    let Some(capacity) = disk.build(&args.scheduler)?.capacity() else {
        return Ok(());
    };
    let Some((at, number, end)) = recorded.beyond(&reads, args.block_bytes, capacity) else {
        return Ok(());
    };
    let at = match at {
        Some(Position::Line(line)) => format!(":{line}"),
        Some(Position::Byte(byte)) => format!(": byte {byte}"),
        None => String::new(),
    };
    Err(Failure::Usage(format!(
        "{}{at}: block {number} ends at byte {end} of its disk, {} has {capacity} bytes; \
         --place dense lays blocks in the order of first use",
        input.name,
        disk.name()
    )))
}

/// The files of a workload lie one after the other on the array, a block between.
fn check_files(
    args: &Simulate,
    input: &Input,
    wanted: Option<u16>,
    disk: &Disk,
) -> Result<(), Failure> {
    let (Some(name), Some(capacity)) = (&input.workload, disk.build(&args.scheduler)?.capacity())
    else {
        return Ok(());
    };
    let workload = workload::parse(name).map_err(|e| Failure::Usage(e.to_string()))?;
    let block = u64::from(args.block_bytes);
    let files = workload.files().into_iter();
    let blocks = files.map(|bytes| bytes.0.div_ceil(block) + 1);
    let needed = blocks.fold(0, u64::saturating_add).saturating_mul(block);
    let there = capacity.0.saturating_mul(wanted.unwrap_or(1).into());
    if needed <= there {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--workload {name}: its files take {needed} bytes, the disks have {there}"
    )))
}

/// An engine with so many blocks of memory for everything.
fn settings(
    preset: &forerun_core::preset::Preset,
    args: &Simulate,
    cache_blocks: u32,
) -> Result<Settings, Failure> {
    let memory = Bytes(u64::from(cache_blocks) * u64::from(args.block_bytes));
    let refused = |e: &dyn std::fmt::Display| {
        let name = preset.name;
        Failure::Usage(format!(
            "--preset {name} with --cache-blocks {cache_blocks}: {e}"
        ))
    };
    let mut settings = preset.settings(memory).map_err(|e| refused(&e))?;
    settings.block_bytes = args.block_bytes;
    settings.check().map_err(|e| refused(&e))?;
    Ok(settings)
}

impl Cell {
    /// Runs it.
    ///
    /// # Errors
    /// A setup the host refuses.
    pub(super) fn run(&self, args: &Simulate, input: &Input, disk: &Disk) -> Result<Row, Failure> {
        let layout = args.place.map(Into::into);
        let run = |e: &dyn std::fmt::Display| Failure::Run(format!("simulation: {e}"));
        let reads = |recorded: &Recorded| recorded.reads(self.wanted, layout, args.block_bytes);
        let reads: Option<Reads> = input.recorded.as_ref().map(reads);
        let own = input.recorded.as_ref().map(|r| r.disks(self.wanted));
        let disks = own.unwrap_or(self.wanted.unwrap_or(1));
        let host = Host {
            driver: args.driver,
            block_bytes: Bytes(args.block_bytes.into()),
            ..Host::default()
        };
        let build = || (0..disks).map(|_| disk.build(&args.scheduler));
        let (outcome, bound) = match (&self.preset, reads) {
            (Simulated::Hinted(choice, _), Some(reads)) => {
                let setup = Setup {
                    policy: choice.clone(),
                    disks,
                    cache_blocks: self.cache_blocks,
                    blocks_max: u32::MAX,
                    hints_max: u32::MAX - 1,
                };
                if matches!(disk, Disk::Unit) {
                    let instance = instance(args, input, reads, self.cache_blocks)?;
                    let outcome = in_units(&setup, &instance).map_err(|e| run(&e))?;
                    (outcome, bound::in_units(&instance, self.cache_blocks))
                } else {
                    let devices = build().collect::<Result<Vec<_>, _>>()?;
                    let k = self.cache_blocks;
                    let bound = bound::on_devices(&reads, k, &host, &devices, true);
                    (
                        hinted(&setup, &host, &reads, devices).map_err(|e| run(&e))?,
                        bound,
                    )
                }
            }
            (Simulated::Engine(preset), reads) => {
                let settings = settings(preset, args, self.cache_blocks)?;
                let devices = build().collect::<Result<Vec<_>, _>>()?;
                let bound = reads.map(|reads| {
                    bound::on_devices(&reads, self.cache_blocks, &host, &devices, false)
                });
                let workload: Box<dyn workload::Workload> = match (&input.workload, &input.recorded)
                {
                    (None, Some(recorded)) => {
                        let trace = recorded.workload(layout, args.block_bytes);
                        Box::new(trace.map_err(|e| run(&e))?)
                    }
                    (name, _) => {
                        let name = name.as_deref().unwrap_or_default();
                        workload::parse(name).map_err(|e| Failure::Usage(e.to_string()))?
                    }
                };
                let outcome = engine(settings, args.driver, &*workload, devices);
                let outcome = outcome.map_err(|e| run(&e))?;
                let kind = "compute of the longest reader";
                let least = outcome.compute_longest;
                (outcome, bound.unwrap_or(Bound { least, kind }))
            }
            (Simulated::Hinted(_, name), None) => return Err(run(name)),
        };
        Ok(Row {
            preset: match &self.preset {
                Simulated::Hinted(_, name) => name.clone(),
                Simulated::Engine(preset) => preset.name.to_owned(),
            },
            is_hinted: matches!(self.preset, Simulated::Hinted(..)),
            is_unit: matches!(disk, Disk::Unit),
            device: disk.name().to_owned(),
            scheduler: args.scheduler.clone(),
            disks,
            cache_blocks: self.cache_blocks,
            block_bytes: args.block_bytes,
            compute_from: input.compute_from,
            outcome,
            bound,
            over_reverse: None,
        })
    }
}

/// The theory's problem, with what is in the cache at the beginning.
fn instance(
    args: &Simulate,
    input: &Input,
    reads: Reads,
    cache_blocks: u32,
) -> Result<Instance, Failure> {
    let recorded = input.recorded.as_ref();
    let warm = args.warm.iter().map(|number| {
        let block = recorded.and_then(|recorded| recorded.block(*number));
        let why = || Failure::Usage(format!("--warm {number}: {} has no such block", input.name));
        block.ok_or_else(why)
    });
    let warm = warm.collect::<Result<Vec<_>, _>>()?;
    if warm.len() > cache_blocks as usize {
        let message = format!(
            "--warm: {} blocks, the cache has {cache_blocks}",
            warm.len()
        );
        return Err(Failure::Usage(message));
    }
    Ok(Instance {
        reads,
        warm,
        fetch_units: args.fetch_units.into(),
    })
}
