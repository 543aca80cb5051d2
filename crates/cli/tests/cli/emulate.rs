//! `--emulate` with several servers: the same device in both clocks, and wherever the flag is
//! taken.

use super::{Folder, bytes, forerun, output_of};

/// Nanoseconds that eight readers take to read 1 MB each, one block at a time.
fn elapsed(clock: &str, servers: u32) -> u64 {
    let device = format!("--emulate switching=4ms,rate=80MB/s,servers={servers}");
    let said = output_of(&format!(
        "bench {device} --clock {clock} --preset none --readers 8 --read-bytes 128KiB \
         --file-bytes 1MB --memory 32MiB --format json"
    ));
    let row: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    row["elapsed_ns"].as_u64().unwrap()
}

#[test]
fn switches_of_several_servers_pass_side_by_side_and_bytes_share_the_rate() {
    let (one, several) = (elapsed("virtual", 1), elapsed("virtual", 8));
    // 8 MB at 80 MB/s; 64 switches one by one, or eight at a time.
    let transfer = 100_000_000;
    assert!(one >= transfer + 60 * 4_000_000, "{one}");
    assert!(
        several >= transfer && several < one / 2,
        "{several} of {one}"
    );
    let real = elapsed("real", 8);
    assert!(real >= transfer, "{real}");
}

#[test]
fn every_command_takes_several_servers_and_the_engine_is_told() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(100_000));
    let device = "--emulate switching=1ms,rate=300MB/s,servers=8";
    let told = "emulated  1.00 ms  300.0 MB/s  8 servers  depth 300.0 kB  (told)";
    let said = forerun(&format!("read {device} --measure given --stats {file}")).success();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains(&format!("device {told}")), "{said}");
    for (clock, name) in [("real", "emulated"), ("virtual", "modelled")] {
        let said = output_of(&format!(
            "bench {device} --clock {clock} --measure given --file-bytes 1MB"
        ));
        assert!(said.contains(&told.replace("emulated", name)), "{said}");
    }
}

#[test]
fn a_number_of_servers_out_of_range_is_named_with_the_range() {
    for command in ["read", "bench", "mount /tmp"] {
        for wrong in ["0", "1025", "many"] {
            let device = format!("switching=1ms,rate=300MB/s,servers={wrong}");
            forerun(&format!("{command} --emulate {device} /nowhere"))
                .code(2)
                .stdout_eq("")
                .stderr_eq(format!(
                    "error: invalid value '{device}' for '--emulate <COST>': servers={wrong}: must be a \
                     whole number from 1 to 1024\n\nFor more information, try '--help'.\n"
                ));
        }
    }
}
