//! The golden grid: every preset on each kind of device and every workload, as a table in the repository.
//!
//! A change of behaviour is a diff of `tests/golden/grid.txt` that a person can read and judge.
//! `FORERUN_BLESS=1 cargo test -p forerun-sim golden` writes the file anew.

use std::fmt::Write;
use std::path::Path;

use forerun_core::preset;

use crate::stage::{run_into, settings};

/// Little enough that some workloads do not fit, so that reclaim is in the grid.
const MEMORY: u64 = 16 << 20;

const WORKLOADS: [&str; 10] = [
    "sequential(file_bytes=20000000)",
    "sequential(file_bytes=20000000,read_bytes=10000,think_ns=500000)",
    "interleaved(file_bytes=20000000)",
    "many-readers(file_bytes=5000000,readers=8)",
    "many-readers(file_bytes=40000000,readers=3,shared=1)",
    "strided(file_bytes=20000000)",
    "strided(file_bytes=20000000,stride_bytes=16384,backward=1)",
    "random(file_bytes=50000000)",
    "reordered(file_bytes=20000000,read_bytes=16384,band=4)",
    "retried(file_bytes=20000000)",
];

/// One of each kind; further disk models would repeat the same decisions with other times.
const DEVICES: [&str; 6] = [
    "instant",
    "switching",
    "hp97560",
    "ssd",
    "object_store",
    "array",
];

fn grid() -> String {
    let mut text = String::from(
        "# preset x device x workload, 16 MiB of memory. Regenerate: FORERUN_BLESS=1 cargo test \
         -p forerun-sim golden\n",
    );
    for device in DEVICES {
        for workload in WORKLOADS {
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
            for preset in preset::LIST {
                text.push_str(&line(preset.name, device, workload));
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
