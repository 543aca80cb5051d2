//! The stages of the engine call each other in one direction.
//!
//! All stages are `impl Engine` blocks on one struct, so no compiler and no import shows which
//! calls which. This test reads the sources: every method of `Engine` belongs to the file that
//! defines it, and every `self.method(` or `Self::method(` is an arrow between two files. The arrows
//! go down the list of stages in the header of `engine.rs`; work for an earlier stage goes to the lists of
//! `engine/work.rs` instead.
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

/// The stages that the header of `engine.rs` lists, top to bottom.
fn listed(engine: &str) -> Vec<String> {
    let mut lines = engine.lines().filter_map(|line| line.strip_prefix("//! "));
    let fenced = lines.by_ref().skip_while(|line| *line != "```text").skip(1);
    let names = fenced.take_while(|line| *line != "```");
    names
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// The stage of a file: of `engine/hint/take.rs` it is `hint`. None for the engine itself.
fn stage(file: &str) -> Option<&str> {
    let name = file.strip_prefix("engine/")?;
    name.split(['/', '.']).next()
}

/// Calls from one stage to one that is not below it in the list.
fn upward(arrows: &Arrows, order: &[String]) -> Vec<String> {
    let place = |file| stage(file).and_then(|stage| order.iter().position(|name| name == stage));
    let mut found = Vec::new();
    for (from, targets) in arrows {
        let here = stage(from);
        for to in targets
            .iter()
            .filter(|to| here.is_none() || stage(to) != here)
        {
            let goes_down = match here {
                None => true,
                Some(_) => place(to).is_some_and(|below| place(from) < Some(below)),
            };
            if !goes_down {
                found.push(format!("{from} -> {to}"));
            }
        }
    }
    found
}

fn read_below(folder: &Path, prefix: &str, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            read_below(&path, &format!("{name}/"), sources);
        } else if name != "engine/tests.rs" && !name.starts_with("engine/tests/") {
            sources.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn stages_call_down_the_list_that_the_header_prints() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let engine = std::fs::read_to_string(src.join("engine.rs")).unwrap();
    let order = listed(&engine);
    sources.push(("engine.rs".to_owned(), engine));
    read_below(&src.join("engine"), "engine/", &mut sources);
    let stages: BTreeSet<&str> = sources.iter().filter_map(|(file, _)| stage(file)).collect();
    // Reports and the list of work are no stages.
    let named: BTreeSet<&str> = order.iter().map(String::as_str).collect();
    let missing: Vec<_> = stages.difference(&named).collect();
    assert_eq!(
        missing,
        [&"view", &"work"],
        "stages that the header does not list"
    );
    assert_eq!(named.len(), order.len(), "each stage is listed once");
    let arrows = arrows(&sources);
    for (from, to) in &arrows {
        println!("{from} -> {to:?}");
    }
    assert!(arrows["engine.rs"].contains("engine/read.rs"));
    assert!(arrows["engine/read.rs"].contains("engine/window.rs"));
    assert_eq!(upward(&arrows, &order), [""; 0]);
}

#[test]
fn a_stage_that_calls_back_is_found() {
    let method = |name: &str, calls: &str| {
        format!(
            "impl Engine {{\n    fn {name}(&mut self) {{\n        self.{calls}();\n    }}\n}}\n"
        )
    };
    let mut sources = vec![
        ("engine/read.rs".to_owned(), method("read", "window")),
        ("engine/window.rs".to_owned(), method("window", "fetch")),
        (
            "engine/fetch.rs".to_owned(),
            method("fetch", "memory.obtain"),
        ),
    ];
    let order = ["read", "window", "fetch"].map(str::to_owned);
    assert_eq!(upward(&arrows(&sources), &order), [""; 0]);
    sources[2].1 = method("fetch", "read");
    assert_eq!(
        upward(&arrows(&sources), &order),
        ["engine/fetch.rs -> engine/read.rs"]
    );
}
