//! Journals: `replay` decides again every run that `read` and `bench` record.

use std::fs;
use std::process::{Command, Stdio};

use forerun_baselines::METHODS;
use snapbox::cmd::cargo_bin;

use super::wait::eventually;
use super::{Folder, NO_FOLDER, bytes, forerun, output_of};

#[test]
fn every_preset_replays_in_both_clocks() {
    let folder = Folder::new();
    let journal = folder.name("journal");
    for preset in [
        "forerun",
        "cp",
        "ap",
        "linux-2.6.24",
        "linux-2.6.22",
        "one-block",
        "none",
    ] {
        for clock in ["real", "virtual"] {
            let run = format!("--clock {clock} --preset {preset} --memory 1MiB --readers 4");
            output_of(&format!(
                "bench {run} --file-bytes 500kB --journal {journal}"
            ));
            let said = output_of(&format!("replay {journal}"));
            assert!(said.starts_with("the same decisions: "), "{run}: {said}");
        }
    }
}

#[test]
fn every_hinted_method_replays_in_both_clocks() {
    let folder = Folder::new();
    let journal = folder.name("journal");
    let disks = "--emulate switching=100us,rate=1GB/s --disks 2 --memory 1MiB --file-bytes 1MB";
    for method in METHODS.hinted {
        for clock in ["real", "virtual"] {
            let name = method.spec.name;
            let run = format!("--clock {clock} --hints --wrong-percent 10 {disks} --preset {name}");
            output_of(&format!("bench {run} --journal {journal}"));
            let said = output_of(&format!("replay {journal}"));
            assert!(said.starts_with("the same decisions: "), "{run}: {said}");
            assert!(
                fs::read_to_string(&journal)
                    .unwrap()
                    .contains(" hint 0 first "),
                "{run}"
            );
        }
    }
}

#[test]
fn read_records_too_and_leaves_no_other_file() {
    let folder = Folder::new();
    let (file, journal) = (folder.file("a", &bytes(300_000)), folder.name("journal"));
    output_of(&format!(
        "read --journal {journal} --stats --length 0 {file}"
    ));
    output_of(&format!("replay {journal}"));
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 2);
}

#[test]
fn a_changed_decision_is_shown_with_its_line() {
    let folder = Folder::new();
    let journal = folder.name("journal");
    output_of(&format!(
        "bench --clock virtual --file-bytes 1MB --preset ap --journal {journal}"
    ));
    let text = fs::read_to_string(&journal).unwrap();
    let (line, fetch) = text
        .lines()
        .enumerate()
        .find(|(_, l)| l.starts_with("> fetch"))
        .unwrap();
    let changed = folder.file(
        "changed",
        text.replacen(fetch, "> serve 7 end", 1).as_bytes(),
    );
    forerun(&format!("replay {changed}"))
        .code(1)
        .stdout_eq("")
        .stderr_eq(format!(
            "forerun: {changed}: line {} differs\n  journal: > serve 7 end\n  \
         engine:  {fetch}\n  after line [..]: < 0 read [..]\n",
            line + 1,
        ));
}

#[test]
fn what_is_no_journal_is_bad_input_with_its_line() {
    let folder = Folder::new();
    let journal = folder.name("journal");
    output_of(&format!(
        "bench --clock virtual --file-bytes 10kB --journal {journal}"
    ));
    let text = fs::read_to_string(&journal).unwrap();
    let cases = [
        (String::new(), "line 1: not a journal[..]"),
        ("hello\n".to_owned(), "line 1: not a journal[..]"),
        ("forerun-journal 5\n".to_owned(), "line 2: [..]"),
        (
            text.replacen("forerun-journal 5", "forerun-journal 4", 1),
            "line 1: a journal of version \"4\"[..]",
        ),
        (
            text.replacen("detect=", "detects=", 1),
            "line 2: settings line: detect= expected",
        ),
        (
            text.replacen("< 0 file", "< zero file", 1),
            "line 4: \"zero\" where a time should stand",
        ),
        (
            text.replacen("< 0 file", "< 0 pipe", 1),
            "line 4: \"pipe\" where an input should stand",
        ),
        (format!("{text}\u{0}\u{1}\n"), "line [..]"),
    ];
    for (text, message) in cases {
        let broken = folder.file("broken", text.as_bytes());
        forerun(&format!("replay {broken}"))
            .code(2)
            .stdout_eq("")
            .stderr_eq(format!("forerun: {broken}: {message}\n"));
    }
    let binary = folder.file("binary", &bytes(100_000));
    forerun(&format!("replay {binary}")).code(2);
}

