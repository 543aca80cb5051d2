//! Every command of the documents is run by a test, or its fence says `# not run here: REASON`.
//!
//! Three ways: as it stands, in a folder of its own; with paths of a test's own in the test that [`RUN_BY`] names; or not, of
//! which there may be few. Lines of the system's own programs (`grep`, `systemctl`) are of no project and are not counted.

use std::fs;

use super::documents::{Fence, commands_of, fences};
use super::{docs, is_quick};

/// Programs whose commands are counted.
const PROGRAMS: &[&str] = &[
    "forerun",
    "forerun-lab",
    "forerun-bed",
    "make",
    "cargo",
    "pip",
    "python",
    "python3",
    "podman",
    "apt-get",
];

/// Beginnings of commands, a test of the repository that runs such a one, and a text that the test has.
const RUN_BY: &[(&str, &str, &str)] = &[
    (
        "forerun mount s3://",
        "crates/cli/tests/mount/stores.rs",
        "mount",
    ),
    (
        "forerun mount",
        "crates/cli/tests/mount/everyday.rs",
        "mount",
    ),
    (
        "forerun umount",
        "crates/cli/tests/mount/lifecycle.rs",
        "umount",
    ),
    ("forerun top", "crates/cli/tests/mount/watching.rs", "top"),
    ("forerun ctl", "crates/cli/tests/mount/announced.rs", "hint"),
    (
        "forerun doctor",
        "crates/cli/tests/mount/doctor.rs",
        "doctor",
    ),
    ("forerun try", "crates/cli/tests/mount/tune.rs", "\"try\""),
    ("forerun tune", "crates/cli/tests/mount/tune.rs", "tune"),
    ("forerun watch", "crates/cli/tests/watch/main.rs", "watch"),
    ("forerun read", "crates/cli/tests/cli/objects.rs", "read"),
    (
        "forerun profile",
        "crates/cli/tests/cli/profile.rs",
        "profile",
    ),
    ("forerun layout", "crates/cli/tests/cli/layout.rs", "layout"),
    ("forerun bench", "crates/cli/tests/cli/bench.rs", "bench"),
    (
        "forerun replay",
        "crates/cli/tests/cli/journal.rs",
        "replay",
    ),
    ("forerun sweep", "crates/cli/tests/cli/sweep.rs", "sweep"),
    ("forerun report", "crates/cli/tests/cli/report.rs", "report"),
    (
        "forerun advise",
        "crates/cli/tests/mount/record.rs",
        "advise",
    ),
    ("forerun rerun", "crates/cli/tests/cli/sweep.rs", "rerun"),
    ("forerun man", "crates/cli/tests/cli/everyday.rs", "man"),
    (
        "forerun-lab reproduce",
        "crates/reproduce/tests/reproduce/main.rs",
        "reproduce",
    ),
    ("forerun-bed up", "crates/bed/tests/smoke.rs", "up"),
    ("forerun-bed down", "crates/bed/tests/smoke.rs", "down"),
    ("forerun-bed status", "crates/bed/tests/smoke.rs", "status"),
    ("forerun-bed read", "crates/bed/tests/smoke.rs", "read"),
    ("forerun-bed store", "crates/bed/tests/store.rs", "store"),
    (
        "forerun-bed changes",
        "crates/bed/tests/changes.rs",
        "changes",
    ),
    ("forerun-bed small", "crates/bed/tests/small.rs", "small"),
    ("make install", "crates/cli/tests/install.rs", "install.sh"),
    ("make package", "crates/cli/tests/install.rs", "package.sh"),
    ("pip install ./python", "Makefile", "maturin build"),
    ("pip install ./forerun-", "Makefile", "--force-reinstall"),
    (
        "python examples/train.py",
        "python/tests/test_examples.py",
        "train",
    ),
];

/// Fences that no test runs.
const NOT_RUN_MAX: usize = 25;

#[test]
fn every_command_is_run_by_a_test_or_says_why_not() {
    let (mut as_it_stands, mut elsewhere, mut marked, mut of_marked) = (0, 0, 0, 0);
    let mut unknown = Vec::new();
    for Fence {
        document,
        not_run,
        lines,
    } in fences()
    {
        let commands = lines.iter().flat_map(|line| commands_of(line));
        let commands = commands.filter(|words| PROGRAMS.contains(&words[0].as_str()));
        let commands: Vec<Vec<String>> = commands.collect();
        if let Some(reason) = not_run {
            assert!(
                reason.split(' ').count() >= 3,
                "{}: {reason}",
                document.display()
            );
            assert!(!commands.is_empty(), "{}: {lines:?}", document.display());
            marked += 1;
            of_marked += commands.len();
            continue;
        }
        for words in commands {
            let line = words.join(" ");
            if words[0] == "forerun" && is_quick(&words[1..]) {
                as_it_stands += 1;
            } else if RUN_BY.iter().any(|(begin, ..)| line.starts_with(begin)) {
                elsewhere += 1;
            } else {
                unknown.push(format!("{}: {line}", document.display()));
            }
        }
    }
    println!(
        "commands of documents: {as_it_stands} run as they stand, {elsewhere} in tests of their own, {of_marked} in {marked} fences not run here"
    );
    assert!(
        unknown.is_empty(),
        "neither run nor marked:\n{}",
        unknown.join("\n")
    );
    assert!(marked <= NOT_RUN_MAX, "{marked} fences are not run");
}

#[test]
fn the_tests_that_run_commands_are_there() {
    for (command, test, text) in RUN_BY {
        let path = docs().join("..").join(test);
        let source =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{command}: {test}: {error}"));
        assert!(source.contains(text), "{command}: {test} has no {text}");
    }
}
