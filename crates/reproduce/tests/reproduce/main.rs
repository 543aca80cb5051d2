//! `forerun-lab reproduce` as its user meets it: the program is run, and its output, its report and its exit code are
//! compared with the text written here.

#[path = "../../../skipped.rs"]
mod skipped;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use snapbox::cmd::{OutputAssert, cargo_bin};
use snapbox::str;
use tempfile::TempDir;

use skipped::skipped;

/// The program with these words as arguments.
fn lab(arguments: &str) -> Command {
    let mut command = Command::new(cargo_bin!("forerun-lab"));
    command
        .env_remove("COLUMNS")
        .env_remove("FORERUN_LOG")
        .args(arguments.split_whitespace());
    command
}

/// It must refuse these words.
fn refused(arguments: &str) -> OutputAssert {
    OutputAssert::new(lab(arguments).output().unwrap()).code(2)
}

/// Its output, where it must be looked into; it must have ended well.
fn output_of(arguments: &str) -> String {
    let Output {
        stdout,
        stderr,
        status,
    } = lab(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{arguments}: {error}");
    String::from_utf8(stdout).unwrap()
}

/// A folder of a test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path in the folder as an argument.
    fn name(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }
}

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
    let refused = refused("reproduce kimbrel96 --only K19");
    refused.stderr_eq(str![[r#"
forerun-lab: --only K19: kimbrel96 has K1, K2, [..], K18, table-2, [..], figure-10, stand-ins, runs

"#]]);
}

#[test]
fn a_figure_without_a_report_to_draw_it_in_is_refused() {
    let refused = refused("reproduce kimbrel96 --only K1,figure-2");
    refused.stdout_eq("").stderr_eq(str![[r#"
forerun-lab: --only figure-2: is drawn in the report, of which there is none: give -o DIR

"#]]);
}

/// Killed once the report is begun, by a signal that no program can answer: minutes before its end.
#[test]
fn a_report_that_is_interrupted_leaves_nothing() {
    let folder = Folder::new();
    let report = folder.name("out/deep");
    let mut child = Command::new(cargo_bin!("forerun-lab"))
        .args(["reproduce", "kimbrel96", "-o", &report])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let descriptors = format!("/proc/{}/fd", child.id());
    // A file without a name makes no event.
    const PAUSE: Duration = Duration::from_millis(1);
    const BOUND: Duration = Duration::from_secs(600);
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
fn a_condition_there_is_not_is_answered_with_those_there_are() {
    for (words, said) in [
        (
            "wu10 --with read-mis=1ms",
            "--with no knob \"read-mis\"; there is seed, run, expiry",
        ),
        (
            "wu10 --with read-miss",
            "--with read-miss: expected NAME=VALUE; there is seed",
        ),
        ("wu10 --with read-miss=1h", "--with read-miss=1h: "),
        (
            "wu10 --with read-miss=21ms",
            "--with read-miss=21ms: from 0 ms to 20 ms",
        ),
        (
            "wu10 --with expiry=60s",
            "--with expiry: wu10 has read-miss, ",
        ),
        (
            "kimbrel96 --with seed=2",
            "--with seed: kimbrel96 has horizon, batch",
        ),
        (
            "li05 --with detect=nine",
            "--with detect=nine: there is ondemand",
        ),
    ] {
        let only = match words.split_once(' ') {
            Some(("li05", _)) => "P1",
            Some(("wu10", _)) => "W1",
            _ => "K1",
        };
        let refused = refused(&format!("reproduce {words} --only {only}"));
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains(said), "{words}: {stderr}");
    }
}

#[test]
fn a_condition_that_no_selected_paper_has_is_refused() {
    for (only, with, has) in [
        ("C1", "think=10us", "think: li04 has "),
        ("W1", "run=2s", "run: wu10 has "),
    ] {
        let words = format!("reproduce li04 wu10 --only {only} --with {with}");
        let refused = refused(&words);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(
            stderr.contains(&format!("--with {has}")),
            "{words}: {stderr}"
        );
    }
}

/// C5 compares two depths: without readahead they are one.
#[test]
fn a_condition_changes_the_runs_that_have_it_and_stands_beside_the_result() {
    let measured = |with: &str| {
        let short = "--with run=2s --with seed=1";
        let words = format!("reproduce li04 --only C5 --format json {short} {with}");
        let claim: Value = serde_json::from_str(&output_of(&words)).unwrap();
        let told = format!("{short} {with}").replace("--with ", "");
        assert_eq!(claim["with"], told.trim_end());
        claim["measured"].as_f64().unwrap()
    };
    let table = output_of("reproduce li04 --only C1 --with run=2s --with seed=1");
    assert!(table.ends_with("Measured with run=2s seed=1.\n"), "{table}");
    assert_eq!(measured("--with detect=none"), 1.0);
    let as_it_is = measured("");
    assert!(as_it_is > 1.0, "{as_it_is}");
    assert_eq!(as_it_is, measured("--with queue=128"));
}

#[test]
fn each_paper_and_its_page_have_the_conditions_of_its_own_runs() {
    let folder = Folder::new();
    let (with, out) = (
        "--with think=10us --with run=2s --with seed=1",
        folder.name("out"),
    );
    let printed = output_of(&format!("reproduce li04 wu10 --only C1,W1 {with} -o {out}"));
    for told in ["Measured with run=2s seed=1.", "Measured with think=10us."] {
        assert_eq!(printed.matches(told).count(), 1, "{printed}");
    }
    let page = |name: &str| fs::read_to_string(folder.path("out").join(name)).unwrap();
    assert!(page("li04.html").contains("<p>Measured with run=2s seed=1.</p>"));
    assert!(page("wu10.html").contains("<p>Measured with think=10us.</p>"));
    output_of(&format!("reproduce wu10 --only W1 -o {out}"));
    assert!(!page("report.html").contains("Measured with"));
}

#[test]
fn a_paper_there_is_not_is_refused() {
    refused("reproduce kimbrel95").stderr_eq(str![[r#"
error: invalid value 'kimbrel95' for '<PAPER>...': no such paper; there is li04, li05, wu10, kimbrel96, baek09

For more information, try '--help'.

"#]]);
}
