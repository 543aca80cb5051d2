//! The claims of Kimbrel et al. 1996 that need no disk model, and the methods on a constant one.
//!
//! K1 (Figure 1), K2 and K3 (fetches on `synth`) are exact. The shape of Figure 3 is tested on
//! disks of one time, where it must show as well: which methods stall, and which fetch more.

use forerun_baselines::METHODS;
use forerun_core::Nanos;
use forerun_lab::theory::figure_1;
use forerun_sim::device::Device;
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::constant::Constant;
use forerun_sim::hinted::host::Notice;
use forerun_sim::hinted::host::{self, Host, HostReport};
use forerun_sim::hinted::optimum::optimum;
use forerun_sim::hinted::synth::{CACHE_BLOCKS, synth};
use forerun_sim::hinted::unit;

/// Sequential accesses take 3 to 4 ms on the paper's disk (section 4.2).
const SERVICE: Nanos = Nanos(3_300_000);

fn on_synth(policy: &str, disks: u16, service: Nanos) -> HostReport {
    let setup = Setup::of(policy, disks, CACHE_BLOCKS, &METHODS).unwrap();
    let devices = (0..disks).map(|_| Box::new(Constant::new(service)) as Box<dyn Device>);
    let host = Host {
        notice: Notice::AtReads,
        ..Host::default()
    };
    let report = host::run(&setup, &host, &synth(disks, 1), devices.collect()).unwrap();
    assert!(report.adds_up(), "{policy} on {disks}: {report:?}");
    assert_eq!(report.refused, 0, "{policy} on {disks}");
    report
}

#[test]
fn figure_1_costs_7_under_aggressive_and_6_at_best() {
    let run = |policy: &str| {
        let setup = Setup::of(policy, 2, 4, &METHODS).unwrap();
        unit::run(&setup, &figure_1().instance)
            .unwrap()
            .elapsed_units
    };
    assert_eq!(run("aggressive(batch_blocks=1)"), 7);
    // For caches this small, fixed horizon behaves in the same way (section 1.2).
    assert_eq!(run("fixed-horizon(horizon_refs=2)"), 7);
    assert_eq!(optimum(&figure_1().instance, 4), Some(6));
}

#[test]
fn synth_costs_optimal_demand_fetching_37280_fetches() {
    for disks in [1, 4] {
        let report = on_synth("demand-opt", disks, SERVICE);
        assert_eq!(report.fetches(), 37_280);
    }
}

#[test]
fn synth_costs_lru_every_read() {
    assert_eq!(on_synth("demand-lru", 1, SERVICE).fetches(), 100_000);
}

#[test]
fn synth_costs_fixed_horizon_38000_fetches_whatever_the_disks_are_like() {
    for disks in 1..=4 {
        for service in [0, 1_000_000, 3_300_000, 10_000_000, 40_000_000] {
            let report = on_synth("fixed-horizon", disks, Nanos(service));
            assert_eq!(report.fetches(), 38_000, "{disks} disks of {service} ns");
        }
    }
}

/// Section 4.2 does not say with which batches Figure 3 was made. With 40 on one disk, instead of
/// Table 6's 80, which section 4.3 is about, aggressive hits the published count to the block on a
/// disk that takes the paper's mean, 155.8 s over 39,240 fetches. Other disks come close.
#[test]
fn synth_on_one_disk_costs_aggressive_39240_fetches() {
    let fetches = |service| {
        let report = on_synth("aggressive(batch_blocks=40)", 1, Nanos(service));
        report.fetches()
    };
    assert_eq!(fetches(3_970_000), 39_240);
    for service in [3_300_000, 4_500_000, 5_000_000] {
        assert!(
            fetches(service).abs_diff(39_240) <= 39_240 / 50,
            "{service} ns"
        );
    }
}

/// The best estimate of F and the best batches were taken for each array (section 4.4), and are
/// not printed. These give the published counts, on any disk: the plan does not ask the clock.
#[test]
fn synth_costs_reverse_aggressive_what_the_paper_says() {
    for (disks, parameters, fetches) in [
        (
            1,
            "fetch_percent=400,batch_blocks=40,reverse_batch_blocks=40",
            39_265,
        ),
        (
            2,
            "fetch_percent=800,batch_blocks=40,reverse_batch_blocks=40",
            42_000,
        ),
        (
            3,
            "fetch_percent=4000,batch_blocks=40,reverse_batch_blocks=4",
            37_907,
        ),
    ] {
        for service in [1_000_000, 3_300_000, 10_000_000] {
            let policy = format!("reverse-aggressive({parameters})");
            let report = on_synth(&policy, disks, Nanos(service));
            assert_eq!(report.fetches(), fetches, "{disks} disks of {service} ns");
        }
    }
}

/// The shape of Figure 3 and of Figure 8's left half, which disks of one time show as well.
#[test]
fn synth_shows_who_stalls_and_who_fetches_more() {
    let elapsed = |policy: &str, disks| on_synth(policy, disks, SERVICE).elapsed;
    // I/O bound: the bolder the better, and forestall as good as the boldest.
    assert!(elapsed("fixed-horizon", 1) < elapsed("demand-opt", 1));
    assert!(elapsed("aggressive", 1) < elapsed("fixed-horizon", 1));
    assert!(elapsed("forestall", 1).0 <= elapsed("aggressive", 1).0 * 102 / 100);
    // Compute bound: no method stalls, and aggressive fetches every block for every reference.
    for disks in [3, 4, 8, 16] {
        let [horizon, aggressive, forestall] = ["fixed-horizon", "aggressive", "forestall"]
            .map(|policy| on_synth(policy, disks, SERVICE));
        for report in [&horizon, &aggressive, &forestall] {
            assert!(
                report.stall < Nanos(10_000_000),
                "{disks} disks: {report:?}"
            );
        }
        assert!(aggressive.fetches() >= 99_000, "{disks} disks");
        assert!(horizon.elapsed < aggressive.elapsed, "{disks} disks");
        assert!(
            forestall.elapsed.0 <= horizon.elapsed.0 * 102 / 100,
            "{disks} disks"
        );
    }
}

/// All methods on arrays of 1 to 16 disks: seconds, so that grids are cheap.
#[test]
fn the_whole_grid_runs_and_adds_up() {
    for method in METHODS.hinted {
        for disks in (1..=8).chain([10, 12, 16]) {
            let report = on_synth(method.spec.name, disks, SERVICE);
            println!(
                "{:18} {disks:2} disks {:6} fetches {:4} unused {:5} ms stall {:6} ms elapsed",
                method.spec.name,
                report.fetches(),
                report.ledger.evicted_unused,
                report.stall.0 / 1_000_000,
                report.elapsed.0 / 1_000_000,
            );
        }
    }
}
