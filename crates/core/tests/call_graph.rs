//! The stages of the engine call each other in one direction.
//!
//! All stages are `impl Engine` blocks on one struct, so no compiler and no import shows which
//! calls which. This test reads the sources: every method of `Engine` belongs to the file that
//! defines it, and every `self.method(` or `Self::method(` is an arrow between two files. The arrows
//! must have no cycle; work for an earlier stage goes to the lists of `engine/work.rs` instead.
//!
//! ```text
//! read.rs: fn try_block { .. self.fetch_alone(..) .. }      fetch.rs: fn fetch { .. }
//!          read.rs -> fetch.rs, and never back
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file, by its path below `src`, and its text.
type Source = (String, String);

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The lines inside `impl Engine` blocks, comments and tests apart.
fn methods_text(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with("#[cfg(test)]") && kept.contains("fn ") {
            break;
        }
        if line == "impl Engine {" {
            inside = true;
        } else if line.starts_with('}') {
            inside = false;
        } else if inside && !line.trim_start().starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The identifiers that follow `before` and are followed by `(` or, as a generic, by `<`.
fn names_after<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0 && rest[end..].starts_with(['(', '<', ':'])).then(|| &rest[..end])
    })
}

fn arrows(sources: &[Source]) -> Arrows {
    let mut home: BTreeMap<&str, &str> = BTreeMap::new();
    let texts: Vec<(&str, String)> = sources
        .iter()
        .map(|(file, text)| (file.as_str(), methods_text(text)))
        .collect();
    for (file, text) in &texts {
        for name in names_after(text, "fn ") {
            let other = home.insert(name, file);
            assert_eq!(other, None, "two methods of Engine are called {name}");
        }
    }
    let mut arrows = Arrows::new();
    for (file, text) in &texts {
        let rustfmt_breaks_joined: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let joined = rustfmt_breaks_joined.replace("self .", "self.");
        for before in ["self.", "Self::", "engine."] {
            for name in names_after(&joined, before) {
                if let Some(to) = home.get(name).filter(|to| *to != file) {
                    let from = arrows.entry((*file).to_owned()).or_default();
                    from.insert((*to).to_owned());
                }
            }
        }
    }
    arrows
}

/// Files that can reach themselves.
fn cycles(arrows: &Arrows) -> Vec<String> {
    let reaches_itself = |start: &String| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = arrows[start].iter().collect();
        while let Some(file) = open.pop() {
            if seen.insert(file) {
                open.extend(arrows.get(file).into_iter().flatten());
            }
        }
        seen.contains(start)
    };
    arrows
        .keys()
        .filter(|file| reaches_itself(file))
        .cloned()
        .collect()
}

fn read_below(folder: &Path, prefix: &str, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            read_below(&path, &format!("{name}/"), sources);
        } else if name != "engine/tests.rs" {
            sources.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_stage_calls_a_stage_that_calls_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let engine = std::fs::read_to_string(src.join("engine.rs")).unwrap();
    sources.push(("engine.rs".to_owned(), engine));
    read_below(&src.join("engine"), "engine/", &mut sources);
    let arrows = arrows(&sources);
    for (from, to) in &arrows {
        println!("{from} -> {to:?}");
    }
    assert!(arrows["engine.rs"].contains("engine/read.rs"));
    assert!(arrows["engine/read.rs"].contains("engine/window.rs"));
    let cycles = cycles(&arrows);
    assert!(cycles.is_empty(), "files in cycles of calls: {cycles:?}");
}

#[test]
fn a_stage_that_calls_back_is_found() {
    let method = |name: &str, calls: &str| {
        format!(
            "impl Engine {{\n    fn {name}(&mut self) {{\n        self.{calls}();\n    }}\n}}\n"
        )
    };
    let mut sources = vec![
        ("read.rs".to_owned(), method("read", "window")),
        ("window.rs".to_owned(), method("window", "fetch")),
        ("fetch.rs".to_owned(), method("fetch", "memory.obtain")),
    ];
    assert_eq!(cycles(&arrows(&sources)), [""; 0]);
    sources[2].1 = method("fetch", "read");
    assert_eq!(
        cycles(&arrows(&sources)),
        ["fetch.rs", "read.rs", "window.rs"]
    );
}
