//! The claims of the papers as `forerun-lab reproduce` measures them, as far as they are quick: those
//! that depend on no disk are met exactly, values found by search are marked, nothing is left out.
//! All of them, over every trace and array, are minutes of computing: `forerun-lab reproduce
//! kimbrel96`. Here is a sample of that grid ([`Wanted`]), in which every claim has the verdict it
//! has on the whole, which `docs/REPRODUCE.md` lists.
//!
//! In release alone: four minutes with debug assertions, under which `suite` runs the same code.

#![cfg(any(not(debug_assertions), clippy))]
#![expect(
    clippy::print_stdout,
    reason = "findings are shown for a test that fails"
)]

use std::sync::OnceLock;

use forerun_core::{Bytes, Nanos};
use forerun_lab::array::{ArrayRun, Host};
use forerun_lab::lab::{Done, Job, Lab, Traces};
use forerun_lab::{
    self as reproduce, Broken, Chart, Finding, Measured, Reproduction, Verdict, Wanted, one_by_one,
};
use forerun_sim::hinted::host::Notice;
use forerun_sim::hinted::stand_in;

fn measured(only: &[&str]) -> Reproduction {
    let wanted = Wanted {
        notices: vec![Notice::AtReads, Notice::AtOnce],
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        exhibits: true,
        is_sample: true,
        ..Wanted::default()
    };
    let paper = reproduce::find("kimbrel96").unwrap();
    paper.reproduce(&wanted, &mut one_by_one).unwrap()
}

/// The measurement under the paper's moment.
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
        .chain(["stand-ins", "runs"].map(str::to_owned))
        .collect();
    assert_eq!(items[18..], exhibits);
}

/// All claims of Kimbrel et al. 1996 at both moments, in a sample, measured once for all tests.
fn kimbrel96() -> &'static [Finding] {
    static FINDINGS: OnceLock<Vec<Finding>> = OnceLock::new();
    FINDINGS.get_or_init(|| {
        let wanted = Wanted {
            notices: vec![Notice::AtReads, Notice::AtOnce],
            is_sample: true,
            ..Wanted::default()
        };
        let paper = reproduce::find("kimbrel96").unwrap();
        let findings = paper.reproduce(&wanted, &mut threads).unwrap().findings;
        for finding in &findings {
            println!("{finding:?}");
        }
        findings
    })
}

#[test]
fn a_figure_that_was_fitted_says_so_with_the_figure_without_the_fit() {
    for id in ["K4", "K5", "K7", "K9"] {
        let measured = at_reads(kimbrel96(), id);
        assert_eq!(measured.verdict, Verdict::Fitted, "{measured:?}");
        let fit = measured.fit().unwrap_or_default();
        assert!(
            fit.contains("found by search") && fit.contains("Table 6"),
            "{fit}"
        );
    }
    // One that does not hold is not made to by being fitted.
    let k9 = finding(kimbrel96(), "K9").at(Notice::AtOnce).unwrap();
    assert!(
        k9.verdict == Verdict::Differs && k9.fit().is_some(),
        "{k9:?}"
    );
}

#[test]
fn claims_about_one_stand_in_say_that_it_is_one_and_what_was_an_input() {
    for (id, input) in [("K15", "are an input"), ("K16", "was inferred")] {
        let measured = at_reads(kimbrel96(), id);
        assert_eq!(measured.verdict, Verdict::Met, "{measured:?}");
        let note = &measured.note;
        assert!(note.contains("stand-in") && note.contains(input), "{note}");
    }
}

