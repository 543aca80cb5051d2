//! The runs that the flags ask for, checked before any of them is run; every error names the flag or the line.

use forerun_core::hinted::policy::Policy;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings};
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::grid::{Grid, GridRun, Refusal, prefetches};
use forerun_sim::simulate::pacing::Loop;
use forerun_sim::simulate::placing::Order;

use super::input::NamedInput;
use crate::args::{Simulate, Simulated};
use crate::composition;
use crate::failure::Failure;

/// The surroundings of all runs.
pub(super) fn grid<'a>(args: &Simulate, input: &'a NamedInput, disk: &'a Disk) -> Grid<'a> {
    Grid {
        notice: args.noticing.notice.unwrap_or_default(),
        fetch_units: args.fetch_units(),
        warm: args.warm.clone(),
        layout: args.layout(),
        pacing: args.pacing(),
        ..Grid::new(&input.input, disk, args.driver())
    }
}

/// All runs, of which every one can be tried.
///
/// # Errors
/// A preset that does not go with the device or the input, a block beyond a disk's end.
pub(super) fn runs(
    args: &Simulate,
    input: &NamedInput,
    grid: &Grid<'_>,
) -> Result<Vec<GridRun>, Failure> {
    check_ends(args, input, grid)?;
    check_flags(args, input, grid)?;
    let adjust = |settings: &mut Settings| composition::replace(settings, &args.methods);
    let mut runs = Vec::new();
    for preset in &args.preset.0 {
        let preset = with_flags(preset, args, grid.disk)?;
        for wanted in wanted(args) {
            for cache_blocks in &args.cache_blocks {
                let run = grid.plan(&preset, wanted, *cache_blocks, &adjust);
                runs.push(
                    run.map_err(|e| refused(args, &input.name, preset.name(), *cache_blocks, e))?,
                );
            }
        }
    }
    Ok(runs)
}

/// Blocks have names, which these presets can do with.
///
/// # Errors
/// As those of a run.
pub(super) fn check_named(args: &Simulate, input: &str) -> Result<(), Failure> {
    let is_dense = args.layout().order == Order::Dense;
    for preset in &args.preset.0 {
        let takes_addresses = match preset {
            Simulated::Engine(engine) => engine.settings(Bytes(1 << 30)).is_ok_and(|mut made| {
                composition::replace(&mut made, &args.methods);
                prefetches(&made)
            }),
            Simulated::Hinted(..) | Simulated::Kernel(..) => false,
        };
        let refusal = match (takes_addresses, is_dense) {
            (true, _) => Refusal::Addresses,
            (false, false) => Refusal::Names,
            (false, true) => continue,
        };
        return Err(refused(args, input, preset.name(), 0, refusal));
    }
    Ok(())
}

/// Numbers of disks; none for the trace's own.
fn wanted(args: &Simulate) -> Vec<Option<u16>> {
    match args.disks.is_empty() {
        true => vec![None],
        false => args.disks.iter().map(|d| u16::try_from(*d).ok()).collect(),
    }
}

/// A refusal in the words of the flags.
fn refused(
    args: &Simulate,
    input: &str,
    preset: &str,
    cache_blocks: u32,
    refusal: Refusal,
) -> Failure {
    let of_preset = |why: &str| format!("--preset {preset}: {why}");
    Failure::Usage(match refusal {
        Refusal::Readers => format!("--preset {preset}: {refusal} (see `forerun list presets`)"),
        Refusal::Pacing | Refusal::Made => {
            of_preset(&format!("--readers-by, --loop and --arrivals: {refusal}"))
        }
        Refusal::Untimed if args.when.is_none() => format!("{input}: --arrivals: {refusal}"),
        Refusal::Untimed => format!("{input}: --loop: {refusal}"),
        Refusal::Arrivals { at, .. } => {
            let at = at.map_or(String::new(), |at| at.to_string());
            let flag = if args.when.is_none() {
                "--arrivals"
            } else {
                "--loop"
            };
            format!("{input}{at}: {flag}: {refusal}, this one first")
        }
        Refusal::Strip { .. } => format!("--block-bytes with --preset {preset}: {refusal}"),
        Refusal::Nameless | Refusal::Opened => format!("{input}: --readers-by pid: {refusal}"),
        Refusal::Kernel => of_preset(&format!("{input}: {refusal}")),
        Refusal::Unit => of_preset("--device unit is for hinted methods"),
        Refusal::FirstUse => format!(
            "--place dense with --preset {preset}: {refusal}; without --place blocks lie at their number"
        ),
        Refusal::Names => format!("{input}: {refusal}: --place dense"),
        Refusal::Addresses => format!("{input}: --preset {preset}: {refusal}, with --place dense"),
        Refusal::Idle { .. } => format!("--regions concatenated: {refusal}"),
        Refusal::Files { .. } => format!("--workload {input}: {refusal}"),
        Refusal::Workload(error) => error.to_string(),
        Refusal::Disk(error) => error.to_string(),
        other => format!("--preset {preset} with --cache-blocks {cache_blocks}: {other}"),
    })
}

