//! The golden grid: every preset on every device and every workload, as a table in the repository.
//!
//! All three come from their lists, so one that is added is in the grid. Pairs of device and
//! workload that would only repeat others are left out.
//!
//! A change of behaviour is a diff of `tests/golden/grid.txt` that a person can read and judge.
//! `FORERUN_BLESS=1 cargo test -p forerun-sim golden` writes the file anew.

use std::fmt::Write;
use std::path::Path;

use forerun_baselines::PRESETS;
use forerun_core::spec::Spec;
use forerun_sim::device::{self, model};
use forerun_sim::workload;

use crate::stage::{run_into, settings};

/// Little enough that some workloads do not fit, so that reclaim is in the grid.
const MEMORY: u64 = 16 << 20;

/// Workloads that show more in another form, or in more than one, than with their defaults in a
/// file of [`FILE_BYTES`]. One of the list that is not named here is in the grid in that form.
const FORMS: [&str; 11] = [
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

fn grid() -> String {
    let mut text = String::from(
        "# preset x device x workload, 16 MiB of memory. Regenerate: FORERUN_BLESS=1 cargo test \
         -p forerun-sim golden\n",
    );
    for device in device::LIST {
        let workloads = workload::LIST.iter();
        let forms = workloads.flat_map(|workload| forms(&workload.spec, &device.spec));
        for workload in forms {
            let device = device.spec.name;
            let _ = writeln!(text, "\n{device} {workload}");
            let _ = writeln!(
                text,
                "{:<14}{:>12}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}{:>12}",
                "preset",
                "elapsed_us",
                "requests",
                "KiB/req",
                "hits",
                "late",
                "misses",
                "wasted_KiB",
                "stall_us"
            );
            for preset in PRESETS {
                text.push_str(&line(preset.name, device, &workload));
            }
        }
    }
    text
}

fn line(preset: &str, device: &str, workload: &str) -> String {
    let report = run_into(settings(preset, MEMORY), device, workload, &mut ());
    let s = report.summary(preset);
    format!(
        "{:<14}{:>12}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}{:>12}\n",
        s.preset,
        s.elapsed_ns / 1000,
        s.device_requests,
        s.request_bytes_mean / 1024,
        s.hits,
        s.late_hits,
        s.misses,
        s.wasted_bytes / 1024,
        s.stall_ns / 1000
    )
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
    let found = grid();
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
            "line {} of {}:\nwas {old:?}\nis  {new:?}",
            at + 1,
            path.display()
        );
    }
    assert_eq!(expected.lines().count(), found.lines().count());
}
