//! The claims of the papers as `forerun reproduce` measures them, as far as they are quick: those
//! that depend on no disk are met exactly, what was searched for says so, nothing is left out.
//!
//! All of them, over every trace and array, are a minute of computing: `forerun reproduce
//! kimbrel96`. Here is a part of that grid.

#[path = "../../skipped.rs"]
mod skipped;

use forerun_core::settings::Notice;
use forerun_core::{Bytes, Nanos};
use forerun_sim::reproduce::array::{ArrayRun, Host};
use forerun_sim::reproduce::lab::Lab;
use forerun_sim::reproduce::{
    self, Chart, Finding, Measured, Reproduction, Verdict, Wanted, one_by_one,
};

fn measured(only: &[&str]) -> Reproduction {
    let wanted = Wanted {
        notices: vec![Notice::AtReads, Notice::AtOnce],
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        exhibits: true,
    };
    let paper = reproduce::find("kimbrel96").unwrap();
    paper.reproduce(&wanted, &mut one_by_one).unwrap()
}

/// What was measured under the paper's moment.
fn at_reads<'a>(findings: &'a [Finding], id: &str) -> &'a Measured {
    finding(findings, id).at(Notice::AtReads).unwrap()
}

fn finding<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.claim.id == id);
    found.unwrap()
}

#[test]
fn every_claim_and_every_exhibit_of_kimbrel96_has_a_name() {
    let items = reproduce::find("kimbrel96").unwrap().items().unwrap();
    let claims: Vec<String> = (1..=18).map(|number| format!("K{number}")).collect();
    assert_eq!(items[..18], claims);
    let exhibits: Vec<String> = [2, 4, 5, 7, 8]
        .map(|number| format!("table-{number}"))
        .into_iter()
        .chain((2..=10).map(|number| format!("figure-{number}")))
        .chain(["runs".to_owned()])
        .collect();
    assert_eq!(items[18..], exhibits);
}

#[test]
fn claims_about_synth_and_the_theory_are_measured() {
    let met = ["K1", "K2", "K3", "K4", "K5", "K6", "K7", "K9", "K10", "K18"];
    let all = measured(&[met.as_slice(), &["K8"]].concat());
    assert_eq!(all.findings.len(), met.len() + 1);
    let fitted = ["K4", "K5", "K7", "K9"];
    for id in met {
        let finding = at_reads(&all.findings, id);
        let expected = Verdict::Met.fitted(fitted.contains(&id));
        assert_eq!(finding.verdict, expected, "{finding:?}");
    }
    let outside = at_reads(&all.findings, "K8");
    assert_eq!(outside.verdict, Verdict::Differs, "{outside:?}");
    // A figure that was looked for says so, and what Table 6 gives.
    for id in fitted {
        let fit = at_reads(&all.findings, id).fit().unwrap_or_default();
        assert!(
            fit.contains("found by search") && fit.contains("Table 6"),
            "{fit}"
        );
    }
    // One that does not hold is not made to by being fitted.
    let k9 = finding(&all.findings, "K9").at(Notice::AtOnce).unwrap();
    assert!(
        k9.verdict == Verdict::Differs && k9.fit().is_some(),
        "{k9:?}"
    );
}

#[test]
fn claims_about_one_stand_in_are_measured_and_say_that_it_is_one() {
    let all = measured(&["K15", "K16", "figure-7"]);
    for id in ["K15", "K16"] {
        let finding = at_reads(&all.findings, id);
        assert_eq!(finding.verdict, Verdict::Met, "{finding:?}");
        assert!(finding.note.contains("stand-in"), "{finding:?}");
    }
    let [figure] = all.exhibits.as_slice() else {
        panic!("{:?}", all.exhibits);
    };
    for table in &figure.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()));
    }
    let lines = |chart: &Chart| match chart {
        Chart::Lines { lines, .. } => lines.len(),
        Chart::Bars { .. } => 0,
    };
    assert_eq!(figure.charts.iter().map(lines).sum::<usize>(), 3 + 5);
}

/// K11 and what K12 is about, on two arrays.
#[test]
fn on_every_trace_prefetching_beats_demand_fetching() {
    let traces = [
        "dinero",
        "cscope1",
        "cscope2",
        "cscope3",
        "glimpse",
        "ld",
        "postgres-join",
        "postgres-select",
        "xds",
        "synth",
    ];
    let all_traces = reproduce::lab::Traces::default();
    let mut lab = Lab::default();
    let policies = ["demand-opt", "fixed-horizon", "aggressive", "forestall"];
    for round in 0..2 {
        for trace in traces {
            for disks in [1, 4] {
                let runs = policies.map(|policy| lab.run(trace, policy, disks));
                if round == 1 {
                    let [demand, methods @ ..] = runs.map(|run| run.elapsed);
                    let is_faster = methods.iter().all(|elapsed| *elapsed < demand);
                    assert!(is_faster, "{trace} on {disks}: {demand:?} {methods:?}");
                }
            }
        }
        for (job, done) in one_by_one(&all_traces, lab.missing()).unwrap() {
            lab.learn(job, done);
        }
    }
}

