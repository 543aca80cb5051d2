//! The golden grid: every preset on every device and every workload, one row a preset and class of devices.
//!
//! All three come from their lists, so one that is added is in the grid. Pairs of device and
//! workload that would only repeat others are left out. A row says how a preset does over the cells of its class:
//!
//! ```text
//! class   preset   cells  speed  of best  least  at                   requests  wasted_MiB  digest
//! ssd     forerun     20   4.21     0.98   0.90  ssd random             102345         1.2  9f3a01c2
//!         times as fast as none --/      \-- of the fastest preset, mean and least of the cells, and where
//! ```
//!
//! The digest is of all figures of all cells, so no decision changes unseen. `FORERUN_BLESS=1 cargo test
//! -p forerun-sim golden` writes `tests/golden/grid.txt` anew. Each run leaves the cells in `grid_cells.txt` of cargo's folder for
//! temporary files (`target/tmp`): a copy from before a change and `diff` show them one by one.

use std::fmt::Write;
use std::path::Path;

use forerun_baselines::PRESETS;
use forerun_core::spec::Spec;
use forerun_sim::device::{self, model};
use forerun_sim::{Summary, workload};

use crate::stage::{run_into, settings};

/// Little enough that some workloads do not fit, so that reclaim is in the grid.
const MEMORY: u64 = 16 << 20;

/// Workloads that show more in another form, or in more than one, than with their defaults in a
/// file of [`FILE_BYTES`], or whose files only fit the smallest disk (1.3 GB) if there are fewer. One of the list that is not named here is in the grid in that form.
const FORMS: [&str; 15] = [
    "sequential(file_bytes=20000000)",
    "sequential(file_bytes=20000000,read_bytes=10000,think_ns=500000)",
    "many-readers(file_bytes=5000000,readers=8)",
    "many-readers(file_bytes=40000000,readers=3,shared=1)",
    "strided(file_bytes=20000000)",
    "strided(file_bytes=20000000,stride_bytes=16384,backward=1)",
    "random(file_bytes=50000000)",
    "reordered(file_bytes=20000000,read_bytes=16384,band=4)",
    "iozone(total_bytes=20000000,streams=4)",
    "direct-reads(threads=8,request_bytes=131072,requests=16)",
    "web-server(files=40,mean_bytes=400000,threads=8,opens=60)",
    "one-whole(file_bytes=20000000,files=40)",
    "one-rand(file_bytes=20000000,files=40)",
    "two-rand(file_bytes=20000000,files=40)",
    "four-64kb(file_bytes=20000000,files=40)",
];

/// More than the memory, so that reclaim is in every row, and the size of most forms.
const FILE_BYTES: u64 = 20_000_000;

/// Built-in models repeat the decisions of their kind with other times, so they get one form of
/// each of these only: one reader, several, and one that jumps. The kinds, and a disk of the list,
/// get all.
const OF_A_MODEL: [&str; 3] = [FORMS[0], FORMS[2], FORMS[6]];

/// The disk of the paper that the stand-ins are from, and the only device they run on: they have
/// sizes of their own, thousands of reads each.
const DISK: &str = "hp97560";

fn is_built_in(spec: &Spec) -> bool {
    model::BUILT_IN.iter().any(|(name, _)| *name == spec.name)
}

/// The forms in which a workload is on a device.
fn forms(workload: &'static Spec, device: &Spec) -> Vec<String> {
    let has_size = workload
        .params
        .iter()
        .any(|param| param.name == "file_bytes");
    let of_this = |form: &&&str| form.split('(').next() == Some(workload.name);
    let named: Vec<String> = FORMS
        .iter()
        .filter(of_this)
        .map(ToString::to_string)
        .collect();
    if !has_size && named.is_empty() {
        let here = device.name == DISK;
        return Vec::from_iter(here.then(|| workload.name.to_owned()));
    }
    let all = match named.is_empty() {
        true => vec![format!("{}(file_bytes={FILE_BYTES})", workload.name)],
        false => named,
    };
    let short = is_built_in(device) && device.name != DISK;
    let kept = |form: &String| !short || OF_A_MODEL.contains(&form.as_str());
    all.into_iter().filter(kept).collect()
}

/// One run.
struct Cell {
    device: &'static str,
    workload: String,
    summary: Summary,
    /// Fewest nanoseconds that a preset takes for this, and those that `none` takes.
    best_ns: u64,
    none_ns: u64,
}

impl Cell {
    fn ns(&self) -> f64 {
        ns(self.summary.elapsed_ns)
    }

    /// The part of the fastest preset's speed.
    fn of_best(&self) -> f64 {
        ns(self.best_ns) / self.ns()
    }

    /// Where it is, without parameters.
    fn place(&self) -> String {
        let workload = self.workload.split('(').next().unwrap_or_default();
        format!("{} {workload}", self.device)
    }
}