#[test]
fn figure_7_is_a_line_for_each_array() {
    let all = measured(&["figure-7"]);
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

/// Its horizontal axis begins at zero.
#[test]
fn the_figure_over_the_places_of_a_drive_is_drawn() {
    let wanted = Wanted {
        only: vec!["figure-2".to_owned()],
        exhibits: true,
        is_sample: true,
        ..Wanted::default()
    };
    let paper = reproduce::find("li04").unwrap();
    let all = paper.reproduce(&wanted, &mut one_by_one).unwrap();
    let page = reproduce::page::html("li04", "a paper", &[], &all);
    assert_eq!(page.matches("<svg").count(), 2);
}

/// cscope1's is the same without: its loop could only be a little longer.
#[test]
fn every_stand_in_is_listed_with_its_fits_and_both_figures() {
    let all = measured(&["stand-ins"]);
    let table = &all.exhibits[0].tables[0];
    let traces: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    let listed: Vec<&str> = stand_in::LIST.iter().map(|one| one.name).collect();
    assert_eq!(traces, [&listed[..], &["synth"]].concat());
    for row in &table.rows {
        println!("{row:?}");
        assert_eq!(row[1].starts_with("nothing"), row[5] == "-", "{row:?}");
        let is_moved = row[4] != row[5];
        assert!(is_moved || row[5] == "-" || row[0] == "cscope1", "{row:?}");
    }
}

/// K11 and the subject of K12, on two arrays.
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

/// Every other read of an index join misses, so the horizon rule always has a fetch under way. By
/// the published rule a disk that is never free gets no batch.
#[test]
fn horizon_fetches_keep_forestalls_batches_away_only_by_the_published_rule() {
    let traces = reproduce::lab::Traces::default();
    let mut lab = Lab::default();
    let run = |lab: &mut Lab, policy| lab.run("postgres-join", policy, 1).elapsed.0;
    let policies = ["forestall", "forestall(free_disk=1)", "aggressive"];
    for policy in policies {
        run(&mut lab, policy);
    }
    for (job, done) in one_by_one(&traces, lab.missing()).unwrap() {
        lab.learn(job, done);
    }
    let [forestall, published, aggressive] = policies.map(|policy| run(&mut lab, policy));
    assert!(
        forestall <= aggressive / 100 * 102,
        "{forestall} {aggressive}"
    );
    assert!(
        published > aggressive / 100 * 110,
        "{published} {aggressive}"
    );
}

fn differing(findings: &[Finding], notice: Notice) -> Vec<&str> {
    let differs = |f: &&Finding| f.at(notice).unwrap().verdict == Verdict::Differs;
    let differ = findings.iter().filter(differs);
    differ.map(|finding| finding.claim.id.as_str()).collect()
}

/// Of the whole grid the same differ.
#[test]
fn all_claims_of_kimbrel96_fare_as_docs_reproduce_says() {
    assert_eq!(
        differing(kimbrel96(), Notice::AtReads),
        ["K8", "K12", "K14", "K17"]
    );
    assert_eq!(
        differing(kimbrel96(), Notice::AtOnce),
        ["K8", "K9", "K12", "K14", "K17"]
    );
    let fitted = kimbrel96()
        .iter()
        .filter(|f| f.at(Notice::AtReads).unwrap().verdict == Verdict::Fitted);
    let fitted: Vec<&str> = fitted.map(|f| f.claim.id.as_str()).collect();
    assert_eq!(fitted, ["K4", "K5", "K7", "K9"]);
}

/// Two threads; the results are those of one.
fn threads(traces: &Traces, jobs: Vec<Job>) -> Result<Vec<(Job, Done)>, Broken> {
    let (even, odd): (Vec<_>, Vec<_>) = jobs
        .into_iter()
        .enumerate()
        .partition(|(at, _)| at % 2 == 0);
    let of = |jobs: Vec<(usize, Job)>| jobs.into_iter().map(|(_, job)| job).collect();
    let (even, odd): (Vec<Job>, Vec<Job>) = (of(even), of(odd));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| one_by_one(traces, even));
        let mut done = one_by_one(traces, odd)?;
        done.extend(other.join().unwrap()?);
        Ok(done)
    })
}

