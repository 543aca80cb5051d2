//! Clients that read at a pace of their own, as players of videos do, in little memory: blocks fetched
//! ahead live until they are read, and windows hold whole reads.
//!
//! Each client reads 24 MiB at 1.5 MB/s in reads of 128 KiB; one begins every 37 ms. With a fixed window
//! of 128 KiB each waits for its first read only, wherever two reads a client fit into the memory.

use forerun_core::Nanos;

use crate::stage::{run_into, settings};

const PRESETS: [&str; 4] = ["forerun", "linux-2.6.24", "cp", "none"];

/// The time that all clients waited, with one of the presets.
fn stall(preset: &str, device: &str, clients: u32, memory: u64) -> Nanos {
    let workload = format!(
        "clients(clients={clients},file_bytes=25165824,read_bytes=131072,bytes_per_second=1500000,\
         every_ns=37000000)"
    );
    let report = run_into(settings(preset, memory), device, &workload, &mut ());
    report.ledger.stall
}

/// Asserts that the clients of `forerun` wait at most so many per cent of those of the best other preset.
fn assert_waits(device: &str, clients: u32, mebibytes: u64, percent: u64) {
    let waits = PRESETS.map(|preset| stall(preset, device, clients, mebibytes << 20).0);
    let [own, others @ ..] = waits;
    let best = others.into_iter().min().unwrap();
    println!("{device}, {clients} clients, {mebibytes} MiB: {own} ns, the others {others:?}");
    assert!(
        own * 100 <= best * percent,
        "{device}, {clients} clients, {mebibytes} MiB: {own} ns, the best other {best}"
    );
}

#[test]
fn paced_clients_of_a_store_wait_as_little_as_with_the_best_of_the_others() {
    for (clients, sizes) in [(16, [4, 6, 16]), (32, [6, 8, 16]), (24, [5, 8, 64])] {
        for mebibytes in sizes {
            assert_waits("object_store_region", clients, mebibytes, 110);
        }
    }
    // A little less than a read and a window each; with a read each or plenty all wait less than with the others.
    for (clients, mebibytes, percent) in [(30, 4, 10), (32, 4, 120), (40, 4, 85), (24, 3, 90)] {
        assert_waits("object_store_region", clients, mebibytes, percent);
    }
}

#[test]
fn paced_clients_of_an_ssd_wait_as_little_as_with_the_best_of_the_others() {
    for (clients, mebibytes) in [(16, 4), (32, 4), (32, 6), (24, 16)] {
        assert_waits("ssd", clients, mebibytes, 110);
    }
}

/// Of a disk that has time to spare for 16 clients and none for 32.
#[test]
fn paced_clients_of_a_disk_wait_less_than_with_the_others() {
    for (clients, mebibytes, percent) in [
        (8, 4, 101),
        (16, 6, 1),
        (16, 10, 40),
        (16, 64, 40),
        (20, 8, 10),
        (24, 16, 10),
        (32, 4, 50),
        (32, 8, 60),
        (32, 16, 50),
        (32, 64, 20),
    ] {
        assert_waits("ibm_36gb_10k", clients, mebibytes, percent);
    }
}