/// Nothing takes no time at all, so that each quotient is a number.
#[expect(clippy::cast_precision_loss, reason = "of a quotient of three digits")]
fn ns(elapsed: u64) -> f64 {
    elapsed.max(1) as f64
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for device in device::LIST {
        let workloads = workload::LIST.iter();
        let forms = workloads.flat_map(|workload| forms(&workload.spec, &device.spec));
        for workload in forms {
            let runs: Vec<Summary> = PRESETS
                .iter()
                .map(|preset| {
                    let settings = settings(preset.name, MEMORY);
                    run_into(settings, device.spec.name, &workload, &mut ()).summary(preset.name)
                })
                .collect();
            let all = runs.iter().all(|run| run.bytes > 0);
            assert!(
                all,
                "{} {workload} is read on the device, whose size it fits",
                device.spec.name
            );
            let best_ns = runs.iter().map(|run| run.elapsed_ns).min().unwrap_or(0);
            let none = runs.iter().find(|run| run.preset == "none");
            let none_ns = none.map_or(0, |run| run.elapsed_ns);
            cells.extend(runs.into_iter().map(|summary| Cell {
                device: device.spec.name,
                workload: workload.clone(),
                summary,
                best_ns,
                none_ns,
            }));
        }
    }
    cells
}

/// The built-in disks are one class, every other device is one of its own.
fn class_of(cell: &Cell) -> &'static str {
    let spec = device::LIST
        .iter()
        .find(|entry| entry.spec.name == cell.device);
    let is_disk = spec.is_some_and(|entry| is_built_in(&entry.spec)) && cell.device != DISK;
    if is_disk { "disks" } else { cell.device }
}

fn grid(cells: &[Cell]) -> String {
    let mut text = String::from(
        "# A row a preset and class of devices, 16 MiB of memory: crates/sim/tests/suite/golden.rs says how to read and \
         regenerate it\n",
    );
    let mut classes: Vec<&str> = Vec::new();
    for class in cells.iter().map(class_of) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let _ = writeln!(
        text,
        "{:<20} {:<18}{:>5}{:>9}{:>9}{:>7}  {:<32}{:>9}{:>12}  digest",
        "class", "preset", "cells", "speed", "of best", "least", "at", "requests", "wasted_MiB"
    );
    for class in classes {
        for preset in PRESETS {
            let of_row =
                |cell: &&Cell| class_of(cell) == class && cell.summary.preset == preset.name;
            let row: Vec<&Cell> = cells.iter().filter(of_row).collect();
            text.push_str(&line(class, preset.name, &row));
        }
    }
    text
}

fn line(class: &str, preset: &str, row: &[&Cell]) -> String {
    let count = f64::from(u32::try_from(row.len()).unwrap_or(u32::MAX));
    let mean = |of: &dyn Fn(&Cell) -> f64| {
        let sum: f64 = row.iter().map(|cell| of(cell).ln()).sum();
        (sum / count).exp()
    };
    let least = row
        .iter()
        .min_by(|a, b| a.of_best().total_cmp(&b.of_best()))
        .expect("a class has cells");
    let requests: u64 = row.iter().map(|cell| cell.summary.device_requests).sum();
    let wasted: u64 = row.iter().map(|cell| cell.summary.wasted_bytes).sum();
    format!(
        "{:<20} {:<18}{:>5}{:>9.2}{:>9.3}{:>7.2}  {:<32}{:>9}{:>10}.{}  {:08x}\n",
        class,
        preset,
        row.len(),
        mean(&|cell| ns(cell.none_ns) / cell.ns()),
        mean(&Cell::of_best),
        least.of_best(),
        least.place(),
        requests,
        wasted >> 20,
        ((wasted % (1 << 20)) * 10) >> 20,
        digest(row),
    )
}

/// FNV-1a over the figures of all cells of a row (<https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>).
fn digest(row: &[&Cell]) -> u32 {
    let figures: String = row.iter().map(|cell| cell.summary.to_string()).collect();
    figures.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Every cell on a line.
fn listed(cells: &[Cell]) -> String {
    cells
        .iter()
        .map(|cell| format!("{} {} {}\n", cell.device, cell.workload, cell.summary))
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, printed where it counts"
)]
fn is_blessing() -> bool {
    std::env::var_os("FORERUN_BLESS").is_some()
}

#[test]
fn golden_grid_is_unchanged() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/grid.txt");
    let cells = cells();
    let listing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("grid_cells.txt");
    std::fs::write(&listing, listed(&cells)).unwrap();
    let found = grid(&cells);
    if is_blessing() {
        println!("FORERUN_BLESS is set: {} is written anew", path.display());
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = expected
        .lines()
        .zip(found.lines())
        .position(|(old, new)| old != new);
    if let Some(at) = differing {
        let (old, new) = (expected.lines().nth(at), found.lines().nth(at));
        panic!(
            "line {} of {}:\nwas {old:?}\nis  {new:?}\nthe cells are in {}",
            at + 1,
            path.display(),
            listing.display()
        );
    }
    assert_eq!(expected.lines().count(), found.lines().count());
}
