//! Flags that nothing uses, and facts of a trace that are left out: refused or told, none without a word.

use super::{Folder, forerun};

/// Refused with code 2 and a message that has this.
fn refused(arguments: &str, message: &str) {
    let assert = forerun(arguments).code(2).stdout_eq("");
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains(message), "{arguments}: {said}");
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