fn of_arrays(only: &[&str]) -> Reproduction {
    let wanted = Wanted {
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        is_sample: true,
        ..Wanted::default()
    };
    let paper = reproduce::find("baek09").unwrap();
    paper.reproduce(&wanted, &mut threads).unwrap()
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

/// Of the runs of full length the same differ.
#[test]
fn all_claims_of_baek09_fare_as_docs_reproduce_says() {
    let findings = of_arrays(&[]).findings;
    for finding in &findings {
        println!("{finding:?}");
    }
    let differ = differing(&findings, Notice::default());
    assert_eq!(differ, ["B3", "B5", "B6", "B7", "B8"]);
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

fn of_wu10(only: &[&str]) -> Reproduction {
    let wanted = Wanted {
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        exhibits: !only.is_empty(),
        is_sample: true,
        ..Wanted::default()
    };
    let paper = reproduce::find("wu10").unwrap();
    paper.reproduce(&wanted, &mut threads).unwrap()
}

#[test]
fn all_claims_of_wu10_fare_as_docs_reproduce_says() {
    let findings = of_wu10(&[]).findings;
    for finding in &findings {
        println!("{finding:?}");
    }
    let differ = differing(&findings, Notice::default());
    assert_eq!(differ, ["W4", "W9"]);
    for id in ["W6", "W7"] {
        let measured = &finding(&findings, id).measured[0];
        assert_eq!(measured.verdict, Verdict::Fitted, "{measured:?}");
    }
}

/// Figure 11: of the same reads, legacy makes many more requests, because its ramp begins anew each
/// time.
#[test]
fn random_reads_in_between_interrupt_legacy_readahead_alone() {
    let all = of_wu10(&["figure-11"]);
    let rows: Vec<usize> = all.exhibits[0]
        .tables
        .iter()
        .map(|table| table.rows.len())
        .collect();
    println!("{rows:?}");
    let [legacy, on_demand] = rows[..] else {
        panic!("{rows:?}");
    };
    assert!(legacy > 2 * on_demand, "{rows:?}");
}

/// The whole of some claims or figures, under conditions of one's own.
fn under(paper: &str, only: &[&str], with: &[&str]) -> Reproduction {
    let mut wanted = Wanted {
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        exhibits: true,
        ..Wanted::default()
    };
    let mut set = with.iter();
    set.try_for_each(|text| wanted.with.set(text)).unwrap();
    let paper = reproduce::find(paper).unwrap();
    paper.reproduce(&wanted, &mut threads).unwrap()
}

#[test]
fn notes_have_no_variation_that_a_condition_overrides() {
    let all = under(
        "wu10",
        &["W6", "W8", "W9"],
        &["pages=12MiB", "reading-on=256KiB"],
    );
    for finding in &all.findings {
        let one = &finding.measured[0];
        let text = format!("{} {}", one.note, one.fit().unwrap_or_default());
        println!("{}: {text}", finding.claim.id);
        for part in [
            "with 64 MiB",
            "with 25 MiB",
            "for 256 KiB",
            "for 512",
            "4 us of",
            "100 MiB",
        ] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        assert!(!text.trim_end().ends_with(';'), "{text}");
    }
    let note = &finding(&all.findings, "W8").measured[0].note;
    assert!(note.contains("with 12 MiB of pages"), "{note}");
}

#[test]
fn a_condition_of_requests_holds_for_the_figure_that_shows_them() {
    let longest = |with: &[&str]| {
        let all = under("wu10", &["figure-11"], with);
        let rows = all.exhibits[0].tables.iter().flat_map(|table| &table.rows);
        rows.map(|row| row[2].parse::<u32>().unwrap()).max()
    };
    assert_eq!(
        (longest(&[]), longest(&["request=64KiB"])),
        (Some(128), Some(16))
    );
}

#[test]
fn a_batch_that_is_set_replaces_the_searched_ones_and_none_of_a_claim_about_batches() {
    let numbers = |with: &[&str]| {
        let all = under("kimbrel96", &["K4", "K15"], with).findings;
        let of = |id: &str| finding(&all, id).measured[0].clone();
        (of("K4"), of("K15").figures)
    };
    let (searched, over_batches) = numbers(&[]);
    let (set, under_one) = numbers(&["batch=16"]);
    assert!(searched.fit().is_some() && set.fit().is_none());
    assert_ne!(searched.figures, set.figures);
    assert_eq!(over_batches, under_one);
}

#[test]
fn every_claim_and_every_figure_of_wu10_has_a_name() {
    let items = reproduce::find("wu10").unwrap().items().unwrap();
    let claims: Vec<String> = (1..=9).map(|number| format!("W{number}")).collect();
    assert_eq!(items[..9], claims);
    let figures = [10, 11, 13, 14, 15].map(|number| format!("figure-{number}"));
    assert_eq!(items[9..], figures);
}

fn of_servers(paper: &str, only: &[&str]) -> Reproduction {
    let wanted = Wanted {
        only: only.iter().map(ToString::to_string).collect(),
        is_sample: true,
        ..Wanted::default()
    };
    let paper = reproduce::find(paper).unwrap();
    paper.reproduce(&wanted, &mut threads).unwrap()
}

#[test]
fn all_claims_of_li04_fare_as_docs_reproduce_says() {
    let findings = of_servers("li04", &[]).findings;
    assert_eq!(findings.len(), 11);
    let differ = differing(&findings, Notice::default());
    assert_eq!(differ, ["C3", "C5", "C6", "C7", "C8", "C9", "C10", "C11"]);
}

#[test]
fn all_claims_of_li05_fare_as_docs_reproduce_says() {
    let findings = of_servers("li05", &[]).findings;
    assert_eq!(findings.len(), 11);
    let differ = differing(&findings, Notice::default());
    let expected = ["P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P11"];
    assert_eq!(differ, expected);
    for id in ["P1", "P2", "P7"] {
        let measured = &finding(&findings, id).measured[0];
        let fit = measured.fit().unwrap_or_default();
        assert!(fit.contains("without the fit octaves=6 gives"), "{fit}");
        assert_eq!(measured.verdict == Verdict::Fitted, id == "P1");
    }
}

#[test]
fn every_claim_and_every_figure_of_the_server_papers_has_a_name() {
    for (paper, first, last) in [("li04", "C1", "figure-8"), ("li05", "P1", "figure-11")] {
        let items = reproduce::find(paper).unwrap().items().unwrap();
        assert_eq!(items.first().map(String::as_str), Some(first));
        assert_eq!(items.last().map(String::as_str), Some(last));
    }
}
