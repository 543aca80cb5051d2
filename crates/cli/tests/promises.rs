//! The promises of `docs/PROMISES.md`: each names its test, and each test named is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The tests of a file, as `module::name`.
fn tests_of(path: &Path) -> BTreeSet<String> {
    let module = path.file_stem().unwrap().to_str().unwrap();
    let text = fs::read_to_string(path).unwrap();
    let mut tests = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
            let name = rest.split('(').next().unwrap();
            tests.insert(format!("{module}::{name}"));
            is_test = false;
        }
    }
    tests
}

fn tests() -> BTreeSet<String> {
    let folder = root().join("crates/cli/tests");
    let mut tests = tests_of(&root().join("crates/mount/tests/mount_fs.rs"));
    for file in fs::read_dir(folder.join("mount")).unwrap() {
        tests.extend(tests_of(&file.unwrap().path()));
    }
    tests
}

/// The entries of the lists of a page.
fn entries(page: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in page.lines() {
        if let Some(begin) = line.strip_prefix("- ") {
            entries.push(begin.to_owned());
        } else if let Some(rest) = line.strip_prefix("  ")
            && let Some(entry) = entries.last_mut()
        {
            entry.push(' ');
            entry.push_str(rest);
        }
    }
    entries
}

/// The tests that an entry names: words in backquotes with `::` in them.
fn named(entry: &str) -> Vec<&str> {
    let quoted = entry.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains("::")).collect()
}

/// Faults of the promises.
fn complaints(text: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for entry in entries(text) {
        if named(&entry).is_empty() {
            complaints.push(format!("names no test: {entry}"));
        }
        let missing = named(&entry)
            .into_iter()
            .filter(|name| !tests.contains(*name));
        complaints.extend(missing.map(|name| format!("no such test: {name}")));
    }
    complaints
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[test]
fn every_promise_names_a_test_that_is_there() {
    let (text, tests) = (page("PROMISES.md"), tests());
    assert!(entries(&text).len() > 20 && tests.len() > 60);
    let complaints = complaints(&text, &tests);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_promise_without_a_test_and_a_test_that_is_gone_are_found() {
    let text = "- It flies. `a::b`\n- It sinks,\n  `a::gone` in time.\n- It is.\n";
    let tests = BTreeSet::from(["a::b".to_owned()]);
    assert_eq!(
        complaints(text, &tests),
        ["no such test: a::gone", "names no test: It is."]
    );
}

#[test]
fn what_is_not_supported_comes_first() {
    let text = page("SEMANTICS.md");
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(headings[0], "## Not supported");
    let first = text.split("\n## ").nth(1).unwrap();
    assert!(entries(first).len() > 5);
}
