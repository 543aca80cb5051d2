//! The commands that the documents show: each is one, and those that need no one's files and no time are run.

#[path = "../../documents.rs"]
mod documents;

use std::fs;
use std::process::Command;

use clap::Parser;
use documents::{DocumentCommand, commands};
use forerun::args::Args;

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
        // The trace as it is: packing it is the trace tests' business.
        let words = words.iter().map(|word| match word.as_str() {
            "web.spc.gz" => "web.spc",
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
