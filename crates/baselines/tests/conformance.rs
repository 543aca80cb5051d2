//! Every method of this crate conforms, but for the rules that its source breaks.

#![allow(clippy::print_stdout, reason = "a failing seed is found by its line")]

use std::collections::BTreeSet;
use std::ops::Range;

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::conformance::{self, Broken, Rule, corners};
use forerun_core::methods::SHIPPED;
use forerun_core::spec::Method;
use forerun_core::{Bytes, Settings};

const SEEDS: Range<u64> = 0..20;

/// A rule that a method breaks because its source does: the rule and the reason.
const DEVIATIONS: &[(&str, Rule, &str)] = &[
    (
        "linux-2.6.22",
        Rule::InsideIsHonest,
        "Linux 2.6 cut no window: it takes blocks cut off for lost",
    ),
    (
        "linux-2.6.22",
        Rule::WindowAdjoins,
        "as above: the next window begins behind the blocks cut off",
    ),
    (
        "linux-2.6.22",
        Rule::WindowReaches,
        "its windows fall behind a read that is longer than they are",
    ),
    (
        "linux-2.6.3",
        Rule::InsideIsHonest,
        "Linux 2.6 cut no window: it takes blocks cut off for lost",
    ),
    (
        "linux-2.6.3",
        Rule::WindowAdjoins,
        "the next window begins behind blocks that were cut off, or that a congested queue refused",
    ),
    (
        "linux-2.6.10",
        Rule::InsideIsHonest,
        "Linux 2.6 cut no window: it takes blocks cut off for lost",
    ),
    (
        "linux-2.6.10",
        Rule::WindowAdjoins,
        "the next window begins behind blocks that were cut off, or that a congested queue refused",
    ),
    (
        "one-block",
        Rule::WindowInLimit,
        "one block beyond the read, whatever the limit",
    ),
    (
        "reverse-aggressive",
        Rule::NoHarm,
        "by design: a worse victim can share out the load better",
    ),
];

/// One of the suites.
type Suite<B> = fn(&dyn Fn() -> B, u64, &[Rule]) -> Result<(), Broken>;

/// The rules that a method may break.
fn deviations(name: &str) -> Vec<Rule> {
    let own = DEVIATIONS.iter().filter(|(method, ..)| *method == name);
    own.map(|(_, rule, _)| *rule).collect()
}

/// Runs a suite over a list, with parameters at their corners.
fn run<B>(family: &str, list: &'static [Method<B>], suite: Suite<B>) {
    for method in list {
        let name = method.spec.name;
        let but = deviations(name);
        for values in corners(&method.spec) {
            for seed in SEEDS {
                println!("{family} {name}{values:?}, seed {seed}");
                let result = suite(&|| method.of(&values), seed, &but);
                assert_eq!(result, Ok(()), "{family} {name}{values:?}");
            }
        }
    }
}

#[test]
fn every_method_conforms() {
    run(
        "detect",
        forerun_baselines::detect::LIST,
        conformance::detect,
    );
    run("depth", forerun_baselines::depth::LIST, conformance::depth);
    run("shape", forerun_baselines::shape::LIST, conformance::shape);
    run(
        "dispatch",
        forerun_baselines::dispatch::LIST,
        conformance::dispatch,
    );
    run(
        "reclaim",
        forerun_baselines::reclaim::LIST,
        // No rule of it has an excuse.
        |make, seed, _| conformance::reclaim(make, seed),
    );
    run(
        "hinted",
        forerun_baselines::hinted::LIST,
        conformance::hinted,
    );
    run(
        "next_file",
        forerun_baselines::next_file::LIST,
        conformance::next_file,
    );
    run(
        "measure",
        forerun_baselines::measure::LIST,
        conformance::measure,
    );
}

#[test]
fn a_detect_method_breaks_each_rule_that_it_is_excused_from() {
    for method in forerun_baselines::detect::LIST {
        let but = deviations(method.spec.name);
        for excused in &but {
            let others: Vec<Rule> = but.iter().filter(|r| *r != excused).copied().collect();
            let make = || method.of(&corners(&method.spec)[0]);
            let mut found = SEEDS.map(|seed| conformance::detect(&make, seed, &others));
            let found = found.find_map(Result::err).map(|broken| broken.rule);
            assert_eq!(found, Some(*excused), "{}", method.spec.name);
        }
    }
}

/// Of a name in two lists only the first would be found.
#[test]
fn no_name_is_in_a_list_twice() {
    fn names<B>(family: &str, list: &'static [Method<B>]) {
        let names: BTreeSet<_> = list.iter().map(|method| method.spec.name).collect();
        assert_eq!(names.len(), list.len(), "{family}: {names:?}");
    }
    names("detect", METHODS.detect);
    names("depth", METHODS.depth);
    names("shape", METHODS.shape);
    names("dispatch", METHODS.dispatch);
    names("reclaim", METHODS.reclaim);
    names("hinted", METHODS.hinted);
    names("next_file", METHODS.next_file);
    names("measure", METHODS.measure);
    let presets: BTreeSet<_> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(presets.len(), PRESETS.len());
}

#[test]
fn every_preset_builds_and_survives_its_journal_line() {
    for preset in PRESETS {
        let settings = preset.settings(Bytes(64 << 20)).unwrap();
        let read = Settings::parse(&settings.to_string(), &METHODS);
        assert_eq!(read, Ok(settings), "{}", preset.name);
    }
}

#[test]
fn without_these_lists_a_settings_line_with_a_baseline_is_refused_by_its_name() {
    let settings = forerun_baselines::preset("linux-2.6.22")
        .unwrap()
        .settings(Bytes(64 << 20));
    let line = settings.unwrap().to_string();
    let error = Settings::parse(&line, &SHIPPED).unwrap_err().to_string();
    assert_eq!(
        error,
        "no detect method \"linux-2.6.22\": there is ondemand"
    );
}
