//! The worked examples of CONTRIBUTING.md still fit the source.
//!
//! An example in a document grows old in silence. This reads their diffs and checks that removed
//! and context lines are there, and that added lines are one file, one `mod` line and one entry. It
//! does not build the result: that was done when it was written, and the lines around it are those
//! that would break it.

use std::fs;
use std::path::Path;

fn read(path: &str) -> Option<String> {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(path),
    )
    .ok()
}

#[test]
fn the_diffs_in_contributing_apply() {
    let text = read("CONTRIBUTING.md").expect("CONTRIBUTING.md");
    let mut examples = 0;
    for rest in text.split("```diff\n").skip(1) {
        let (diff, _) = rest.split_once("\n```\n").expect("the end of the diff");
        check(diff);
        examples += 1;
    }
    assert_eq!(examples, 2, "a depth method and a hinted one");
}

fn check(diff: &str) {
    let (mut new_files, mut mods, mut hunks) = (0, 0, 0);
    for file in diff.split("diff --git ").skip(1) {
        let path = file
            .split_whitespace()
            .next()
            .and_then(|name| name.strip_prefix("a/"));
        let path = path.expect("a path");
        if file.contains("\n--- /dev/null\n") {
            assert_eq!(read(path), None, "{path} exists");
            new_files += 1;
            continue;
        }
        let source = read(path).unwrap_or_else(|| panic!("{path} does not exist"));
        for hunk in file.split("\n@@ ").skip(1) {
            let lines = hunk.lines().skip(1);
            // An empty context line may have lost its blank.
            let old: Vec<&str> = lines
                .clone()
                .filter(|line| !line.starts_with('+'))
                .map(|line| line.get(1..).unwrap_or_default())
                .collect();
            assert!(
                source.contains(&old.join("\n")),
                "{path} has changed around:\n{hunk}"
            );
            mods += lines.filter(|line| line.starts_with("+pub mod ")).count();
            hunks += 1;
        }
    }
    assert_eq!(
        (new_files, mods, hunks),
        (1, 1, 2),
        "one file, one mod line, one entry"
    );
}
