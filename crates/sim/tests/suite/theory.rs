//! Results that follow by arithmetic: closed forms against the simulated engine.
//!
//! The disk is the switching device: a request that does not continue the last costs C = 8 ms,
//! then bytes at R = 80 MB/s; D = C x R = 640 kB is the competitive depth. Times of runs are given
//! in units of C, lengths in units of D, so that moving D takes 1.

use forerun_baselines::METHODS;
use forerun_core::depth::{Depth, DeviceFacts, StreamFacts};
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Profile};
use forerun_sim::device::transfer_time;
use proptest::prelude::*;

use crate::stage::{DISK, run};

const COST: u64 = 8_000_000;
const RATE: u64 = 80_000_000;
const DEPTH: u64 = 640_000;

fn transfer(bytes: u64) -> u64 {
    transfer_time(Bytes(bytes), RATE).0
}

/// Alone on the disk: one switch, then every read waits for its own transfer.
#[test]
fn demand_reads_alone_take_one_switch_and_all_transfers() {
    for (read, reads) in [(4096, 1000), (65536, 200), (1 << 20, 50)] {
        let text = format!("sequential(file_bytes={},read_bytes={read})", read * reads);
        let report = run("none", DISK, &text);
        assert_eq!(report.elapsed.0, COST + reads * transfer(read), "{text}");
        assert_eq!(report.stall(), report.elapsed);
        assert_eq!(report.devices[0].usage.switches, 1);
    }
}

/// In turn with others: every read switches.
#[test]
fn demand_reads_of_many_readers_switch_every_time() {
    for readers in [2, 5] {
        let text = format!("many-readers(file_bytes=6553600,readers={readers})");
        let report = run("none", DISK, &text);
        assert_eq!(
            report.elapsed.0,
            readers * 100 * (COST + transfer(65536)),
            "{text}"
        );
        assert_eq!(report.device_busy(), report.elapsed);
    }
}

/// Windows of one stream between those of others: 32 blocks, 64, 128 while it ramps up, then the
/// depth, 157 blocks. The reader that waits for a window has passed its mark, so the next one is
/// on its way, too; on a first-come device the two end up side by side, and one switch pays for
/// both: half of all requests are adjacent.
#[test]
fn competitive_depth_takes_a_switch_every_two_windows() {
    let (readers, blocks) = (4_u64, 20_000_u64);
    let text = format!(
        "many-readers(file_bytes={},readers={readers})",
        blocks * 4096
    );
    let report = run("cp", DISK, &text);
    let ramp = [32, 64, 128];
    let left = blocks - ramp.iter().sum::<u64>();
    let windows = ramp.len() as u64 + left.div_ceil(DEPTH.div_ceil(4096));
    let usage = report.devices[0].usage;
    assert_eq!(usage.requests, readers * windows);
    let busy = usage.switches * COST + transfer(readers * blocks * 4096);
    // Each transfer is rounded up to a nanosecond.
    assert!((busy..busy + usage.requests).contains(&usage.busy.0));
    assert!(
        usage.switches.abs_diff(usage.requests / 2) <= readers,
        "{usage:?}"
    );
}

/// The depth rule of core, with a depth of `unit` bytes.
struct Rule {
    depth: Box<dyn Depth>,
    profile: Profile,
    unit: u64,
}

impl Rule {
    fn new(text: &str) -> Self {
        let depth = Choice::parse("depth", METHODS.depth, text).unwrap().build();
        // One second at 1 GB/s: a million steps to each thousandth of D.
        let profile = Profile::constant(Nanos(1_000_000_000), 1_000_000_000).unwrap();
        Self {
            depth,
            profile,
            unit: 1_000_000_000,
        }
    }

    fn growing(alpha_percent: u64) -> Self {
        Self::new(&format!("growing(alpha_percent={alpha_percent})"))
    }

    /// Windows and bytes fetched for a run of this length: each window costs one switch and all
    /// its bytes, read or not.
    fn fetched(&self, run: u64) -> (u64, u64) {
        let (mut switches, mut fetched, mut last) = (0, 0, 0);
        while fetched < run {
            last = self.window(fetched, last);
            fetched += last;
            switches += 1;
        }
        (switches, fetched)
    }

    /// Device time over the optimum's, which pays one switch and the bytes of the run.
    fn ratio(&self, run: u64) -> f64 {
        let (switches, fetched) = self.fetched(run);
        (switches * self.unit + fetched) as f64 / (self.unit + run) as f64
    }

    /// The same for a run that ends with its file, past which nothing is fetched.
    fn ratio_of_file(&self, run: u64) -> f64 {
        let (switches, _) = self.fetched(run);
        (switches * self.unit + run) as f64 / (self.unit + run) as f64
    }

    /// The worst ratio of any run up to 2000 D: one byte longer than some windows together, so
    /// that one more is fetched for nothing.
    fn worst(&self) -> f64 {
        self.ends(2000 * self.unit)
            .iter()
            .map(|end| self.ratio(end + 1))
            .fold(0.0, f64::max)
    }

    /// The run lengths, in bytes, at which windows end, up to `limit`. A run one byte longer
    /// costs a whole window more, so there the ratio is worst.
    fn ends(&self, limit: u64) -> Vec<u64> {
        let (mut ends, mut fetched, mut last) = (vec![0], 0, 0);
        while fetched < limit {
            last = self.window(fetched, last);
            fetched += last;
            ends.push(fetched);
        }
        ends
    }

