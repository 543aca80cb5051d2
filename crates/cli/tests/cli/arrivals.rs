//! `forerun simulate` with readers and arrivals of a trace: responses and their percentiles in every output.

use super::simulate::rows;
use super::{Folder, forerun, output_of};

/// Two files that are read far apart, every 10 ms in all, on a disk that takes 9 ms to go elsewhere.
fn log() -> String {
    let mut text = "fio version 3 iolog\n".to_owned();
    for at in 0..400 {
        let (file, offset) = (at % 2, at * 7919 % 400 * 1_000_000 / 8192 * 8192);
        text += &format!("{} f{file} read {offset} 8192\n", at * 10_000);
    }
    text
}

const DEVICE: &str = "--device switching(cost_ns=9000000) --cache-blocks 4096 --driver 0ns";

#[test]
fn a_trace_is_replayed_at_its_times_and_at_others() {
    let folder = Folder::new();
    let trace = folder.file("log", log().as_bytes());
    let run = |flags: &str| {
        let presets = "--preset none,linux-2.6.24";
        let rows = rows(&format!(
            "--trace {trace} --disks 1 {DEVICE} {presets} {flags}"
        ));
        for row in &rows {
            let count = |key: &str| row[key].as_u64().unwrap();
            let answered = count("hits") + count("late_hits") + count("misses");
            assert_eq!(count("reads"), answered, "{row}");
        }
        rows
    };
    for (flags, how, readers) in [
        ("", "closed", "one"),
        ("--loop open", "open", "one"),
        ("--arrivals recorded --readers-by file", "open", "device"),
        ("--loop paced --readers-by device", "paced", "device"),
    ] {
        for row in run(flags) {
            assert_eq!(
                (&row["loop"], &row["readers_by"]),
                (&how.into(), &readers.into())
            );
            // Requests that begin at their times have no computing before them.
            let from = if how == "closed" { "arrivals" } else { "none" };
            assert_eq!(row["compute_from"], from, "{row}");
            assert_eq!(row["saturated"], false, "{row}");
            let times = ["p50", "p90", "p99", "p99_9", "max"];
            let times = times.map(|at| row[format!("response_{at}_ns")].as_u64().unwrap());
            assert!(times.is_sorted() && times[0] > 9_000_000, "{row}");
            assert!(row["wait_p99_ns"].is_u64(), "{row}");
        }
    }
    let fast = &run("--arrivals 2x")[0];
    assert_eq!(fast["arrivals"], "2x");
    assert_eq!(fast["saturated"], true);
    assert!(fast["response_p99_ns"].is_null() && fast["wait_max_ns"].is_null());
    let table = output_of(&format!(
        "simulate --trace {trace} --disks 1 {DEVICE} --preset none --arrivals 2x"
    ));
    assert!(table.contains(" saturated "), "{table}");
}

/// Two programs that each read a file of their own in order, and one that goes through both at random.
#[test]
fn processes_of_a_trace_are_readers_whichever_files_they_read() {
    let folder = Folder::new();
    let mut text = "time_s,pid,device,op,block\n".to_owned();
    for at in 0..600_u64 {
        let (pid, file, block) = match at % 3 {
            2 => (9, at % 2, at * 7919 % 90_000),
            own => (own + 1, own, at / 3),
        };
        text += &format!("{at},{pid},{file},r,{block}\n");
    }
    let trace = folder.file("pids.csv", text.as_bytes());
    let run = |by: &str| {
        rows(&format!(
            "--trace {trace} --disks 1 {DEVICE} --preset none,forerun --readers-by {by} --think 0ns"
        ))
    };
    let (one, pid) = (run("one"), run("process"));
    for row in &pid {
        assert_eq!(
            (&row["readers_by"], &row["loop"]),
            (&"pid".into(), &"closed".into())
        );
        assert_eq!(row["reads"], one[0]["reads"]);
    }
    let elapsed = |row: &serde_json::Value| row["elapsed_ns"].as_u64().unwrap();
    // Each of the three waits for its own reads alone, on one disk.
    assert!(elapsed(&pid[0]) <= elapsed(&one[0]), "{pid:?} {one:?}");
    assert!(elapsed(&pid[1]) < elapsed(&pid[0]) * 3 / 4, "{pid:?}");
    let nameless = folder.file("n", b"1\n2\n");
    let assert = forerun(&format!(
        "simulate --trace {nameless} --preset none --readers-by pid"
    ));
    let error = String::from_utf8_lossy(&assert.code(2).get_output().stderr).into_owned();
    let wanted = "--readers-by pid: the trace names no process";
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn readers_and_arrivals_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let trace = folder.file("log", log().as_bytes());
    let numbers = folder.file("n", b"1\n2\n");
    for (arguments, message) in [
        (
            format!("--trace {trace} --loop open"),
            "--preset demand-lru: --readers-by, --loop and --arrivals: demand-lru and hinted methods follow",
        ),
        (
            format!("--trace {numbers} --loop paced --preset none"),
            "the trace has no times of arrival",
        ),
        (
            format!("--trace {numbers} --arrivals 2x --preset none"),
            "--arrivals: the trace has no times of arrival",
        ),
        (
            format!("--trace {trace} --arrivals 2x --loop closed --preset none"),
            "--arrivals: a closed loop has none",
        ),
        (
            format!("--trace {trace} --arrivals 2x --think 1ms --preset none"),
            "--think with --arrivals: ",
        ),
        (
            format!("--trace {trace} --loop paced --think 0ns --preset none"),
            "--think with --loop paced: ",
        ),
        (
            format!("--trace {trace} --arrivals 0x --preset none"),
            "from 0.001x to 1000x",
        ),
        (
            "--workload sequential --preset none --loop open".to_owned(),
            "a workload has readers and times of its own",
        ),
    ] {
        let assert = forerun(&format!("simulate {arguments}")).code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{arguments}: {error}");
    }
}
