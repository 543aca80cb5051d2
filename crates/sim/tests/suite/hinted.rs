//! The live engine with hints: what they gain when they are right, and cost when they are not.
//!
//! One process reads pieces of two files in a shuffled order; the files lie on two disks of 8 ms
//! and 80 MB/s. Nobody can see a pattern in that, so without hints one disk works at a time.

use forerun_core::{Settings, settings};
use forerun_sim::announce::Announced;
use forerun_sim::device::{self, Device};
use forerun_sim::workload::{self, Workload};
use forerun_sim::wrap::{Fault, Faults};
use forerun_sim::{Report, Scene, Text};

use crate::stage::{self, DISK};

const SHUFFLED: &str = "shuffled(file_bytes=20000000)";
const MEMORY: u64 = 16 << 20;

/// A run: on how many disks, with hints of which so many of a hundred are wrong or missing.
#[derive(Clone)]
struct Run {
    settings: Settings,
    disks: usize,
    wrong_percent: u8,
    missing_percent: u8,
    faults: Option<Faults>,
}

fn with(policy: &str) -> Run {
    let mut settings = stage::settings("forerun", MEMORY);
    settings.hinted = settings::parse_hinted(policy).unwrap();
    Run {
        settings,
        disks: 2,
        wrong_percent: 0,
        missing_percent: 0,
        faults: None,
    }
}

impl Run {
    fn recorded(&self, workload: &dyn Workload) -> (Report, String) {
        let announced = Announced {
            workload,
            wrong_percent: self.wrong_percent,
            missing_percent: self.missing_percent,
            seed: 5,
        };
        let disk = || device::parse(DISK).unwrap();
        let devices = (0..self.disks).map(|_| match self.faults {
            Some(faults) => Box::new(Fault::new(disk(), faults)) as Box<dyn Device>,
            None => disk(),
        });
        let scene = Scene {
            devices: devices.collect(),
            ..Scene::new(self.settings.clone(), disk(), &announced)
        };
        let mut text = Text::new(String::new());
        let report = scene.run(&mut text).unwrap_or_else(|e| panic!("{e}"));
        assert!(report.ledger.memory_peak <= self.settings.memory);
        assert_eq!(report.ledger.refused_inputs, 0);
        (report, text.finish().unwrap())
    }

    fn on(&self, workload: &str) -> Report {
        self.recorded(&*workload::parse(workload).unwrap()).0
    }
}

/// Times are exact in virtual time; these bounds are the claims, not measurements.
#[test]
fn forestall_with_right_hints_is_as_fast_as_both_disks_at_once() {
    let without = with("none").on(SHUFFLED);
    let forestall = with("forestall").on(SHUFFLED);
    let busiest = forestall.devices.iter().map(|d| d.usage.busy).max();
    assert_eq!(Some(forestall.elapsed), busiest, "a disk never idles");
    assert!(2 * forestall.elapsed.0 < without.elapsed.0);
    assert_eq!(forestall.ledger.misses, 0);
    let ledger = forestall.ledger;
    assert_eq!((ledger.hints_read, ledger.hints_missed), (ledger.hints, 0));
    assert_eq!(
        ledger.used, ledger.prefetched,
        "nothing was fetched in vain"
    );
}