    fn window(&self, consumed: u64, last: u64) -> u64 {
        let mut stream = StreamFacts::default();
        stream.consumed = Bytes(consumed);
        stream.last_window = Bytes(last);
        stream.waited = true;
        let device = DeviceFacts::new(&self.profile, Bytes(0), 1);
        self.depth.limit(&stream, &device).0
    }
}

/// alpha in per cent; the worst ratio of all run lengths; the ratio of a file of 200 D. The
/// worst cases are those of the closed form (`docs/design/0003-growing-depth.md`).
const GROWING: [(u64, f64, f64); 3] =
    [(0, 2.0000, 1.990), (25, 2.0431, 1.104), (50, 2.1364, 1.065)];

#[test]
fn the_growing_rule_has_its_closed_form() {
    for (alpha, worst, at_200) in GROWING {
        let rule = Rule::growing(alpha);
        let (found, long) = (rule.worst(), rule.ratio_of_file(200 * rule.unit));
        println!("alpha {alpha} %: worst {found:.4}, at 200 D {long:.4}");
        assert!(
            (found - worst).abs() < 0.0001,
            "alpha {alpha}: worst {found}"
        );
        assert!(
            (long - at_200).abs() < 0.001,
            "alpha {alpha}: {long} at 200 D"
        );
    }
}

/// One eighth is 12.5 %, which whole per cents cannot say: its 2.0127 lies between its neighbours.
#[test]
fn one_eighth_lies_between_its_neighbours() {
    let (low, high) = (Rule::growing(12).worst(), Rule::growing(13).worst());
    println!("worst at 12 %: {low:.4}, at 13 %: {high:.4}");
    assert!(low <= 2.0127 && 2.0127 <= high, "{low} {high}");
}

/// The 1.16, 1.09 and 1.05 of the closed form at 200 D are the rest if windows grow from byte
/// to byte: 1/a switches up to 1/a, then ln(200 a)/a. Whole windows cost up to 1.5 points more.
#[test]
fn whole_windows_cost_little_more_than_continuous_growth() {
    for (alpha, published) in [(12.5, 1.16), (25.0, 1.09), (50.0, 1.05)] {
        let part: f64 = alpha / 100.0;
        let continuous = (1.0 / part + (200.0 * part).ln() / part + 200.0) / 201.0;
        assert!((continuous - published).abs() < 0.005, "{continuous}");
        let rule = Rule::growing(alpha as u64);
        let whole = rule.ratio_of_file(200 * rule.unit);
        println!("alpha {alpha} %: {continuous:.4} continuous, {whole:.4} in whole windows");
        assert!((continuous..continuous + 0.02).contains(&whole), "{whole}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// No run length is worse than the worst case says, and bytes fetched in vain are at most one
    /// window: the depth, or alpha of the consumed bytes.
    #[test]
    fn no_run_is_worse_than_the_bound(run in 1_u64..1_000_000_000_000, pick in 0_usize..3) {
        let (alpha, worst, _) = GROWING[pick];
        let rule = Rule::growing(alpha);
        let ratio = rule.ratio(run);
        prop_assert!(ratio < worst + 0.0001, "{ratio} at {run}");
        let (_, fetched) = rule.fetched(run);
        prop_assert!(fetched - run <= rule.unit.max(run * alpha / 100));
    }

    /// Competitive depth: at most twice the optimum for every run (Li et al. 2004, section 2.1).
    #[test]
    fn competitive_depth_is_two_competitive(run in 1_u64..1_000_000_000_000) {
        prop_assert!(Rule::new("competitive").ratio(run) <= 2.0);
    }
}

/// Device time of the engine over the optimum's, for `readers` runs of `units` times D.
fn measured(preset: &str, readers: u64, units: u64) -> f64 {
    let bytes = units * DEPTH;
    let report = run(
        preset,
        DISK,
        &format!("many-readers(file_bytes={bytes},readers={readers})"),
    );
    let optimum = readers * (COST + transfer(bytes));
    report.device_busy().0 as f64 / optimum as f64
}

/// The engine against its rule at 200 D. It may lose three switches in 201 to the ramp (32, 64
/// and 128 blocks before the first whole window) and two to windows the memory's share cuts; it may
/// keep its gain from windows side by side.
#[test]
fn the_engine_reaches_the_ratios_of_its_rules() {
    for (preset, rule) in [
        ("cp", Rule::new("competitive")),
        ("forerun", Rule::growing(25)),
    ] {
        for readers in [1, 2, 4] {
            let ideal = rule.ratio_of_file(200 * rule.unit);
            let engine = measured(preset, readers, 200);
            println!("{preset}, {readers} readers: {engine:.4} measured, {ideal:.4} by the rule");
            assert!(
                (1.0..=ideal + 5.0 / 201.0).contains(&engine),
                "{preset}: {engine} {ideal}"
            );
        }
    }
}

/// Files of any length: the rule's own bound, with nothing on top. The ramp opens two windows more
/// than the rule does; windows side by side, for which one switch pays, make up for them.
#[test]
fn files_of_any_length_stay_within_the_bound() {
    for (preset, bound) in [("cp", 2.0), ("forerun", 2.0431)] {
        for units in [1, 2, 3, 5, 8, 13, 21, 34] {
            let ratio = measured(preset, 3, units);
            println!("{preset} {units} D: {ratio:.3}");
            assert!(ratio <= bound, "{preset} {units} D: {ratio}");
        }
    }
}
