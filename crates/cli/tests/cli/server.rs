//! `forerun bench --workload`: whole workloads of the simulator, in both clocks and over files.

use super::{Folder, forerun, output_of};

const ONE_RAND: &str =
    "one-rand(files=5,file_bytes=65536,handlers=3,requests=9,read_ns=0,start_ns=0)";

fn bytes_of(arguments: &str) -> u64 {
    let text = output_of(&format!("bench --format json --workload {arguments}"));
    let row: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(
        row["pattern"].is_string() && row["elapsed_ns"].as_u64() > Some(0),
        "{row}"
    );
    row["bytes"].as_u64().unwrap()
}

#[test]
fn a_whole_workload_reads_the_same_bytes_for_real_in_virtual_time_and_from_files() {
    let folder = Folder::new();
    let dir = folder.path("").display().to_string();
    let modelled = bytes_of(&format!("{ONE_RAND} --clock virtual"));
    assert!(modelled > 0);
    for place in [
        "--emulate switching=10us,rate=1GB/s",
        &dir,
        &format!("{dir} --preset kernel"),
    ] {
        assert_eq!(
            bytes_of(&format!("{ONE_RAND} {place}")),
            modelled,
            "{place}"
        );
    }
}

#[test]
fn every_server_workload_runs_for_real() {
    for text in [
        "one-whole(files=2,file_bytes=65536,requests=2,read_ns=0,start_ns=0)",
        "two-rand(files=2,file_bytes=65536,requests=2,read_ns=0,start_ns=0)",
        "four-64kb(files=4,file_bytes=65536,requests=2,read_ns=0,start_ns=0)",
        "index-search(mapping_bytes=65536,index_bytes=1048576,requests=2,read_ns=0,start_ns=0)",
        "media-clips(files=3,requests=2,read_ns=0,start_ns=0)",
        "clients(clients=2,file_bytes=65536,bytes_per_second=100000000,every_ns=0)",
    ] {
        assert!(bytes_of(&format!("{text} --memory 4MiB")) > 0, "{text}");
    }
}

#[test]
fn a_workload_that_cannot_be_run_is_refused_by_name() {
    for (text, why) in [
        ("no-such-load", "no-such-load"),
        (
            "one-rand(files=0)",
            "files=0: must be a whole number from 1 to 1048576",
        ),
        ("shuffled", "give it to --pattern"),
        ("folders", "walks folders"),
        ("one-rand --readers 4", "cannot be used with"),
    ] {
        let refused = forerun(&format!("bench --workload {text}")).code(2);
        let error = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(error.contains(why), "{text}: {error}");
    }
}
