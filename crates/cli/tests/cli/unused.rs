//! Flags that nothing uses, and facts of a trace that are left out: refused or told, none without a word.

use super::trace::piped;
use super::{Folder, forerun};

/// Refused with code 2 and a message that has this.
fn refused(arguments: &str, message: &str) {
    let assert = forerun(arguments).code(2).stdout_eq("");
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains(message), "{arguments}: {said}");
}

#[test]
fn a_flag_that_no_run_uses_is_refused() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1\n2\n3\n");
    let made = "simulate --workload sequential(file_bytes=1000000)";
    for (arguments, message) in [
        (
            format!("{made} --preset none --place packed"),
            "--place: is for a trace, or for hinted methods",
        ),
        (
            format!("{made} --preset none --regions striped"),
            "--regions: is for a trace",
        ),
        (
            format!("{made} --preset none --trace-memory 1GiB"),
            "--trace-memory: is for a trace",
        ),
        (
            format!("{made} --preset demand-lru --writes"),
            "has no writes, which --writes is for",
        ),
        (
            format!("simulate --trace {trace} --device unit --driver 25us"),
            "--driver: --device unit has no processor time",
        ),
        (
            format!("simulate --trace {trace} --device unit --notice at-reads"),
            "--notice: --device unit has",
        ),
        (
            format!("simulate --trace {trace} --preset forestall(batch_blocks=16) --batch 3"),
            "--batch: no preset named has a batch_blocks, or each has one of its own",
        ),
        (
            format!("simulate --trace {trace} --preset fixed-horizon(horizon_refs=9) --horizon 3"),
            "--horizon: no preset named",
        ),
    ] {
        refused(&arguments, message);
    }
    for used in [
        format!("{made} --preset none,demand-lru --place packed --trace-memory 1GiB"),
        format!(
            "simulate --trace {trace} --preset forestall(batch_blocks=16),aggressive --batch 3"
        ),
    ] {
        forerun(&used).success();
    }
}

#[test]
fn an_option_of_engines_is_refused_where_a_bench_has_none() {
    let folder = Folder::new();
    let path = folder.name("");
    let kernel = format!("bench --preset kernel --file-bytes 4KiB {path}");
    for (flag, value) in [
        ("--memory", "1MiB"),
        ("--depth", "competitive"),
        ("--backend", "pread"),
        ("--hints", ""),
        ("--stripe", "strip=64KiB,disks=4"),
    ] {
        let message = format!("--preset kernel: it has no use for {flag}");
        refused(&format!("{kernel} {flag} {value}"), &message);
    }
    refused("bench --hinted forestall --file-bytes 4KiB", "--hints");
    refused(
        &format!("bench --workload web-server {path} {path}"),
        "makes its own files: give one DIR, or nothing",
    );
    forerun(&format!(
        "bench --preset kernel,none --memory 1MiB --file-bytes 4KiB {path}"
    ))
    .success();
}

#[test]
fn a_drive_that_is_validated_takes_no_flag_of_a_cache_or_an_engine() {
    let folder = Folder::new();
    let trace = folder.file("t", b"R Miss 0 100 10000 4900\nR Miss 50 1 3200 0\n");
    let validate = format!("simulate --validate {trace} --device hp97560");
    forerun(&validate).success();
    for flag in [
        "--block-bytes 4KiB",
        "--driver 0ns",
        "--notice at-reads",
        "--threads 2",
        "--trace-memory 1GiB",
        "--detect none",
        "--depth competitive",
        "--shape whole",
        "--dispatch fifo",
        "--longest-wait 9ms",
        "--reclaim lru",
        "--next-file none",
        "--measure given",
    ] {
        let name = flag.split(' ').next().unwrap_or_default();
        let assert = forerun(&format!("{validate} {flag}")).code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            said.contains("cannot be used with") && said.contains(name),
            "{flag}: {said}"
        );
    }
}

#[test]
fn blocks_that_are_no_strips_of_an_array_are_refused_before_any_run() {
    let run =
        "simulate --workload sequential(file_bytes=1000000) --preset demand-lru,none --disks 2";
    refused(
        &format!("{run} --block-bytes 10000"),
        "--block-bytes with --preset none: 10000 bytes are the strip of the disks, which must be at most 4096 bytes or \
         a multiple of that",
    );
    forerun(&format!("{run} --block-bytes 12KiB")).success();
}