#[test]
fn a_run_that_is_killed_leaves_the_journal_of_its_reads() {
    let folder = Folder::new();
    let (file, journal) = (folder.file("a", &bytes(2_000_000)), folder.name("journal"));
    let slow = "--emulate switching=1ms,rate=100kB/s";
    for run in [
        // Its output is a pipe that is not read: it hangs.
        format!("read {file}"),
        format!("bench --file-bytes 100MB {slow}"),
        format!("bench {slow} {file}"),
    ] {
        fs::write(&journal, "forerun-journal 4\nof an earlier run\n").unwrap();
        let mut running = Command::new(cargo_bin!("forerun"))
            .env("XDG_CACHE_HOME", NO_FOLDER)
            .args(run.split(' ').chain(["--journal", &journal]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the journal has a read", || {
            fs::read_to_string(&journal).is_ok_and(|text| text.contains(" read 0 "))
        });
        assert!(running.try_wait().unwrap().is_none(), "{run}");
        let second = forerun(&format!("read --journal {journal} {file}")).code(2);
        let said = String::from_utf8_lossy(&second.get_output().stderr).into_owned();
        assert!(said.contains("is written to already"), "{said}");
        running.kill().unwrap();
        running.wait().unwrap();
        let said = output_of(&format!("replay {journal}"));
        assert!(said.starts_with("the same decisions: "), "{run}: {said}");
    }
}

#[test]
fn a_run_that_does_not_come_about_leaves_the_journal_that_was_there() {
    let folder = Folder::new();
    let (file, missing) = (folder.file("a", b"a"), folder.name("missing"));
    let old = "forerun-journal 4\nof an earlier run\n";
    let journal = folder.file("journal", old.as_bytes());
    for run in [
        format!("read {missing}"),
        format!("read {file} --profile {missing}"),
        format!("read {file} --memory 1"),
        format!("bench {missing}"),
        format!("bench {file} --profile {missing}"),
        format!("bench --clock virtual --profile {missing}"),
    ] {
        forerun(&format!("{run} --journal {journal}")).code(2);
        assert_eq!(fs::read_to_string(&journal).unwrap(), old, "{run}");
        let new = folder.name("new");
        forerun(&format!("{run} --journal {new}")).code(2);
        assert!(!folder.path("new").exists(), "{run}");
    }
}

/// Files of 100 MB that a bench makes before it is refused would fill the disk for nothing.
#[test]
fn a_bench_whose_journal_is_in_use_makes_no_files() {
    let (folder, made) = (Folder::new(), Folder::new());
    let dir = made.name("");
    for old in ["", "forerun-journal 5\n"] {
        let journal = folder.file("journal", old.as_bytes());
        let other = fs::File::open(&journal).unwrap();
        rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let run = format!("bench {dir} --file-bytes 64KiB --journal {journal}");
        let refused = forerun(&run).code(2).stdout_eq("");
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(
            said.contains(&format!("{journal}: is written to already")),
            "{said}"
        );
        assert_eq!(fs::read_dir(made.path("")).unwrap().count(), 0, "{old}");
        assert_eq!(fs::read_to_string(&journal).unwrap(), old);
        drop(other);
        output_of(&run);
        assert_eq!(fs::read_dir(made.path("")).unwrap().count(), 1);
        fs::remove_dir_all(made.path("")).unwrap();
        fs::create_dir(made.path("")).unwrap();
    }
}