/// Flags that none of the presets takes would be ignored without a word.
fn check_flags(args: &Simulate, input: &NamedInput, grid: &Grid<'_>) -> Result<(), Failure> {
    check_made(args, input)?;
    check_units(args, grid.disk)?;
    if args.arrivals.is_some() && args.pacing().when == Loop::Closed {
        return Err(Failure::Usage(
            "--arrivals: a closed loop has none".to_owned(),
        ));
    }
    if args.think.is_some() && args.pacing().when != Loop::Closed {
        let named = match args.when {
            None => "--arrivals".to_owned(),
            Some(_) => format!("--loop {}", args.pacing().when.name()),
        };
        return Err(Failure::Usage(format!(
            "--think with {named}: requests begin at their times, with no computing between; it is for --loop closed"
        )));
    }
    for (param, flag, value) in [
        ("batch_blocks", "--batch", args.batch),
        ("horizon_refs", "--horizon", args.horizon),
    ] {
        let takes = |preset: &Simulated| match preset {
            Simulated::Hinted(choice, name) => {
                choice.spec().params.iter().any(|p| p.name == param) && !name.contains(param)
            }
            Simulated::Engine(_) | Simulated::Kernel(..) => false,
        };
        if value.is_some() && !args.preset.0.iter().any(takes) {
            return Err(Failure::Usage(format!(
                "{flag}: no preset named has a {param}, or each has one of its own"
            )));
        }
    }
    let is_kernel = |preset: &Simulated| matches!(preset, Simulated::Kernel(..));
    if args.driver.is_some() && args.preset.0.iter().all(is_kernel) {
        return Err(Failure::Usage(
            "--driver: no preset named has processor time: a simulated kernel's fetches cost none"
                .into(),
        ));
    }
    let takes_notice = |preset: &Simulated| preset.is_hinted() && !preset.is_lru();
    if args.noticing.notice.is_some() && !args.preset.0.iter().any(takes_notice) {
        return Err(Failure::Usage(
            "--notice: no preset named follows announced reads (see `forerun list hinted`)".into(),
        ));
    }
    for (flag, value) in args.methods.values() {
        if value.is_some() && !args.preset.0.iter().any(Simulated::has_methods) {
            return Err(Failure::Usage(format!(
                "--{flag}: no preset named is one of the engine's (see `forerun list presets`)"
            )));
        }
    }
    Ok(())
}

/// Files of a workload lie as an engine lays them out, and are not kept for it.
fn check_made(args: &Simulate, input: &NamedInput) -> Result<(), Failure> {
    let is_kept = args.preset.0.iter().any(Simulated::is_hinted);
    if input.input.workload.is_none() || is_kept {
        return Ok(());
    }
    for (flag, is_given) in [
        ("--place", args.place.is_some()),
        ("--regions", args.regions.is_some()),
        ("--trace-memory", args.trace_memory.is_some()),
    ] {
        if is_given {
            return Err(Failure::Usage(format!(
                "{flag}: is for a trace, or for hinted methods (see `forerun list hinted`)"
            )));
        }
    }
    Ok(())
}

/// In the theory a fetch takes no processor time, and a free disk is noticed at once.
fn check_units(args: &Simulate, disk: &Disk) -> Result<(), Failure> {
    for (flag, is_given) in [
        ("--driver", args.driver.is_some()),
        ("--notice", args.noticing.notice.is_some()),
    ] {
        if is_given && disk.is_unit() {
            return Err(Failure::Usage(format!(
                "{flag}: --device unit has no processor time and no events"
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

/// No block is beyond the end of its disk or its file.
fn check_ends(args: &Simulate, input: &NamedInput, grid: &Grid<'_>) -> Result<(), Failure> {
    let has_engine = !args.preset.0.iter().all(Simulated::is_lru);
    let mut first = None;
    for wanted in wanted(args) {
        let beyond = grid.beyond(wanted, has_engine);
        let beyond = beyond.map_err(|e| Failure::Usage(e.to_string()))?;
        first = first.or(beyond);
    }
    let Some(first) = first else {
        return Ok(());
    };
    let name = &input.name;
    let source = input.input.source.as_ref();
    let at = source.and_then(|source| source.position_of(first.device, first.number));
    let at = at.map_or(String::new(), |at| at.to_string());
    let way_out = match grid.layout.order {
        Order::Address => {
            "--place packed lays the touched blocks in the order of addresses, without gaps; else it takes a \
             larger --device or more --disks"
        }
        Order::Packed | Order::Dense => "a larger --device or more --disks hold all",
    };
    Err(Failure::Usage(format!("{name}{at}: {first}; {way_out}")))
}
