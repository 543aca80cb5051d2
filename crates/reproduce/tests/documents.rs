//! The tables of `docs/REPRODUCE.md`, made from the results in `docs/reproduce.jsonl`:
//! `FORERUN_BLESS=1 cargo test -p forerun-reproduce --test documents` makes the first anew.

#[path = "../../documents.rs"]
#[allow(dead_code, reason = "commands are checked beside the arguments")]
mod documents;

use documents::{compare_first_table, document};
use forerun_lab::Verdict;
use forerun_lab::rows::{Counts, OVERVIEW};
use serde_json::Value;

/// The rows of `forerun-lab reproduce li04 li05 wu10 kimbrel96 baek09 --format json`, of the papers that it measured.
fn results() -> Vec<Value> {
    let (_, text) = document("reproduce.jsonl");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn verdict(of: &Value) -> Verdict {
    let name = of["verdict"].as_str().unwrap();
    Verdict::LIST
        .into_iter()
        .find(|one| one.name() == name)
        .unwrap()
}

#[test]
fn the_overview_of_the_papers_is_that_of_the_results() {
    let mut table = format!(
        "| paper | {} |\n|{}\n",
        OVERVIEW.join(" | "),
        " --- |".repeat(6)
    );
    for paper in forerun_lab::LIST {
        let mut counts = Counts::default();
        if results().iter().all(|one| one["paper"] != paper.name) {
            continue;
        }
        for one in results().iter().filter(|one| one["paper"] == paper.name) {
            counts.add(verdict(one), one["established"] == true);
        }
        assert_eq!(
            counts.claims,
            paper.claims().unwrap().claims.len(),
            "{}",
            paper.name
        );
        table += &format!("| {} | {} |\n", paper.name, counts.cells().join(" | "));
    }
    compare_first_table("REPRODUCE.md", &table);
}

/// Each row of a claim ends with its verdict, of the moment that its table's head names.
#[test]
fn the_verdicts_of_the_document_are_those_of_the_results() {
    let (_, text) = document("REPRODUCE.md");
    let (mut head, mut seen) = ("", Vec::new());
    let results = results();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells.first().is_some_and(|cell| *cell == "claim") {
            head = line;
        }
        let id = cells[0].split(' ').next().unwrap_or_default();
        let result = results.iter().find(|one| one["id"] == id);
        let (Some(result), true) = (result, line.starts_with("| ") && head.contains("verdict"))
        else {
            continue;
        };
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let of = match head.contains("at reads") && result["notice"] != "at-reads" {
            true => &result["otherwise"][0],
            false => result,
        };
        let (said, name) = (cells[cells.len() - 1], verdict(of).name());
        let is_fitted = said.starts_with("met, fitted");
        assert!(
            said.starts_with(name) && is_fitted == (name == "met, fitted"),
            "{line}: expected {name}"
        );
        let is_borderline = of["borderline"] == true;
        assert_eq!(said.contains("borderline"), is_borderline, "{line}");
    }
    assert_eq!(seen.len(), results.len(), "{seen:?}");
}
