//! Replay finds no difference in a recorded journal, and every difference in a changed one.

use forerun_baselines::PRESETS;
use forerun_sim::replay::{ReplayError, replay};
use forerun_sim::{Scene, Text, device, trace};
use proptest::prelude::*;

use crate::stage::{DISK, MEMORY, SMALL, run, run_into, settings};

fn text(preset: &str, memory: u64, workload: &str) -> String {
    let mut text = Text::new(String::new());
    run_into(settings(preset, memory), DISK, workload, &mut text);
    text.finish().unwrap()
}

#[test]
fn every_recorded_journal_replays_without_difference() {
    for preset in PRESETS {
        for workload in SMALL {
            let journal = text(preset.name, 2 << 20, workload);
            let replayed = replay(journal.as_bytes())
                .unwrap_or_else(|e| panic!("{} {workload}: {e}", preset.name));
            let lines = journal.lines().count() as u64;
            assert_eq!(replayed.inputs + replayed.outputs + 2, lines);
            assert!(replayed.complete);
        }
    }
}

#[test]
fn a_changed_output_is_found_at_its_line() {
    let journal = text("forerun", 2 << 20, SMALL[0]);
    let outputs = journal
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with('>'));
    for (at, line) in outputs.step_by(7) {
        let changed: Vec<String> = journal
            .lines()
            .enumerate()
            .map(|(i, old)| {
                if i == at {
                    format!("{old}9")
                } else {
                    old.to_owned()
                }
            })
            .map(|line| line.replace("demand9", "ahead").replace("ahead9", "demand"))
            .collect();
        match replay(changed.join("\n").as_bytes()) {
            Err(ReplayError::Difference(found)) => {
                assert_eq!((found.line, found.got.as_str()), (at as u64 + 1, line));
                assert!(found.input.starts_with('<') && found.input_line < found.line);
            }
            other => panic!("line {}: {other:?}", at + 1),
        }
    }
}

#[test]
fn a_lost_or_added_output_is_found() {
    let journal = text("cp", 2 << 20, SMALL[0]);
    let lines: Vec<&str> = journal.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("> fetch"))
        .unwrap();
    let mut lost = lines.clone();
    lost.remove(at);
    let mut added = lines.clone();
    added.insert(at, lines[at]);
    for (changed, line) in [(lost, at + 1), (added, at + 2)] {
        match replay(changed.join("\n").as_bytes()) {
            Err(ReplayError::Difference(found)) => assert_eq!(found.line, line as u64),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named_with_its_reason() {
    let journal = text("none", 2 << 20, SMALL[0]);
    let mut lines: Vec<&str> = journal.lines().collect();
    lines[5] = "< 12 raed 3";
    let error = replay(lines.join("\n").as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 6: \"raed\" where an input should stand"
    );
    assert!(matches!(
        replay(&b""[..]),
        Err(ReplayError::Line { line: 1, .. })
    ));
    let head = lines[0].to_owned() + "\nsetings";
    assert!(matches!(
        replay(head.as_bytes()),
        Err(ReplayError::Line { line: 2, .. })
    ));
    let binary = [journal.as_bytes(), b"\xff\xfe"].concat();
    assert!(matches!(
        replay(&binary[..]),
        Err(ReplayError::NotText { .. })
    ));
    let long = [journal.as_bytes(), &[b'x'; 1 << 17]].concat();
    assert!(matches!(
        replay(&long[..]),
        Err(ReplayError::NotText { .. })
    ));
}

#[test]
fn time_that_runs_backward_is_refused() {
    let journal = text("none", 2 << 20, SMALL[0]) + "< 0 close 0\n";
    let line = journal.lines().count() as u64;
    assert!(matches!(replay(journal.as_bytes()), Err(ReplayError::Time { line: l }) if l == line));
}

#[test]
fn a_journal_cut_off_in_the_middle_is_replayed_as_far_as_it_goes() {
    let journal = text("forerun", 2 << 20, SMALL[0]);
    let lines: Vec<&str> = journal.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("> fetch"))
        .unwrap();
    let replayed = replay((lines[..at].join("\n") + "\n").as_bytes()).unwrap();
    assert!(!replayed.complete);
    // In the middle of a line, wherever: of an input, an output, or before its end.
    let head = lines[..2].iter().map(|line| line.len() + 1).sum::<usize>();
    for cut in head + 1..journal.len().min(head + 4_000) {
        let replayed = replay(&journal.as_bytes()[..cut]);
        assert!(replayed.is_ok(), "{cut}: {replayed:?}");
        let is_whole = journal.as_bytes()[cut - 1] == b'\n';
        assert!(is_whole || !replayed.unwrap().complete, "{cut}");
    }
    assert!(replay(journal.as_bytes()).unwrap().complete);
}

/// Recorded under one preset, read again under another: as if the workload itself had been run.
#[test]
fn a_journal_is_a_workload_for_other_presets() {
    for workload in [SMALL[0], SMALL[3], SMALL[7]] {
        let journal = text("none", MEMORY, workload);
        let (recorded, trace) = trace::journal::trace(journal.as_bytes()).unwrap();
        assert_eq!(recorded, settings("none", MEMORY));
        for preset in ["none", "forerun"] {
            let direct = run(preset, DISK, workload);
            let device = device::parse(DISK).unwrap();
            let again = Scene::new(settings(preset, MEMORY), device, &trace)
                .run(&mut ())
                .unwrap();
            let (direct, again) = (direct.elapsed.0, again.elapsed.0);
            assert!(
                direct.abs_diff(again) <= direct / 50,
                "{workload}: {direct} {again}"
            );
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_replay_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = replay(&bytes[..]);
        let _ = trace::journal::trace(&bytes[..]);
    }

    /// Words of journals in any order, under a good head: deep into the engine.
    #[test]
    fn no_journal_makes_replay_panic(
        picks in proptest::collection::vec((0usize..400, 0usize..12, any::<u32>()), 1..60),
    ) {
        let journal = text("forerun", 2 << 20, SMALL[2]);
        let lines: Vec<&str> = journal.lines().collect();
        let mut changed = lines[..7].join("\n");
        for (line, word, number) in picks {
            let mut words: Vec<String> =
                lines[2 + line % (lines.len() - 2)].split(' ').map(str::to_owned).collect();
            words[0] = "<".into();
            let at = 1 + word % words.len().max(2);
            if let Some(word) = words.get_mut(at).filter(|w| w.parse::<u64>().is_ok()) {
                *word = (number >> (number % 32)).to_string();
            }
            if words.len() > 1 {
                words[1] = u64::MAX.to_string();
            }
            changed += "\n";
            changed += &words.join(" ");
            let _ = replay(changed.as_bytes());
            let _ = trace::journal::trace(changed.as_bytes());
        }
    }
}
