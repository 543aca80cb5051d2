//! `forerun simulate`: the values that a user does not give, and notes on those that follow from a trace.

use serde_json::Value;

use super::simulate::rows;
use super::{Folder, forerun};

#[test]
fn a_disk_of_this_century_is_the_default_and_a_fetch_costs_what_it_does_today() {
    let row = rows("--workload synth --preset demand-lru").remove(0);
    assert_eq!(row["device"], "hdd");
    let fetches = row["fetches"].as_u64().unwrap();
    assert_eq!(row["driver_ns"].as_u64().unwrap(), fetches * 25_000);
}

/// Three reads of 12 KiB and a write of 64 KiB, each where the one before ends.
#[test]
fn blocks_are_as_large_as_the_most_common_request() {
    let folder = Folder::new();
    let requests =
        b"0,0,12288,r,1\n0,24,12288,r,2\n0,48,512,r,3\n0,128,65536,w,4\n0,256,65536,w,5\n";
    let trace = folder.file("t", requests);
    for (flags, block_bytes, reads, note) in [
        (
            "",
            8192,
            5,
            "blocks of 8192 bytes: 2 of its first 3 requests have 12288",
        ),
        ("--writes", 8192, 21, "2 of its first 5 requests have 12288"),
        ("--block-bytes 4KiB", 4096, 7, ""),
    ] {
        let assert = forerun(&format!(
            "simulate --trace {trace} --preset demand-lru --format json {flags}"
        ))
        .success();
        let output = assert.get_output();
        let row: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(row["block_bytes"], block_bytes, "{flags}");
        assert_eq!(row["reads"], reads, "{flags}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(note), "{flags}: {said}");
        assert_eq!(
            said.contains("blocks of"),
            !note.is_empty(),
            "{flags}: {said}"
        );
    }
    let numbers = folder.file("n", b"1\n2\n3\n");
    let row = rows(&format!("--trace {numbers} --preset demand-lru")).remove(0);
    assert_eq!(row["block_bytes"], 8192);
}

/// Byte 51 TB of a disk of 160 GB; and a disk of two blocks, which three do not fit on.
#[test]
fn blocks_beyond_the_disk_are_refused_unless_they_are_to_lie_without_gaps() {
    let folder = Folder::new();
    let far = folder.file("far", b"0,0,512,r,1.0\n0,99999999999,512,r,1.5\n");
    let assert = forerun(&format!("simulate --trace {far} --preset demand-lru")).code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    for part in [
        "far:2: block 99999999999 ends at byte 51200000000000",
        "--place packed",
    ] {
        assert!(said.contains(part), "{said}");
    }
    for (place, presets) in [
        ("packed", "demand-lru,forerun"),
        ("dense", "demand-lru,none"),
    ] {
        let run = format!("--trace {far} --cache-blocks 4096 --place {place} --preset {presets}");
        for row in rows(&run) {
            assert_eq!(row["place"], place);
        }
    }
    let near = folder.file("near", b"0,0,512,r,1.0\n0,9,512,r,1.5\n");
    let near = format!("--trace {near} --preset demand-lru");
    assert_eq!(rows(&near)[0]["place"], "address");
    let small = "rpm = 6000\nkind = 'hdd'\ntracks_per_cylinder = 1\nhead_switch_ms = 0\n\
                 zone = [{ cylinders = 1, sectors_per_track = 9 }]\n\
                 seek.curve = [{ from_cylinders = 1, base_ms = 0 }]\n\
                 bus.read_bytes_per_second = 1_000_000_000\n";
    let small = folder.file("small.toml", small.as_bytes());
    let numbers = folder.file("n", b"1\n2\n3\n");
    let assert = forerun(&format!(
        "simulate --trace {numbers} --device-file {small} --preset demand-lru --block-bytes 2KiB"
    ));
    let assert = assert.code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        said.contains("block 2 ends at byte 6144 of its disk"),
        "{said}"
    );
    assert!(said.contains("a larger --device or more --disks"), "{said}");
}

/// Of three frames two hold blocks that are not read: there is one less to fetch into until these are
/// given up. 9 twice is one block.
#[test]
fn warm_blocks_need_not_be_of_the_trace() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1 0\n2 0\n1 0\n3 0\n") + " --trace-format plain";
    for preset in [
        "demand-lru",
        "demand-opt",
        "aggressive",
        "reverse-aggressive",
    ] {
        let run = |warm: &str| {
            let arguments = "--device unit --fetch-units 2 --cache-blocks 3";
            rows(&format!(
                "--trace {trace} --preset {preset} {arguments} {warm}"
            ))
            .remove(0)
        };
        let row = run("--warm 9,1,9,7");
        assert_eq!(row["fetches"], 2, "{row}");
        assert_eq!(row["reads"], 4, "{row}");
        assert!(row["over_bound"].as_f64().unwrap() >= 1.0, "{row}");
        assert_eq!(run("--warm 9,7")["fetches"], 3);
    }
}

/// Three devices of a trace on their own disks, on two, on one, and on five.
#[test]
fn how_devices_of_a_trace_lie_on_disks_is_in_the_row() {
    let folder = Folder::new();
    let trace = folder.file("t", b"1 0\n2 1\n3 2\n1 0\n") + " --trace-format plain";
    for (flags, regions, cell) in [
        ("", "concatenated", " address concatenated "),
        ("--disks 2", "concatenated", " address concatenated "),
        ("--disks 5", "striped", " address striped "),
        (
            "--disks 1 --regions striped --place packed",
            "striped",
            " packed striped ",
        ),
    ] {
        let run = format!("--trace {trace} --preset demand-lru,forerun {flags}");
        for row in rows(&run) {
            assert_eq!(row["regions"], regions, "{flags}");
        }
        let table = forerun(&format!("simulate {run}")).success();
        let text = String::from_utf8_lossy(&table.get_output().stdout).into_owned();
        assert!(
            text.lines().skip(1).all(|line| line.contains(cell)),
            "{text}"
        );
    }
}
