//! `forerun reproduce`: its output, and the report it writes.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use snapbox::cmd::cargo_bin;
use snapbox::str;

use super::skipped::skipped;
use super::{Folder, forerun, output_of};

#[test]
fn claims_are_lines_of_json_and_exhibits_are_on_the_page() {
    let folder = Folder::new();
    let report = folder.name("out");
    let only = "K1,K2,K3,K16,table-7,figure-3,figure-7";
    let printed = output_of(&format!(
        "reproduce kimbrel96 --only {only} --format json -o {report}"
    ));
    let claims: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = claims.iter().filter_map(|c| c["id"].as_str()).collect();
    assert_eq!(ids, ["K1", "K2", "K3", "K16"]);
    for claim in &claims {
        for key in ["id", "paper", "published", "measured", "verdict", "note"] {
            assert!(claim.get(key).is_some(), "{key} is missing: {claim}");
        }
        assert_eq!(claim["paper"], "kimbrel96");
        assert_eq!(claim["verdict"], "met", "{claim}");
    }
    assert_eq!(claims[1]["measured"], 37_280);
    let page = fs::read_to_string(folder.path("out").join("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 4, "two plots a figure");
    assert_eq!(page.matches("<h2>").count(), 1 + 3);
    // The name space of SVG is the only address in it.
    let addresses = page.matches("://").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
}

/// K9 is the one verdict that hangs on it.
#[test]
fn a_claim_is_measured_under_both_moments_and_says_if_it_hangs_on_them() {
    for (first, second) in [("at-once", "at-reads"), ("at-reads", "at-once")] {
        let printed = output_of(&format!(
            "reproduce kimbrel96 --only K3,K9 --notice {first} --format json"
        ));
        let [k3, k9]: [Value; 2] = printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        assert_eq!(
            (&k9["notice"], &k9["otherwise"][0]["notice"]),
            (&first.into(), &second.into())
        );
        let found = [&k9["measured"], &k9["otherwise"][0]["measured"]].map(Value::as_u64);
        let verdicts = [&k9["verdict"], &k9["otherwise"][0]["verdict"]].map(Value::as_str);
        let mut pairs = found.into_iter().zip(verdicts).collect::<Vec<_>>();
        pairs.sort_unstable();
        assert_eq!(
            pairs,
            [
                (Some(906), Some("met, fitted")),
                (Some(3427), Some("differs"))
            ]
        );
        assert!(k9["fitted"].is_string() && k3["fitted"].is_null(), "{k9}");
        let hangs = |claim: &Value| claim["note"].as_str().unwrap().contains("hangs on when");
        assert!(hangs(&k9) && !hangs(&k3));
        assert_eq!(k3["measured"], k3["otherwise"][0]["measured"]);
    }
}

#[test]
fn a_fitted_claim_says_so_in_the_table_the_summary_and_the_report() {
    let folder = Folder::new();
    let report = folder.name("out");
    let printed = output_of(&format!(
        "reproduce kimbrel96 --only K1,K4,K5 --notice at-reads -o {report}"
    ));
    let last = printed.lines().last();
    assert_eq!(last, Some("claims: 3; met: 1; met, fitted: 2; differs: 0"));
    assert!(printed.contains("fitted: the batches"), "{printed}");
    let page = fs::read_to_string(folder.path("out").join("report.html")).unwrap();
    let marks = page.matches("<span class=\"fitted\">met, fitted</span>");
    // At both moments each.
    assert_eq!(marks.count(), 4);
    assert!(page.contains("met: 1; met, fitted: 2"), "{page}");
}

#[test]
fn a_claim_there_is_not_is_refused_before_anything_is_measured() {
    let refused = forerun("reproduce kimbrel96 --only K19").code(2);
    refused.stderr_eq(str![[r#"
forerun: --only K19: kimbrel96 has K1, K2, [..], K18, table-2, [..], figure-10, stand-ins, runs

"#]]);
}

#[test]
fn a_figure_without_a_report_to_draw_it_in_is_refused() {
    let refused = forerun("reproduce kimbrel96 --only K1,figure-2").code(2);
    refused.stdout_eq("").stderr_eq(str![[r#"
forerun: --only figure-2: is drawn in the report, of which there is none: give -o DIR

"#]]);
}

/// Killed once the report is begun, by a signal that no program can answer: minutes before its end.
#[test]
fn a_report_that_is_interrupted_leaves_nothing() {
    let folder = Folder::new();
    let report = folder.name("out/deep");
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["reproduce", "kimbrel96", "-o", &report])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let descriptors = format!("/proc/{}/fd", child.id());
    // A file without a name makes no event.
    const PAUSE: Duration = Duration::from_millis(1);
    const BOUND: Duration = Duration::from_secs(60);
    let looking = Instant::now();
    let begun = loop {
        let open = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        let targets = open.filter_map(|one| fs::read_link(one.path()).ok());
        let begun = targets
            .into_iter()
            .find(|to| to.starts_with(folder.path("")));
        match (begun, child.try_wait().unwrap()) {
            (None, None) if looking.elapsed() < BOUND => std::thread::park_timeout(PAUSE),
            (begun, _) => break begun,
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = begun.expect("the report is begun before the end");
    if begun.to_string_lossy().contains(".forerun-") {
        skipped(format_args!("a file system without unnamed files"));
        return;
    }
    let left: Vec<_> = fs::read_dir(folder.path("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_paper_there_is_not_is_refused() {
    forerun("reproduce kimbrel95").code(2).stderr_eq(str![[r#"
error: invalid value 'kimbrel95' for '<PAPER>...': no such paper; there is li04, li05, wu10, kimbrel96, baek09

For more information, try '--help'.

"#]]);
}
