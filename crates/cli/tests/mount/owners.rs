//! Programs behind readers: their processor time, and their end.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::death::open_files;
use super::{Mounted, bytes, eventually, folder};

/// The processor time of a process, in ticks of 10 ms.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let field = |at: usize| fields.split(' ').nth(at).unwrap().parse::<u64>().unwrap();
    field(11) + field(12)
}

/// A shell opens a file, reads a line and computes for a second with the file open; its processor
/// time by the mount's journal, and whether the file was closed before the mount ended.
fn noted(preset: &str) -> Option<(Vec<u64>, bool)> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(3_000_000, 1)).unwrap();
    let (journal, control) = (folder.path().join("journal"), folder.path().join("control"));
    let flags = ["--preset", preset, "--passthrough", "never", "--journal"];
    let paths = [
        journal.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
    ];
    let flags = [&flags[..], &paths].concat();
    let mut mounted = Mounted::of(folder, &flags)?;
    let script = "exec 3<\"$0\"; read -r line <&3; while :; do :; done";
    let mut child = Command::new("sh")
        .args(["-c", script, mounted.point("a").to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a program computes", || ticks(child.id()) > 100);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel tells of a file that a killed program had open some time after its end.
    eventually("the file is closed", || open_files(&control) == 0);
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    let journal = fs::read_to_string(&journal).unwrap();
    let time = |line: &str| {
        line.contains(" cpu ")
            .then(|| line.rsplit(' ').next()?.parse().ok())
    };
    let times = journal.lines().filter_map(time).map(Option::unwrap);
    let is_closed = journal.lines().any(|line| line.contains(" close "));
    Some((times.collect(), is_closed))
}

/// Coldest+ is told of the time that the program computed; other methods have no use for it, and
/// nothing asks.
#[test]
fn a_programs_processor_time_reaches_a_method_that_asks_and_its_end_closes_its_files() {
    let Some((times, is_closed)) = noted("pc-coldest+") else {
        return;
    };
    assert!(times.is_sorted(), "{times:?}");
    let last = times.last().copied().unwrap_or_default();
    assert!(last > 100_000_000, "of a second, {last} ns were told");
    assert!(is_closed, "a killed program's file stays open");
    let (times, _) = noted("mount").unwrap();
    assert!(times.is_empty(), "a method that does not ask: {times:?}");
}
