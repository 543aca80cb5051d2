//! The commands that the documents show: each is one, and those that need no one's files and no time are run.
//! And tables of documents that are made from data: `FORERUN_BLESS=1 cargo test -p forerun --test documents` makes
//! them anew.

#[path = "../../documents.rs"]
mod documents;

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Parser;
use documents::{DocumentCommand, commands};
use forerun::args::Args;
use forerun::differences;
use forerun_lab::Verdict;
use forerun_lab::rows::{Counts, OVERVIEW};
use serde_json::Value;

/// The users' files that documents name, and a content for each.
const FILES: [(&str, &str); 4] = [
    ("FILE", "0\n1\n2\n1\n"),
    ("figure1", "0\n1\n2\n5\n3\n4\n"),
    (
        "web.spc",
        "0,0,8192,r,0.0\n0,16,8192,r,0.1\n0,160,8192,R,0.2\n",
    ),
    (
        "my-disk.toml",
        "kind = \"switching\"\nswitching_ms = 3\ntransfer_mb_s = 120\n",
    ),
];

#[test]
fn every_command_of_the_documents_is_one() {
    let found = commands("forerun");
    assert!(
        found.len() > 30,
        "{} commands: are the fences found?",
        found.len()
    );
    for DocumentCommand { document, words } in found {
        let words = std::iter::once("forerun".to_owned()).chain(words);
        let words: Vec<String> = words.collect();
        if let Err(error) = Args::try_parse_from(&words) {
            panic!("{}: {}\n{error}", document.display(), words.join(" "));
        }
    }
}

/// Whether a command ends soon, whatever the machine, and changes nothing outside its folder.
fn is_quick(words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|own| own == word);
    match words.first().map(String::as_str) {
        Some("list" | "trace") => true,
        Some("simulate") => !has("$trace"),
        Some("bench") => has("virtual"),
        Some("read") => has("FILE..."),
        _ => false,
    }
}

#[test]
fn commands_that_need_no_disk_end_well() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in FILES {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let quick = commands("forerun").into_iter();
    let quick: Vec<_> = quick.filter(|command| is_quick(&command.words)).collect();
    assert!(quick.len() >= 12, "{quick:?}");
    for DocumentCommand { document, words } in quick {
        let words = words.iter().map(|word| match word.as_str() {
            "FILE..." => "FILE",
            other => other,
        });
        let words: Vec<&str> = words.collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_forerun"));
        let output = command.args(&words).current_dir(&folder).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let place = document.display();
        assert!(
            output.status.success(),
            "{place}: forerun {}\n{error}",
            words.join(" ")
        );
    }
}

/// Shell that needs published traces or the sources.
const NOT_RUN: [&str; 2] = ["traces/*", "cargo "];

/// Each page's fences of shell as one script, in a folder with nothing in it.
#[test]
fn the_shell_of_these_pages_runs_as_it_is_written_from_any_folder() {
    for page in ["SIMULATE.md", "REPORT.md"] {
        let folder = tempfile::tempdir().unwrap();
        let (_, text) = document(page);
        let fences = text.split("```sh\n").skip(1);
        let fences = fences.filter_map(|rest| Some(rest.split_once("```")?.0));
        let fences: Vec<&str> = fences
            .filter(|fence| !NOT_RUN.iter().any(|part| fence.contains(part)))
            .collect();
        assert!(fences.len() >= 3, "{page}: {fences:?}");
        let program = Path::new(env!("CARGO_BIN_EXE_forerun")).parent().unwrap();
        let output = Command::new("sh")
            .args(["-eu", "-c"])
            .arg(format!(
                "PATH={}:$PATH\n{}",
                program.display(),
                fences.join("\n")
            ))
            .current_dir(&folder)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {error}");
    }
}