#[test]
fn objects_that_count_as_blocks_are_told() {
    let folder = Folder::new();
    let trace = folder.file(
        "sized.csv",
        b"time_s,obj_id,obj_size\n0,1,4096\n1,2,100\n2,1,4096\n3,3,9\n",
    );
    let said = |block: &str| {
        let run = format!("simulate --trace {trace} --preset demand-lru --block-bytes {block}");
        let assert = forerun(&run).success();
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    let told = "2 requests have a size of their own, and each counts as a block of 4096 bytes";
    assert!(said("4KiB").contains(told), "{}", said("4KiB"));
    assert!(said("8KiB").contains("4 requests have"), "{}", said("8KiB"));
    let plain = folder.file("plain", b"1\n2\n");
    let run = format!("simulate --trace {plain} --preset demand-lru");
    forerun(&run).success().stderr_eq("");
}

#[test]
fn a_sample_without_a_cache_is_refused_with_the_least_of_both() {
    let folder = Folder::new();
    let lines: String = (0..20_000).map(|n| format!("{}\n", n * 7 % 4000)).collect();
    let trace = folder.file("t", lines.as_bytes());
    let count = format!("trace count {trace} --policy lru --sample 10%");
    refused(
        &format!("{count} --cache 79"),
        "--cache: of 79 objects an eighth of a sample of 10% has none, and no error could be told: take 80 objects at \
         least, or --sample 10.1266%",
    );
    refused(&format!("{count} --cache 7"), "or count without --sample");
    refused(&format!("{count} --curve 9"), "--curve: of 4 objects");
    forerun(&format!("{count} --cache 80,5%")).success();
    forerun(&format!(
        "trace count {trace} --policy lru --sample 10.1266% --cache 79"
    ))
    .success();
}

#[test]
fn a_trace_with_names_is_refused_by_presets_that_prefetch_and_names_those_that_run_it() {
    let folder = Folder::new();
    let names = folder.file("names", b"a\nb\nc\n");
    let takes = "names: --preset forerun: takes addresses, and blocks have names: none of the engine's presets that \
                 prefetch can run it; demand-lru, none and hinted methods can, with --place dense";
    for place in ["", "--place packed", "--place dense"] {
        refused(
            &format!("simulate --trace {names} --preset forerun {place}"),
            takes,
        );
    }
    forerun(&format!(
        "simulate --trace {names} --preset demand-lru,none,forestall --place dense --cache-blocks 4096"
    ))
    .success();
    refused(
        &format!("advise {names}"),
        "its blocks have names and no addresses",
    );
    let rows = folder.name("rows");
    for (settings, message) in [
        ("preset = [\"forerun\"]\nplace = \"dense\"\n", takes),
        ("preset = [\"none\"]\n", "--place dense"),
    ] {
        let plan = format!("trace = \"{names}\"\n{settings}");
        let plan = folder.file("plan.toml", plan.as_bytes());
        refused(&format!("sweep {plan} -o {rows}"), message);
        refused(&format!("sweep {plan} -o {rows}"), "plan.toml: line 1: ");
        assert!(!folder.path("rows").exists());
    }
    let plan =
        format!("trace = \"{names}\"\npreset = \"none\"\nplace = \"dense\"\ncache-blocks = 4096\n");
    let plan = folder.file("plan.toml", plan.as_bytes());
    forerun(&format!("sweep {plan} -o {rows}")).success();
}

#[test]
fn standard_input_is_read_once() {
    let folder = Folder::new();
    let other = folder.file("other", b"1\n2\n");
    let row = b"{\"preset\":\"none\"}\n";
    for (arguments, input) in [
        ("trace info - --merge -".to_owned(), &b"1\n2\n"[..]),
        ("trace info - --merge /dev/stdin".to_owned(), b"1\n2\n"),
        (
            format!("simulate --trace {other} --merge=-,- --preset demand-lru"),
            b"1\n2\n",
        ),
        ("report - - -o -".to_owned(), row),
        ("report - --against - -o -".to_owned(), row),
        ("sweep diff /dev/stdin /dev/stdin".to_owned(), row),
    ] {
        let assert = piped(&arguments, input, &folder).code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            said.contains("is named twice, and can be read only once"),
            "{arguments}: {said}"
        );
    }
    let merged = format!("trace info {other} --merge {other}");
    let assert = forerun(&merged);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(!said.contains("named twice"), "{said}");
}