/// Every other read of an index join misses, so the horizon rule always has a fetch under way.
#[test]
fn horizon_fetches_do_not_keep_forestalls_batches_away() {
    let traces = reproduce::lab::Traces::default();
    let mut lab = Lab::default();
    let run = |lab: &mut Lab, policy| lab.run("postgres-join", policy, 1).elapsed.0;
    for policy in ["forestall", "aggressive"] {
        run(&mut lab, policy);
    }
    for (job, done) in one_by_one(&traces, lab.missing()).unwrap() {
        lab.learn(job, done);
    }
    let (forestall, aggressive) = (run(&mut lab, "forestall"), run(&mut lab, "aggressive"));
    assert!(
        forestall <= aggressive / 100 * 102,
        "{forestall} {aggressive}"
    );
}

/// A minute of computing, so only where it is asked for.
#[test]
fn all_claims_fare_as_docs_reproduce_says() {
    #[expect(clippy::disallowed_methods, reason = "a test may be asked for more")]
    let asked = std::env::var_os("FORERUN_REPRODUCE").is_some();
    if !asked {
        skipped::skipped("a minute of computing: set FORERUN_REPRODUCE");
        return;
    }
    let paper = reproduce::find("kimbrel96").unwrap();
    let notices = vec![Notice::AtReads, Notice::AtOnce];
    let wanted = Wanted {
        notices,
        ..Wanted::default()
    };
    let findings = paper.reproduce(&wanted, &mut one_by_one).unwrap().findings;
    let differ = |notice| {
        let differs = |f: &&Finding| f.at(notice).unwrap().verdict == Verdict::Differs;
        let differ = findings.iter().filter(differs);
        differ.map(|f| f.claim.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(differ(Notice::AtReads), ["K8", "K12", "K14", "K17"]);
    assert_eq!(differ(Notice::AtOnce), ["K8", "K9", "K12", "K14", "K17"]);
}

fn of_arrays(only: &[&str]) -> Reproduction {
    let wanted = Wanted {
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        ..Wanted::default()
    };
    let paper = reproduce::find("baek09").unwrap();
    paper.reproduce(&wanted, &mut one_by_one).unwrap()
}

#[test]
fn every_claim_and_every_figure_of_baek09_has_a_name() {
    let items = reproduce::find("baek09").unwrap().items().unwrap();
    let claims: Vec<String> = (1..=10).map(|number| format!("B{number}")).collect();
    assert_eq!(items[..10], claims);
    assert_eq!(items[10..], ["figure-8", "figure-9", "figure-10"]);
}

/// B4 in full; of the others a minute of computing is asked for below.
#[test]
fn the_worked_examples_of_baek09_are_exact_and_one_reader_gains_by_stripes() {
    let all = of_arrays(&["B1", "B2", "B4"]);
    for id in ["B1", "B2", "B4"] {
        let [measured] = finding(&all.findings, id).measured.as_slice() else {
            panic!("{id} is measured once");
        };
        assert_eq!(measured.verdict, Verdict::Met, "{measured:?}");
    }
}

/// A small one: a second of 16 readers, 1 GB of files.
#[test]
fn a_run_on_an_array_is_the_same_every_time_and_strips_help_many_readers() {
    let run = |preset| ArrayRun {
        workload: "iozone(total_bytes=1073741824,streams=16,think_ns=4000)".to_owned(),
        preset,
        shape: None,
        prefetch: Bytes(128 << 10),
        strip: Bytes(256 << 10),
        host: Host::Linux,
        is_aligned: false,
        time: Nanos(1_000_000_000),
    };
    let rates = ["seqp", "saseqp"].map(|preset| {
        let report = run(preset).perform().unwrap();
        assert_eq!(report, run(preset).perform().unwrap(), "{preset}");
        println!("{preset}: {report:?}");
        report.rate()
    });
    assert!(rates[1] > 1.2 * rates[0], "{rates:?}");
}

#[test]
fn a_preset_or_workload_there_is_not_is_an_error_of_the_run() {
    let run = ArrayRun {
        workload: "iozone(streams=0)".to_owned(),
        preset: "seqp",
        shape: None,
        prefetch: Bytes(0),
        strip: Bytes(65_536),
        host: Host::Fcfs,
        is_aligned: true,
        time: Nanos(1),
    };
    assert!(run.perform().is_err());
    let preset = "sequp";
    assert!(ArrayRun { preset, ..run }.perform().is_err());
}

/// A minute of computing as well.
#[test]
fn all_claims_of_baek09_fare_as_docs_reproduce_says() {
    #[expect(clippy::disallowed_methods, reason = "a test may be asked for more")]
    let asked = std::env::var_os("FORERUN_REPRODUCE").is_some();
    if !asked {
        skipped::skipped("a minute of computing: set FORERUN_REPRODUCE");
        return;
    }
    let findings = of_arrays(&[]).findings;
    let differ = findings
        .iter()
        .filter(|f| f.measured[0].verdict == Verdict::Differs);
    let differ: Vec<&str> = differ.map(|f| f.claim.id.as_str()).collect();
    assert_eq!(differ, ["B3", "B5", "B6", "B7", "B8", "B9"]);
}

#[test]
fn runs_that_nobody_makes_are_an_error_and_no_endless_loop() {
    let paper = reproduce::find("kimbrel96").unwrap();
    let refused = paper.reproduce(&Wanted::default(), &mut |_, _| Ok(Vec::new()));
    assert_eq!(refused, Err(reproduce::Broken::Undone));
}

#[test]
fn a_paper_there_is_not_is_answered_with_those_there_are() {
    let refused = reproduce::find("kimbrel95").unwrap_err();
    assert!(refused.contains("kimbrel96"), "{refused}");
}
