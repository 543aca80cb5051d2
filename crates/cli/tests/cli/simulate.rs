//! `forerun simulate`: small traces whose results can be reckoned by hand, and bad input.

use std::path::{Path, PathBuf};

use serde_json::Value;
use snapbox::str;

use super::skipped::skipped;
use super::trace::piped;
use super::{Folder, forerun, output_of};

/// Figure 1 of Kimbrel et al. 1996: six blocks on two disks.
const FIGURE_1: &[u8] = b"0 0\n1 1\n2 0\n3 1\n4 0\n5 0\n";

pub(super) fn rows(arguments: &str) -> Vec<Value> {
    let text = output_of(&format!("simulate {arguments} --format json"));
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

#[test]
fn figure_1_takes_7_units_and_the_optimum_6() {
    let folder = Folder::new();
    let trace = folder.file("figure1", FIGURE_1);
    forerun(&format!(
        "simulate --trace {trace} --trace-format plain --device unit --fetch-units 2 \
         --warm 0,1,3,5 --cache-blocks 4 --preset aggressive,reverse-aggressive --batch 1"
    ))
    .success()
    .stdout_eq(str![[r#"
preset              disks  place  K  reads  hits  late  misses  miss ratio  fetches  unused  elapsed  stall  p99  over bound  bound is
aggressive              2  -      4      6     5     1       0      0.1667        3       0        7      1    -       1.167  optimum
reverse-aggressive      2  -      4      6     5     1       0      0.1667        3       0        7      1    -       1.167  optimum

"#]]);
}

#[test]
fn json_has_the_keys() {
    let folder = Folder::new();
    let trace = folder.file("t", b"0\n1\n2\n0\n");
    forerun(&format!(
        "simulate --trace {trace} --device hp97560 --cache-blocks 8 --preset demand-lru \
         --disks 2 --think 1ms --format json"
    ))
    .success()
    .stdout_eq(str![[r#"
{"arrivals":null,"block_bytes":8192,"bound_kind":"transfer","bound_ns":8914528,"cache_blocks":8,"cache_bytes":65536,"compute_from":"think","compute_ns":3000000,"device":"hp97560","device_response_mean_ns":11795691,"device_utilisation":[0.557337880003,0.364510815164],"disks":2,"driver_ns":75000,"elapsed_ns":38387075,"evicted_unused":0,"failed":0,"fetches":3,"flags":"think 1000000ns","hits":1,"late_hits":0,"loop":"closed","miss_ratio":0.75,"misses":3,"notice":null,"over_bound":4.3061,"over_reverse_aggressive":null,"part":null,"place":"address","prefetched":0,"preset":"demand-lru","readers_by":"one","reads":4,"regions":"striped","response_max_ns":18375371,"response_p50_ns":3031039,"response_p90_ns":18375371,"response_p99_9_ns":18375371,"response_p99_ns":18375371,"saturated":false,"scheduler":"cscan","stall_ns":35312075,"trace":"[..]","wait_max_ns":18350371,"wait_p50_ns":14024703,"wait_p90_ns":18350371,"wait_p99_9_ns":18350371,"wait_p99_ns":18350371,"workload":null,"writes":false}

"#]]);
}

#[test]
fn csv_has_a_header_and_a_row_a_run() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n3\n1\n");
    forerun(&format!(
        "simulate --trace {trace} --device instant --cache-blocks 2,8 --preset demand-lru \
         --format csv"
    ))
    .success()
    .stdout_eq(str![[r#"
trace,part,writes,workload,preset,device,scheduler,disks,cache_blocks,cache_bytes,block_bytes,compute_from,flags,place,regions,notice,reads,hits,late_hits,misses,miss_ratio,fetches,prefetched,evicted_unused,failed,elapsed_ns,compute_ns,driver_ns,stall_ns,device_response_mean_ns,device_utilisation,bound_ns,bound_kind,over_bound,over_reverse_aggressive,readers_by,loop,arrivals,saturated,response_p50_ns,response_p90_ns,response_p99_ns,response_p99_9_ns,response_max_ns,wait_p50_ns,wait_p90_ns,wait_p99_ns,wait_p99_9_ns,wait_max_ns
[..],,false,,demand-lru,instant,cscan,1,2,16384,8192,none,,address,concatenated,,4,0,0,4,1.0,4,0,0,0,100000,0,100000,0,0,0.0,75000,compute + driver of each block once,1.3333,,one,closed,,false,25000,25000,25000,25000,25000,,,,,
[..],,false,,demand-lru,instant,cscan,1,8,65536,8192,none,,address,concatenated,,4,1,0,3,0.75,3,0,0,0,75000,0,75000,0,0,0.0,75000,compute + driver of each block once,1.0,,one,closed,,false,25000,25000,25000,25000,25000,,,,,

"#]]);
}

#[test]
fn every_hinted_method_adds_up_and_none_is_below_the_bound() {
    let folder = Folder::new();
    let text: String = (0..600).map(|i| format!("{}\n", i * i % 97)).collect();
    let trace = folder.file("t", text.as_bytes());
    let all = "demand-lru,demand-opt,fixed-horizon,aggressive,reverse-aggressive,forestall";
    for device in ["hp97560", "ssd", "unit", "instant", "object_store"] {
        let arguments = format!(
            "--trace {trace} --device {device} --cache-blocks 24,40 --disks 1,3 --preset {all} \
             --think 1ms"
        );
        let one = rows(&arguments);
        assert_eq!(one.len(), 24);
        for row in &one {
            let count = |key: &str| row[key].as_u64().unwrap_or(0);
            assert_eq!(count("reads"), 600);
            assert_eq!(count("hits") + count("late_hits") + count("misses"), 600);
            let missed = (count("misses") + count("late_hits")) as f64 / 600.0;
            let told = row["miss_ratio"].as_f64().unwrap();
            assert!((told - missed).abs() <= 1e-12, "{row}");
            let parts = count("compute_ns") + count("driver_ns") + count("stall_ns");
            assert_eq!(count("elapsed_ns"), parts, "{row}");
            assert!(row["over_bound"].as_f64().unwrap() >= 1.0, "{row}");
            let utilisation = row["device_utilisation"].as_array().unwrap();
            assert_eq!(utilisation.len() as u64, count("disks"));
        }
        assert_eq!(rows(&format!("{arguments} --threads 3")), one);
    }
}

#[test]
fn reading_on_over_one_disk_is_not_below_the_bound() {
    let folder = Folder::new();
    for blocks in [1, 20, 600, 3000] {
        let text: String = (0..blocks).map(|i| format!("{i}\n")).collect();
        let trace = folder.file("t", text.as_bytes());
        for device in [
            "hp97560",
            "hp_c2247a",
            "ibm_lightning_0661",
            "ibm_36gb_10k",
            "seagate_146gb_10k",
            "cheetah_15k_st373454",
            "hitachi_t7k250_160",
        ] {
            let arguments = format!("--trace {trace} --device {device} --driver 0ns --disks 1,2");
            for row in rows(&arguments) {
                assert!(row["over_bound"].as_f64().unwrap() >= 1.0, "{row}");
            }
        }
    }
}

#[test]
fn engine_presets_run_over_workloads_and_traces() {
    let folder = Folder::new();
    let text: String = (0..2000).map(|i| format!("{i}\n")).collect();
    let trace = folder.file("t", text.as_bytes());
    for input in [
        "--workload sequential(file_bytes=8000000)".to_owned(),
        "--workload many-readers(readers=3,file_bytes=4000000)".to_owned(),
        format!("--trace {trace}"),
    ] {
        let rows = rows(&format!(
            "{input} --preset none,forerun --disks 2 --cache-blocks 8192 --device hp97560"
        ));
        let elapsed = |at: usize| rows[at]["elapsed_ns"].as_u64().unwrap();
        // Reads of several blocks keep both disks busy by themselves; those of one block do not.
        let is_bound = !input.starts_with("--trace");
        assert!(elapsed(1) < elapsed(0) + u64::from(is_bound), "{rows:?}");
        assert_eq!(rows[0]["prefetched"], 0);
        assert!(rows[1]["prefetched"].as_u64().unwrap() > 0);
    }
}

#[test]
fn the_engines_methods_can_be_put_in_place_of_a_presets() {
    let run = |methods: &str| {
        let arguments = format!(
            "--workload sequential(file_bytes=4000000) --preset forerun --cache-blocks 4096 \
             --device hp97560 {methods}"
        );
        let row = rows(&arguments).remove(0);
        ["prefetched", "elapsed_ns"].map(|key| row[key].as_u64().unwrap())
    };
    let [preset, elapsed] = run("");
    assert!(preset > 0);
    assert_eq!(run("--detect none")[0], 0);
    assert!(run("--depth fixed(depth_bytes=16384)")[1] > elapsed);
    assert!(run("--dispatch fifo --reclaim exclusive")[0] > 0);
}

#[test]
fn a_longer_wait_lets_many_readers_switch_less() {
    let elapsed = |option: &str| {
        let arguments = format!(
            "--workload many-readers(file_bytes=8000000,readers=64) --preset forerun --cache-blocks 65536 \
             --device switching(cost_ns=8000000,rate_bytes_per_second=80000000) {option}"
        );
        rows(&arguments).remove(0)["elapsed_ns"].as_u64().unwrap()
    };
    let [short, preset, long] = ["--longest-wait 1s", "", "--longest-wait 16s"].map(&elapsed);
    assert!(long < preset && preset < short, "{long} {preset} {short}");
    let same = "--dispatch continuing(longest_wait_ms=1000)";
    assert_eq!(elapsed(same), short);
}

/// With disks coming free one by one aggressive decides more often, and so with less to choose.
#[test]
fn when_a_free_disk_is_noticed_is_an_option_and_in_the_row() {
    let run = |notice: &str| {
        let row = rows(&format!(
            "--workload synth --preset aggressive --batch 4 --disks 3 --device hp97560 \
             --driver 500us {notice}"
        ));
        let unused = row[0]["evicted_unused"].as_u64().unwrap();
        (row[0]["notice"].as_str().unwrap().to_owned(), unused)
    };
    let (name, at_once) = run("");
    assert_eq!(name, "at-once");
    assert_eq!(run("--notice at-once").1, at_once);
    let (name, at_reads) = run("--notice at-reads");
    assert_eq!(name, "at-reads");
    assert!(3 * at_reads < at_once, "{at_reads} {at_once}");
}

#[test]
fn synth_takes_the_papers_fetches() {
    let rows = rows("--workload synth --preset demand-opt --device instant --disks 1");
    assert_eq!(rows[0]["fetches"], 37_280);
}

#[test]
fn compute_times_come_from_the_trace_or_from_arrivals() {
    let folder = Folder::new();
    let said = folder.file("said", b"1 0 5\n2 0 7\n3 0 9.5\n") + " --trace-format plain";
    let timed = folder.file("timed", b"0,0,512,r,1.0\n0,99,512,r,1.5\n");
    for (trace, from, compute) in [(said, "trace", 16_500), (timed, "arrivals", 500_000_000)] {
        let rows = rows(&format!("--trace {trace} --preset demand-lru"));
        assert_eq!(rows[0]["compute_from"], from);
        assert_eq!(rows[0]["compute_ns"], compute);
    }
}

#[test]
fn a_device_from_a_file_needs_no_rebuild() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n3\n");
    let toml = b"kind = \"switching\"\nswitching_ms = 3\ntransfer_mb_s = 8.192\n";
    let toml = folder.file("disk.toml", toml);
    let rows = rows(&format!(
        "--trace {trace} --device-file {toml} --preset demand-lru --driver 0ns --place address"
    ));
    assert_eq!(rows[0]["elapsed_ns"], 3_000_000 + 3 * 1_000_000);
}

#[test]
fn every_disk_of_an_array_has_the_scheduler_of_its_row() {
    let folder = Folder::new();
    let text: String = (0..400).map(|i| format!("{}\n", i * 37 % 400)).collect();
    let trace = folder.file("t", text.as_bytes());
    let row = |arguments: &str| {
        let mut rows = rows(&format!(
            "--trace {trace} --preset aggressive --place address {arguments}"
        ));
        rows.remove(0)
    };
    let named = row("--device array(disks=2):sstf:hp97560");
    let given = row("--device array(disks=2):hp97560 --scheduler sstf");
    assert_eq!(named["scheduler"], "sstf");
    assert_eq!(named["elapsed_ns"], given["elapsed_ns"]);
    let usual = row("--device array(disks=2):hp97560");
    assert_eq!(usual["scheduler"], "cscan");
    let none = row("--device array(disks=2):hp97560 --scheduler fcfs");
    assert_ne!(none["elapsed_ns"], given["elapsed_ns"]);
    assert_eq!(row("--device ssd")["scheduler"], "fcfs");
    assert_eq!(row("--device unit")["scheduler"], "fcfs");
}

/// As long as a trace has few different blocks, its length takes no memory: with room for the
/// program and little else, ten times as many requests are no more than before.
#[test]
fn a_trace_of_any_length_is_simulated_in_bounded_memory() {
    // The program and its libraries take 30 MB of addresses; 4 million references kept would
    // take 64 MB more, and 400,000 take 6.
    const KIB: u64 = 64 << 10;
    let folder = Folder::new();
    let chunk: String = (0..20_000).map(|i| format!("{}\n", i % 2000)).collect();
    for chunks in [20, 200] {
        let trace = folder.file("t", chunk.repeat(chunks).as_bytes());
        let program = snapbox::cmd::cargo_bin!("forerun").display().to_string();
        let run = |presets: &str| {
            let script = format!(
                "ulimit -v {KIB}; exec {program} simulate --trace {trace} --format json \
                 --device instant --cache-blocks 4000 --block-bytes 4KiB --preset {presets}"
            );
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            (output.status.success(), output.stdout)
        };
        let (is_done, text) = run("demand-lru,forerun,none");
        assert!(is_done, "{chunks}");
        let text = String::from_utf8(text).unwrap();
        for row in text.lines().map(|line| serde_json::from_str(line).unwrap()) {
            let row: Value = row;
            assert_eq!(row["reads"], 20_000 * chunks);
        }
        // One that keeps references finds the limit where there are many.
        assert_eq!(run("demand-opt").0, chunks == 20, "{chunks}");
    }
}

/// Published traces belong to others and lie beside the repository, or where `FORERUN_TRACES` says.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test is told where traces lie")]
fn published_traces_run_under_every_hinted_method() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("FORERUN_TRACES").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        skipped(format_args!(
            "no traces in {} (FORERUN_TRACES)",
            folder.display()
        ));
        return;
    }
    let all = "demand-lru,demand-opt,fixed-horizon,aggressive,reverse-aggressive,forestall";
    let files = ["lirs", "disksim", "timed"].map(|part| std::fs::read_dir(folder.join(part)));
    let files = files.into_iter().flatten().flatten().flatten();
    for path in files.map(|file| file.path()) {
        let name = path.display().to_string();
        if !name.contains(".trace") && !name.contains(".ascii") && !name.contains(".vscsi") {
            continue;
        }
        let rows = rows(&format!(
            "--trace {name} --place packed --disks 2 --preset {all} --threads 2"
        ));
        assert_eq!(rows.len(), 6);
        for row in rows {
            let count = |key: &str| row[key].as_u64().unwrap();
            assert_eq!(
                count("hits") + count("late_hits") + count("misses"),
                count("reads")
            );
            let parts = count("compute_ns") + count("driver_ns") + count("stall_ns");
            assert_eq!(count("elapsed_ns"), parts, "{name}: {row}");
            assert!(row["over_bound"].as_f64().unwrap() >= 1.0, "{name}: {row}");
        }
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n3\n");
    let broken = folder.file("broken", b"1\n2\nthree\n");
    let far = folder.file("far", b"0,0,512,r,1.0\n0,99999999999,512,r,1.5\n");
    let writes = folder.file("writes", b"0,0,512,w,1.0\n");
    let two = folder.file("two", b"1 0\n2 1\n");
    let names = folder.file("names", b"a\nb\nc\n");
    let counted = folder.file("counted", b"key,op,size,freq\n1,GET,100,58\n");
    let recorded = folder.file("recorded", &b"\x07tae".repeat(30));
    let toml = folder.file("bad.toml", b"kind = \"tape\"\n");
    let half = folder.file("half", b"0,8,512,r,0.1\n0,16,5");
    let line = |time: u64| format!("0,8,512,r,{time}\n");
    let back: String = (5..2007).chain([1]).map(line).collect();
    let back = folder.file("back", back.as_bytes());
    // The head of a gzip file, and nothing more of it.
    let cut = folder.file("cut", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x33]);
    let binary = folder.file("binary", &[1, 0x81].repeat(20));
    for (arguments, message) in [
        (
            format!("--trace {broken} --trace-format lirs"),
            "broken:3: \"three\"",
        ),
        (
            format!("--trace {trace} --trace-format spc"),
            "it looks like",
        ),
        (
            "--workload many-readers --preset kernel,watch --driver 500us".to_owned(),
            "--driver: no preset named has processor time",
        ),
        (format!("--trace {far} --place address"), "far:2: block "),
        (format!("--trace {writes}"), "--writes"),
        (format!("--trace {trace} --disks 0"), "from 1 to 1024"),
        (format!("--trace {trace} --cache-blocks 0"), "from 1 to"),
        (
            format!("--trace {trace} --cache-blocks 1 --preset forerun"),
            "must be at least 34 blocks",
        ),
        (
            format!("--trace {trace} --device ssd --scheduler sstf"),
            "ssd works on 8 requests at once",
        ),
        (
            format!("--trace {trace} --device sstf:hp97560 --scheduler look"),
            "a scheduler of its own, sstf",
        ),
        (
            format!("--trace {trace} --device unit --scheduler look"),
            "--device unit serves",
        ),
        (
            format!("--trace {trace} --scheduler loook"),
            "there is fcfs",
        ),
        (
            format!("--trace {trace} --horizon 9 --preset demand-opt"),
            "--horizon: no preset",
        ),
        (
            format!("--trace {trace} --detect none --preset demand-opt"),
            "--detect: no preset named",
        ),
        (
            format!("--trace {trace} --notice at-reads --preset demand-lru,forerun"),
            "--notice: no preset named follows announced reads",
        ),
        (
            format!("--trace {trace} --notice soon"),
            "at-once, at-reads",
        ),
        (
            format!("--trace {trace} --preset forestall --block-bytes 0"),
            "invalid value '0' for '--block-bytes",
        ),
        (
            format!("--trace {trace} --fetch-units 3"),
            "--fetch-units: is for --device unit",
        ),
        (
            format!("--trace {trace} --trace-memory 250 --preset aggressive"),
            "t:3: no room for more than 2 references",
        ),
        (format!("--trace {half}"), "half:2: \"0,16,5\""),
        (format!("--trace {cut}"), "gzip: damaged or cut off"),
        (format!("--trace {back}"), "back:2003: time "),
        (
            format!("--trace {far} --disks 4 --preset forerun --place address"),
            "far:2: block ",
        ),
        (format!("--trace {binary}"), "none of the formats"),
        (
            format!(
                "--trace {far} --device instant --preset none --place address --block-bytes 8KiB"
            ),
            "far:2: block 6249999999 is beyond",
        ),
        (format!("--trace {trace} --device-file {toml}"), "tape"),
        (format!("--trace {trace} --device hp9756"), "hp97560"),
        (format!("--trace {trace} --preset agressive"), "aggressive"),
        (
            format!("--trace {trace} --preset lru"),
            "nearest are demand-lru, ",
        ),
        (
            format!("--trace {trace} --preset forerun --device unit"),
            "hinted methods",
        ),
        (
            format!("--trace {trace} --device unit --cache-blocks 1 --warm 9,8"),
            "--warm: 2 blocks, the cache has 1",
        ),
        (format!("--trace {trace} --warm 1"), "--device unit"),
        (
            format!("--trace {two} --trace-format plain --regions concatenated --disks 3"),
            "--regions concatenated: 2 regions, concatenated, leave some of 3 disks empty",
        ),
        (format!("--trace {two}"), "--trace-format"),
        (
            format!("--trace {trace} --place dense --preset demand-lru,forerun"),
            "--place dense with --preset forerun: blocks lie in the order of first use",
        ),
        (
            format!("--trace {names} --preset demand-lru"),
            "names: blocks have names and no addresses",
        ),
        (
            format!("--trace {names} --preset linux-2.6.24 --place dense"),
            "names: --preset linux-2.6.24: takes addresses",
        ),
        (format!("--trace {counted}"), "column \"freq\""),
        (format!("--trace {recorded}"), "blkparse"),
        (
            "--workload many-readers --preset forestall".to_owned(),
            "one reader",
        ),
        (
            "--workload sequential(file_bytes=9000000000) --preset none --cache-blocks 9000 \
             --device hp97560"
                .to_owned(),
            "its files take 9000005632 bytes, the disks have 1374216192",
        ),
        ("--workload synth(seed=x)".to_owned(), "seed=N"),
        ("--workload sequental".to_owned(), "sequential"),
        ("--preset forestall".to_owned(), "required"),
    ] {
        let assert = forerun(&format!("simulate {arguments}")).code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{arguments}: {error}");
    }
}

/// Of those that read it again: from the copy, by several at once. Of those that do not: no copy.
#[test]
fn a_pipe_gives_what_the_file_gives_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let lines: String = (0..50_000).map(|n| format!("{}\n", n * 7 % 1000)).collect();
    let trace = folder.file("t", lines.as_bytes());
    let temporary = Folder::new();
    for preset in ["forestall", "demand-lru,forerun,linux-2.6.24"] {
        let with = |name: &str| {
            format!(
                "simulate --trace {name} --preset {preset} --device instant --disks 1,2 \
                 --threads 4 --format csv"
            )
        };
        let expected = output_of(&with(&trace));
        for name in ["-", "/dev/stdin"] {
            let assert = piped(&with(name), lines.as_bytes(), &temporary).success();
            let found = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
            // Each row names its input.
            let found = found.replace("\nstandard input,", &format!("\n{trace},"));
            let found = found.replace("\n/dev/stdin,", &format!("\n{trace},"));
            assert_eq!(found, expected, "{preset} from {name}");
        }
    }
    assert_eq!(std::fs::read_dir(temporary.path("")).unwrap().count(), 0);
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_value_and_range() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n3\n1\n");
    let wide = "kind = \"ssd\"\nchannels = 18446744073709551616\n";
    let nan = "kind = \"switching\"\nswitching_ms = nan\ntransfer_mb_s = 1\n";
    let (wide, nan) = (
        folder.file("wide.toml", wide.as_bytes()),
        folder.file("nan.toml", nan.as_bytes()),
    );
    let writes = folder.file("w", b"0,0,8192,w,0.5\n");
    for (arguments, message) in [
        (
            format!("--trace {trace} --device-file {wide}"),
            "wide.toml: line 2: ",
        ),
        (
            format!("--trace {trace} --device-file {nan}"),
            "switching_ms = NaN: must lie from 0 to 60000",
        ),
        (
            format!("--trace {trace} --think 3601s"),
            "must lie from 0 to 3600 s",
        ),
        (
            format!("--trace {trace} --driver 3601s"),
            "must lie from 0 to 3600 s",
        ),
        (
            "--workload sequential(file_bytes=0) --preset forestall".to_owned(),
            "there is no read in it\n",
        ),
        (format!("--trace {writes}"), "only writes (1)"),
        (
            "--workload ld(seed=x)".to_owned(),
            "must be a whole number from 0 to 18446744073709551615\n",
        ),
    ] {
        let assert = forerun(&format!("simulate {arguments}")).code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{arguments}: {error}");
        let lines = error.lines().take_while(|line| !line.is_empty()).count();
        assert_eq!(lines, 1, "{arguments}: {error}");
    }
}

/// Two computations of 584 years.
#[test]
fn a_run_that_takes_longer_than_virtual_time_is_refused() {
    let folder = Folder::new();
    let years = "1\n2 0 18446744073709551.615\n3 0 18446744073709551.615\n4\n";
    let trace = folder.file("t", years.as_bytes());
    for preset in ["forestall", "demand-lru", "forerun"] {
        let assert = forerun(&format!(
            "simulate --trace {trace} --trace-format plain --preset {preset} --device instant"
        ));
        let assert = assert.code(1);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            error.contains("longer than 2^64 - 1 ns"),
            "{preset}: {error}"
        );
    }
}