/// A document of this repository.
fn document(name: &str) -> (std::path::PathBuf, String) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Compares the first table of a document with one made from data, or puts that into the document.
fn compare_first_table(name: &str, table: &str) {
    let (path, text) = document(name);
    let begin = text.find("\n| ").unwrap() + 1;
    let end = begin + text[begin..].find("\n\n").unwrap() + 1;
    #[expect(
        clippy::disallowed_methods,
        reason = "asks whether to rewrite the table"
    )]
    let is_blessed = std::env::var_os("FORERUN_BLESS").is_some();
    if is_blessed {
        fs::write(&path, format!("{}{table}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert!(
        &text[begin..end] == table,
        "{name} has\n{}expected\n{table}",
        &text[begin..end]
    );
}

/// The rows of `forerun reproduce li04 li05 wu10 kimbrel96 baek09 --format json`, of the papers that it measured.
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

#[test]
fn the_table_of_differences_is_that_of_the_command() {
    let mut table =
        "| methods | paper | its rule | ours | effect |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for one in differences::LIST {
        table += &format!("{}\n", one.row());
        let words = one.command.split(' ');
        let words = words.map(|word| word.trim_matches(['"', '\'']));
        Args::try_parse_from(words).unwrap_or_else(|e| panic!("{}: {e}", one.command));
    }
    compare_first_table("DIFFERENCES.md", &table);
}

/// Presets are lines of a list: their methods say it.
#[test]
fn the_header_of_each_method_that_differs_from_its_paper_names_the_table() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["core/src", "baselines/src"].map(|folder| crates.join(folder));
    let families = [
        "detect",
        "depth",
        "shape",
        "reclaim",
        "split",
        "hinted",
        "hinted/policy",
    ];
    for one in differences::LIST {
        let mut methods = 0;
        for name in one.methods {
            let file = format!("{}.rs", name.replace(['-', '.'], "_"));
            let mut places = folders
                .iter()
                .flat_map(|folder| families.map(|f| folder.join(f)));
            let Some(path) = places.find(|place| place.join(&file).is_file()) else {
                continue;
            };
            let text = fs::read_to_string(path.join(&file)).unwrap();
            let mut header = text.lines().take_while(|line| line.starts_with("//!"));
            assert!(
                header.any(|line| line.contains("docs/DIFFERENCES.md")),
                "{name}"
            );
            methods += 1;
        }
        println!("{methods} methods: {}", one.rule);
    }
}

/// Pages that a reader reads from its beginning to its end.
const SHORT: &[&str] = &[
    "TROUBLESHOOTING",
    "LOGGING",
    "UPGRADING",
    "TUNING",
    "SECURITY",
    "FAQ",
];

const WORDS_MAX: usize = 2_000;

#[test]
fn every_page_begins_with_a_paragraph_and_those_for_users_are_short() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut short = 0;
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_none_or(|end| end != "md") || name == "SUMMARY" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let (title, first) = (lines.next().unwrap(), lines.next().unwrap());
        let is_text = first.starts_with(|c: char| c.is_alphanumeric() || c == '`');
        assert!(
            title.starts_with("# ") && is_text,
            "{name}: {title}: {first}"
        );
        if SHORT.contains(&name.as_str()) {
            short += 1;
            let words = text.split_whitespace().count();
            assert!(words <= WORDS_MAX, "{name}: {words} words");
        }
    }
    assert_eq!(short, SHORT.len());
}

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Targets of links, outside fences.
fn links(text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        if !is_fenced {
            let targets = line.split("](").skip(1);
            found.extend(targets.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
    }
    found
}

/// The name of a heading in an address: letters and digits in lower case, `-` for blanks.
fn name_of(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_to_headings_lead_to_one() {
    let root = docs().join("..");
    let mut pages: Vec<_> = fs::read_dir(docs())
        .unwrap()
        .map(|page| page.unwrap().path())
        .collect();
    pages.push(root.join("README.md"));
    let mut seen = 0;
    for page in pages
        .iter()
        .filter(|page| page.extension().is_some_and(|end| end == "md"))
    {
        let text = fs::read_to_string(page).unwrap();
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let Some((target, name)) = link.split_once('#') else {
                continue;
            };
            let target = match target {
                "" => page.clone(),
                target => page.parent().unwrap().join(target),
            };
            let there = fs::read_to_string(&target).unwrap();
            let mut headings = there.lines().filter(|line| line.starts_with('#'));
            let leads = headings.any(|heading| name_of(heading) == name);
            assert!(leads, "{}: {link}", page.display());
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn every_page_is_in_the_order_of_the_site() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let listed = links(&summary);
    for folder in ["", "design"] {
        for entry in fs::read_dir(docs().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = Path::new(folder).join(&name).display().to_string();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                assert_eq!(
                    listed.iter().filter(|link| **link == path).count(),
                    1,
                    "{path}"
                );
            }
        }
    }
}
