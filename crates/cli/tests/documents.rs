//! The commands that the documents show: each is one, and those that need no one's files and no time are run.
//! And tables of documents that are made from data, or have figures of the simulator:
//! `FORERUN_BLESS=1 cargo test -p forerun --test documents` makes them anew.

#[path = "../../documents.rs"]
mod documents;
#[path = "documents/runs.rs"]
mod runs;
#[path = "documents/simulated.rs"]
mod simulated;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use documents::{DocumentCommand, commands, compare_first_table, document};
use forerun::args::Args;
use forerun::differences;

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
        Some("list" | "trace" | "explain" | "completions" | "version") => true,
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
    for page in ["SIMULATE.md", "REPLAY.md", "REPORT.md"] {
        let folder = tempfile::tempdir().unwrap();
        let (_, text) = document(page);
        let fences = text.split("```sh\n").skip(1);
        let fences = fences.filter_map(|rest| Some(rest.split_once("```")?.0));
        let fences: Vec<&str> = fences
            .filter(|fence| !NOT_RUN.iter().any(|part| fence.contains(part)))
            .collect();
        assert!(!fences.is_empty(), "{page}");
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

#[test]
fn the_table_of_differences_is_that_of_the_command() {
    let mut table =
        "| methods | paper | its rule | ours | effect |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for one in differences::LIST {
        table += &format!("{}\n", one.row());
        let words = one.command.split(' ');
        let words = words.map(|word| word.trim_matches(['"', '\'']));
        let words: Vec<&str> = words.collect();
        // Those of the laboratory are checked with it.
        if words[0] != "forerun-lab" {
            Args::try_parse_from(words).unwrap_or_else(|e| panic!("{}: {e}", one.command));
        }
    }
    compare_first_table("DIFFERENCES.md", &table);
}

/// Folders of methods.
fn families() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let families = [
        "detect",
        "depth",
        "shape",
        "reclaim",
        "hinted",
        "hinted/policy",
    ];
    let folders = ["core/src", "baselines/src"].map(|folder| crates.join(folder));
    let all = folders
        .iter()
        .flat_map(|folder| families.map(|f| folder.join(f)));
    all.filter(|folder| folder.is_dir()).collect()
}

/// Whether the header of a file has a line with this in it.
fn header_has(path: &Path, text: &str) -> bool {
    let all = fs::read_to_string(path).unwrap();
    let mut header = all.lines().take_while(|line| line.starts_with("//!"));
    header.any(|line| line.contains(text))
}

/// Presets are lines of a list: their methods say it.
#[test]
fn the_header_of_each_method_that_differs_from_its_paper_names_the_table() {
    for one in differences::LIST {
        let mut methods = 0;
        for name in one.methods {
            let file = format!("{}.rs", name.replace(['-', '.'], "_"));
            let path = families().into_iter().map(|folder| folder.join(&file));
            let Some(path) = path.into_iter().find(|path| path.is_file()) else {
                continue;
            };
            assert!(header_has(&path, "docs/DIFFERENCES.md"), "{name}");
            methods += 1;
        }
        println!("{methods} methods: {}", one.rule);
    }
}

#[test]
fn each_method_whose_header_says_that_it_differs_has_a_row() {
    let mut methods = 0;
    for folder in families() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && header_has(&path, "Rules that differ from the paper") {
                let stem = path.file_stem().unwrap().to_string_lossy();
                let name = stem.replace('_', "-");
                let family = folder.file_name().unwrap().to_string_lossy();
                // The folder of hinted methods is their family's part.
                let family = family.replace("policy", "hinted");
                assert!(
                    differences::of(&family, &name).next().is_some(),
                    "{family} {name}"
                );
                methods += 1;
            }
        }
    }
    assert!(methods > 0, "no header says it");
}

/// Pages of tables and of methods, which no reader reads from their beginning to their end.
const LONG: &[&str] = &["REPRODUCE"];

const WORDS_MAX: usize = 2_000;

/// Three minutes.
const FRONT_WORDS_MAX: usize = 900;

/// Sentences that say to a reader from a search where they are: text that ends as sentences do, of some words, with the
/// name of the project or its subject.
fn is_a_beginning(paragraph: &str) -> bool {
    let is_text = paragraph.starts_with(|c: char| c.is_alphanumeric() || c == '`');
    let subjects = ["forerun", "refetch", "readahead"];
    let has_subject = subjects.iter().any(|subject| paragraph.contains(subject));
    let ends = paragraph.ends_with(['.', ':']);
    is_text && has_subject && ends && paragraph.split_whitespace().count() >= 12
}

#[test]
fn every_page_begins_with_a_paragraph_and_is_short() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in fs::read_dir(&docs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_none_or(|end| end != "md") || name == "SUMMARY" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut parts = text.split("\n\n");
        let (title, first) = (parts.next().unwrap(), parts.next().unwrap());
        assert!(title.starts_with("# "), "{name}: {title}");
        assert!(
            is_a_beginning(first),
            "{name}: no sentences for a reader who came from a search: {first}"
        );
        let words = text.split_whitespace().count();
        let is_short = words <= WORDS_MAX || LONG.contains(&name.as_str());
        assert!(is_short, "{name}: {words} words");
    }
    let front = fs::read_to_string(docs.join("../README.md")).unwrap();
    let words = front.split_whitespace().count();
    assert!(words <= FRONT_WORDS_MAX, "README.md: {words} words");
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
