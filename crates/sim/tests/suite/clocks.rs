//! Every nanosecond is accounted for once: computing, driver and stall make up elapsed time.
//!
//! The world checks each reader's sum itself; these tests check the parts.

use forerun_baselines::PRESETS;
use forerun_core::Nanos;
use forerun_sim::{Report, Scene, device, workload};

use crate::stage::{DISK, MEMORY, SMALL, run, settings};

fn with_driver(preset: &str, text: &str, per_fetch: u64, copy_rate: u64) -> Report {
    let workload = workload::parse(text).unwrap();
    let device = device::parse(DISK).unwrap();
    let mut scene = Scene::new(settings(preset, MEMORY), device, &*workload);
    scene.driver_per_fetch = Nanos(per_fetch);
    scene.copy_bytes_per_second = copy_rate;
    scene.run(&mut ()).unwrap()
}

#[test]
fn nothing_waits_on_the_instant_device() {
    for preset in PRESETS {
        for text in SMALL {
            let report = run(preset.name, "instant", text);
            assert_eq!(report.stall(), Nanos(0), "{} {text}", preset.name);
            let compute = report.readers.iter().map(|r| r.compute).max().unwrap();
            assert_eq!(report.elapsed, compute, "{} {text}", preset.name);
        }
    }
}

#[test]
fn the_engine_counts_the_stall_that_readers_feel() {
    for preset in PRESETS {
        for text in SMALL {
            let report = run(preset.name, DISK, text);
            assert_eq!(
                report.ledger.stall,
                report.stall(),
                "{} {text}",
                preset.name
            );
            let utilisation = report.devices[0].utilisation(report.quiet);
            assert!((0.0..=1.0).contains(&utilisation), "{utilisation}");
        }
    }
}

/// 50 demand reads of 64 KiB in a row: one switch and 50 transfers, each beside the driver's work.
#[test]
fn the_driver_costs_what_it_is_said_to_cost() {
    let text = "sequential(file_bytes=3276800,think_ns=1000)";
    let report = with_driver("none", text, 500_000, 0);
    let reader = report.readers[0];
    assert_eq!(reader.compute, Nanos(50 * 1_000));
    assert_eq!(reader.driver, Nanos(50 * 500_000));
    assert_eq!(reader.stall, Nanos(8_000_000 + 50 * (819_200 - 500_000)));
    assert_eq!(
        reader.elapsed.0,
        reader.compute.0 + reader.driver.0 + reader.stall.0
    );
}

#[test]
fn copying_takes_time_at_its_rate_and_from_nobody_else() {
    let text = "many-readers(file_bytes=1048576,readers=3)";
    for preset in PRESETS {
        let report = with_driver(preset.name, text, 0, 1_000_000_000);
        for reader in &report.readers {
            let least = 1_048_576;
            assert!(
                (least..least + 300).contains(&reader.driver.0),
                "{}",
                reader.driver
            );
        }
    }
}

#[test]
fn computing_hides_fetching_where_it_is_read_ahead() {
    let text = "sequential(file_bytes=10000000,think_ns=1000000)";
    let (none, forerun) = (run("none", DISK, text), run("forerun", DISK, text));
    assert!(
        forerun.stall().0 * 5 < none.stall().0,
        "{} {}",
        forerun.stall(),
        none.stall()
    );
}
