//! `forerun explain`, its table, and the page that is made from it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use forerun::explain::{By, Entry, LIST, find};

use super::{forerun, output_of};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of all sources of a folder, without unit tests and without the table itself; lines of a literal that goes on
/// behind `\` are joined.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("explain.rs") {
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            text.push_str(&joined(code));
        }
    }
}

fn joined(code: &str) -> String {
    let mut text = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let mut line = line.to_owned();
        while let Some(front) = line.strip_suffix('\\') {
            line = front.to_owned() + lines.next().unwrap_or_default().trim_start();
        }
        text += &line;
        text.push('\n');
    }
    text
}

#[test]
fn each_message_stands_in_the_sources_and_is_found_by_its_code_and_its_text() {
    let mut all = String::new();
    for name in ["core", "io", "store", "surface", "mount", "watch", "cli"] {
        sources(&root().join("crates").join(name).join("src"), &mut all);
    }
    let codes: BTreeSet<_> = LIST.iter().map(|entry| entry.code).collect();
    assert_eq!(codes.len(), LIST.len(), "a code stands twice");
    let all = all.replace("{DEVICE}", "/dev/fuse");
    for entry in LIST {
        assert_eq!(find(entry.code)[0].code, entry.code);
        if entry.by == By::Seen {
            continue;
        }
        let pasted = format!("forerun: {}: and more", entry.printed.replace("..", "a b"));
        assert!(
            find(&pasted).iter().any(|found| found.code == entry.code),
            "{pasted}"
        );
        if entry.by == By::Forerun {
            for part in entry.parts() {
                assert!(all.contains(part), "{}: no source has {part:?}", entry.code);
            }
        }
    }
    assert!(find("no such message").is_empty());
}

/// Literals of refusals: the texts in the parentheses of these calls.
fn refusals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for call in [
        "refused(",
        "occupied(",
        "Failure::Usage(",
        "Failure::unusable(",
        "Failure::broken(",
    ] {
        for (at, _) in code.match_indices(call) {
            let rest = &code[at + call.len()..];
            let mut depth = 1;
            let end = rest.find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            });
            let inside = &rest[..end.unwrap_or(0)];
            found.extend(inside.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// Messages of mounting that say all there is to say.
const PLAIN: &[&str] = &[
    "a dead mount of something else is in the way",
    "a dead mount is in the way: {e}",
    "FORERUN_RUNTIME_DIR={}: {}",
    "the address space is limited",
    "--memory {}: must be at least",
];

#[test]
fn each_message_by_which_a_mount_is_refused_has_an_entry() {
    let mut seen = 0;
    for file in [
        "mount/src/attach.rs",
        "mount/src/point.rs",
        "mount/src/limits.rs",
        "mount/src/budget.rs",
        "surface/src/daemon/sockets.rs",
        "watch/src/tracepoint.rs",
        "cli/src/commands/umount.rs",
    ] {
        let text = fs::read_to_string(root().join("crates").join(file)).unwrap();
        let text = text.replace("{DEVICE}", "/dev/fuse");
        let code = joined(text.split("#[cfg(test)]\nmod tests").next().unwrap());
        // A message of fewer words is a part of one: a path and an error of the system.
        let messages = refusals(&code);
        for message in messages
            .iter()
            .filter(|message| message.split(' ').count() > 3)
        {
            let has_part = |part: &str| part.len() > 8 && message.contains(part);
            let is_known = LIST.iter().any(|entry| entry.parts().any(has_part));
            let is_plain = PLAIN.iter().any(|plain| message.contains(plain));
            assert!(
                is_known || is_plain,
                "{file}: {message:?} has no entry in crates/cli/src/explain.rs"
            );
            seen += usize::from(is_known);
        }
    }
    assert!(seen >= 10, "{seen}");
}

/// All entries as sections of docs/TROUBLESHOOTING.md.
fn as_page() -> String {
    let mut page = String::new();
    for entry in LIST {
        let Entry {
            code,
            printed,
            by,
            cause,
            remedy,
        } = entry;
        let said = match by {
            By::Forerun | By::Others => format!("```text\n{printed}\n```"),
            By::Seen => format!("*{printed}.*"),
        };
        write!(page, "\n### {code}\n\n{said}\n\n{cause} {remedy}\n").unwrap();
    }
    page
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "whether the page is made anew is for whoever runs the tests"
)]
fn the_page_is_the_table() {
    let path = root().join("docs/TROUBLESHOOTING.md");
    let page = fs::read_to_string(&path).unwrap();
    let (front, below) = page.split_once("\n### ").unwrap_or((page.trim_end(), ""));
    let made = format!("{}\n{}", front.trim_end(), as_page());
    if std::env::var_os("FORERUN_BLESS").is_some() {
        fs::write(&path, made).unwrap();
    } else {
        assert_eq!(
            page,
            made,
            "FORERUN_BLESS=1 writes the page; it had {} bytes",
            below.len()
        );
    }
}

#[test]
fn a_code_and_a_pasted_message_are_answered_alike() {
    let by_code = output_of("explain daemon-dead");
    assert!(by_code.contains("remedy  Mount again"), "{by_code}");
    assert!(find("forerun: /a/b: no such file")[0].code == "no-file");
    let codes = |wanted: &str| -> Vec<_> { find(wanted).iter().map(|entry| entry.code).collect() };
    assert_eq!(codes("DAEMON-DEAD"), ["daemon-dead"]);
    let pasted = "forerun: cannot mount on /a: fusermount3: Permission denied (os error 13)";
    assert_eq!(codes(pasted), ["fusermount-rights"]);
    assert_eq!(codes("cat: f: Permission denied"), ["other-users"]);
    let pasted = "forerun: --metrics 127.0.0.1:9: Address already in use (os error 98)";
    assert_eq!(codes(pasted), ["address-in-use"]);
    let all = output_of("explain");
    assert_eq!(all.lines().count(), LIST.len());
    let refused = forerun("explain nonsense")
        .code(2)
        .get_output()
        .stderr
        .clone();
    assert!(
        String::from_utf8(refused)
            .unwrap()
            .contains("\"nonsense\": neither a code nor a message")
    );
}

#[test]
fn each_entry_of_the_list_is_found_by_its_code_and_by_its_text() {
    for line in output_of("explain").lines() {
        let (code, printed) = line.split_once(' ').unwrap();
        let of = |wanted: &str| find(wanted).iter().any(|entry| entry.code == code);
        assert!(of(code) && of(printed.trim()), "{line}");
        assert!(of(&format!(" {}.", printed.trim())), "{line}");
    }
    // A symptom is no part of a message.
    let pasted = "a program hangs, and cannot be killed, said one";
    assert!(find(pasted).is_empty());
}
