//! The rows of the table of systems with too little memory, Li and Shen 2005, section 4.2.
//!
//! Every combination of loads, requests at a time, memory and think times, so that none is chosen
//! by its result. Rows where memory is not short are rows like others.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, preset};
use forerun_sim::{Report, Scene, device};

use super::server::{Load, Server};

/// The five systems of Li and Shen and their approximated optimum, with announced requests; then
/// the preset that is the default.
pub(crate) const SYSTEMS: [&str; 7] = [
    "access-history",
    "pc-access-history",
    "pc-longest",
    "pc-coldest",
    "pc-coldest+",
    "pc-optimal",
    "forerun",
];

/// Heading of the columns.
pub(crate) const HEAD: &str = "load      requests  MiB  think ms     AH  PC-AH  PC-longest  PC-coldest  PC-coldest+  PC-optimal  forerun  forerun/best";

/// Virtual time of a run.
const SECONDS: u64 = 20;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) load: Load,
    /// Requests at a time.
    pub(crate) handlers: usize,
    pub(crate) memory_mib: u64,
    /// The longest time that a request computes before a read.
    pub(crate) think_ms: u64,
}

/// All rows.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let loads = [Load::OneWhole, Load::OneRand, Load::TwoRand];
    let sizes = [32, 100, 200, 400].map(|handlers| [16, 64].map(|memory| (handlers, memory)));
    loads.into_iter().flat_map(move |load| {
        sizes
            .into_iter()
            .flatten()
            .flat_map(move |(handlers, memory_mib)| {
                [0, 4, 40].map(|think_ms| Case {
                    load,
                    handlers,
                    memory_mib,
                    think_ms,
                })
            })
    })
}

impl Case {
    /// A run on one disk.
    pub(crate) fn run(&self, system: &str) -> Report {
        let server = Server {
            load: self.load,
            handlers: self.handlers,
            think_max: self.think_ms * 1_000_000,
            announces: system == "pc-optimal",
        };
        let preset = forerun_baselines::preset(system).expect("a preset");
        let memory = Bytes(self.memory_mib << 20);
        let mut settings = preset.settings(memory).expect("enough memory");
        if system != preset::DEFAULT {
            // The two runs of a request lie in one open file.
            let context = Choice::parse("detect", METHODS.detect, "ondemand(context=1)");
            settings.detect = context.expect("a method");
        }
        let mut scene = Scene::new(settings, device::parse("hdd").expect("a disk"), &server);
        scene.until = Some(Nanos(SECONDS * 1_000_000_000));
        scene.run(&mut ()).expect("a run without faults")
    }

    /// The throughput of each system, in MB/s.
    pub(crate) fn rates(&self) -> [f64; SYSTEMS.len()] {
        let rate = |report: Report| report.bytes.0 as f64 / (SECONDS * 1_000_000) as f64;
        SYSTEMS.map(|system| rate(self.run(system)))
    }

    /// The row as it is printed.
    pub(crate) fn row(&self, rates: &[f64; SYSTEMS.len()]) -> String {
        let load = format!("{:?}", self.load);
        let (handlers, memory, think) = (self.handlers, self.memory_mib, self.think_ms);
        let mut row = format!("{load:9} {handlers:>8} {memory:>4} {think:>9}");
        for (rate, width) in rates.iter().zip([6, 6, 11, 11, 12, 11, 8]) {
            row += &format!(" {rate:>width$.1}");
        }
        let [others @ .., forerun] = rates;
        let best = others.iter().copied().fold(*forerun, f64::max);
        row + &format!(" {:>13.2}", forerun / best)
    }
}
