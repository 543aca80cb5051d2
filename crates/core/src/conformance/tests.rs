//! Every entry of every list conforms, and each kind of lie is found.

mod ends;
mod estimates;
mod liars;

use super::*;
use crate::spec::Method;
use crate::{
    depth as depths, detect as detects, dispatch as dispatches, hinted::policy, layout as layouts,
    measure as measures, next_file as next_files, shape as shapes,
};
use alloc::boxed::Box;
use core::ops::Range;
use std::println;

const SEEDS: Range<u64> = 0..20;

/// One of the suites.
type Suite<B> = fn(&dyn Fn() -> B, u64, &[Rule]) -> Result<(), Broken>;

/// Runs a suite over a list, with parameters at their corners.
fn run<B>(family: &str, list: &'static [Method<B>], suite: Suite<B>) {
    for method in list {
        let name = method.spec.name;
        let corners = corners(&method.spec);
        println!(
            "{family} {name}: {} settings, seeds {SEEDS:?}",
            corners.len()
        );
        for values in corners {
            for seed in SEEDS {
                let result = suite(&|| method.of(&values), seed, &[]);
                assert_eq!(result, Ok(()), "{family} {name}{values:?}");
            }
        }
    }
}

#[test]
fn every_depth_method_conforms() {
    run("depth", depths::LIST, depth);
}

#[test]
fn every_detect_method_conforms() {
    run("detect", detects::LIST, detect);
}

#[test]
fn every_dispatch_method_conforms() {
    run("dispatch", dispatches::LIST, dispatch);
}

#[test]
fn every_layout_conforms() {
    run("layout", layouts::LIST, layout);
}

#[test]
fn every_hinted_method_conforms() {
    run("hinted", policy::LIST, hinted);
}

#[test]
fn every_measure_method_conforms() {
    run("measure", measures::LIST, measure);
}

#[test]
fn every_next_file_method_conforms() {
    run("next_file", next_files::LIST, next_file);
}

#[test]
fn every_shape_method_conforms() {
    run("shape", shapes::LIST, shape);
}

#[test]
fn a_shape_method_that_lies_is_found() {
    for (rule, lie) in ends::ENDS {
        let make = || ends::Ends::boxed(*lie);
        assert_eq!(broken(shape, &make), Some(*rule), "{lie:?}");
    }
}

/// The rule that a method breaks first, whatever the seed.
fn broken<B>(suite: Suite<B>, make: &dyn Fn() -> B) -> Option<Rule> {
    let mut results = SEEDS.map(|seed| suite(make, seed, &[]));
    results.find_map(Result::err).map(|broken| broken.rule)
}

#[test]
fn a_depth_method_that_lies_is_found() {
    for (rule, limit) in liars::DEPTHS {
        let make = || Box::new(liars::Lies(*limit)) as Box<dyn depths::Depth>;
        assert_eq!(broken(depth, &make), Some(*rule));
    }
    let make = || Box::new(liars::Counts::default()) as Box<dyn depths::Depth>;
    assert_eq!(broken(depth, &make), Some(Rule::Deterministic));
}

#[test]
fn a_detect_method_that_lies_is_found() {
    for (rule, lie) in liars::WINDOWS {
        let make = || liars::Twisted::boxed(lie);
        assert_eq!(broken(detect, &make), Some(*rule), "{lie:?}");
    }
}

#[test]
fn a_dispatch_method_that_lies_is_found() {
    for (rule, method) in liars::ORDERS {
        let make = || Box::new(liars::Orders(*method)) as Box<dyn dispatches::Dispatch>;
        assert_eq!(broken(dispatch, &make), Some(*rule), "{method:?}");
    }
}

#[test]
fn a_hinted_method_that_lies_is_found() {
    for (rule, lie) in liars::PAIRS {
        let make = || Box::new(liars::Wrong(*lie)) as Box<dyn policy::Policy>;
        assert_eq!(broken(hinted, &make), Some(*rule), "{lie:?}");
    }
}

#[test]
fn a_measure_method_that_lies_is_found() {
    for (rule, lie) in estimates::ESTIMATES {
        let make = || Box::new(estimates::Guesses::new(*lie)) as Box<dyn measures::Measure>;
        assert_eq!(broken(measure, &make), Some(*rule), "{lie:?}");
    }
}

#[test]
fn a_layout_that_lies_is_found() {
    for (rule, piece) in liars::PIECES {
        let make = || Box::new(liars::Misplaces(*piece)) as Box<dyn layouts::Layout>;
        assert_eq!(broken(layout, &make), Some(*rule));
    }
}
