//! A disk beside a store, in little memory: what each gets while readers of the other take what comes free.
//!
//! The disk is the one of 8 ms and 80 MB/s; the store answers after 30 ms, has 256 requests at a time and 2 GB/s.

use forerun_core::{Bytes, Nanos};
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::{Scene, device};

use crate::stage::{DISK, settings};

/// Long enough for some turns of every reader.
const TIME: Nanos = Nanos(10_000_000_000);
const STORE: &str = "object_store";

/// MB/s of each device, which has so many readers.
fn rates(devices: &[&str], memory: u64, readers: usize, read_bytes: u64) -> Vec<f64> {
    let workload = ManyReaders {
        file_bytes: 4 << 30,
        read_bytes,
        think_ns: 0,
        readers: readers * devices.len(),
        shared: false,
    };
    let mut built = devices.iter().map(|name| device::parse(name).unwrap());
    let mut scene = Scene::new(
        settings("forerun", memory),
        built.next().unwrap(),
        &workload,
    );
    scene.devices.extend(built);
    scene.until = Some(TIME);
    let report = scene.run(&mut ()).unwrap();
    let mut bytes = vec![Bytes(0); devices.len()];
    for (reader, of) in report.readers.iter().enumerate() {
        bytes[reader % devices.len()].0 += of.bytes.0;
    }
    bytes
        .iter()
        .map(|of| of.0 as f64 * 1e3 / TIME.0 as f64)
        .collect()
}

/// Requests of the store that took seven eighths left the disk 22 of 64 MB/s in 8 MiB, and 32 in 16.
#[test]
fn a_disk_beside_a_store_keeps_its_rate_in_little_memory() {
    for (memory, readers, read_bytes) in [
        (8 << 20, 64, 64 << 10),
        (8 << 20, 200, 64 << 10),
        (8 << 20, 16, 256 << 10),
        (16 << 20, 64, 64 << 10),
        (16 << 20, 4, 64 << 10),
        (64 << 20, 64, 64 << 10),
    ] {
        let rates = |devices: &[&str]| rates(devices, memory, readers, read_bytes);
        let (both, disk, store) = (rates(&[DISK, STORE]), rates(&[DISK]), rates(&[STORE]));
        let case = format!("{memory} bytes, {readers} readers of {read_bytes} each");
        println!("{case}: {both:.1?} of {disk:.1?} and {store:.1?}");
        assert!(both[0] >= 0.95 * disk[0], "{case}");
        assert!(both[1] >= 0.6 * store[0], "{case}");
    }
}
