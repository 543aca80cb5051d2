//! A scene decides its run: twice the same scene, twice the same journal.

use forerun_baselines::PRESETS;
use forerun_core::Nanos;
use forerun_sim::wrap::{Fault, Faults};
use forerun_sim::{Scene, device, workload};

use crate::stage::{DISK, SMALL, settings};

#[test]
fn the_same_scene_gives_the_same_journal() {
    let faults = Faults {
        seed: 7,
        failed_per_mille: 20,
        short_per_mille: 20,
        delayed_per_mille: 50,
        delay_max: Nanos(30_000_000),
    };
    for preset in PRESETS {
        for text in SMALL {
            let workload = workload::parse(text).unwrap();
            let run = || {
                let mut journal = Vec::new();
                let device = Fault::new(device::parse(DISK).unwrap(), faults);
                let scene = Scene::new(settings(preset.name, 3 << 20), device, &*workload);
                let report = scene.run(&mut journal).unwrap();
                (report, journal)
            };
            let (first, second) = (run(), run());
            assert!(first == second, "{} {text}", preset.name);
            assert!(first.1.len() > 10);
        }
    }
}

#[test]
fn another_seed_gives_another_run() {
    let run = |seed: u64| {
        let text = format!("random(reads=100,seed={seed})");
        crate::stage::run("forerun", DISK, &text).digest
    };
    assert_ne!(run(1), run(2));
}
