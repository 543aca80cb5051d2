//! The rows of the table of many readers in little memory.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Settings};
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::{Scene, device};

/// Devices that work on several requests at a time, and the seconds between which bytes are
/// counted: after the beginning of all streams, and as long again.
pub(crate) const DEVICES: &[(&str, u64)] =
    &[("ssd", 2), ("array:ibm_36gb_10k", 60), ("object_store", 10)];
/// Numbers of readers.
pub(crate) const READERS: &[usize] = &[4, 64, 1024, 4096];
/// Memories, in MiB.
pub(crate) const MEMORIES: &[u64] = &[16, 64, 256];

/// Heading of the columns.
pub(crate) const HEAD: &str = "device               MiB readers    none     lru forerun  of fewer";

/// The engine, or a whole-window LRU: windows as long as the engine's, one order for all blocks,
/// each request sent as it comes.
fn settings(name: &str, memory: u64) -> Settings {
    let preset = if name == "none" { "none" } else { "forerun" };
    let preset = forerun_baselines::preset(preset).expect("a preset");
    let mut settings = preset.settings(Bytes(memory)).expect("enough memory");
    if name == "lru" {
        settings.dispatch = Choice::parse("dispatch", METHODS.dispatch, "fifo").expect("a method");
        let measure = "given(at_once=1)";
        settings.measure = Choice::parse("measure", METHODS.measure, measure).expect("a method");
        settings.in_flight_max = 1 << 16;
        settings.reclaim = Choice::parse("reclaim", METHODS.reclaim, "lru").expect("a method");
        settings.unread_percent = 100;
    }
    settings
}

/// Megabytes a second, between so many seconds and as many again.
fn rate(name: &str, (device, seconds): (&str, u64), memory: u64, readers: usize) -> f64 {
    let bytes = |until: u64| {
        let device = device::parse(device).expect("a device");
        let most = device.capacity().map_or(1 << 42, |end| end.0) / readers as u64;
        let workload = ManyReaders {
            file_bytes: most.min(1 << 33) / 65_536 * 65_536,
            read_bytes: 64 << 10,
            think_ns: 0,
            readers,
            shared: false,
        };
        let mut scene = Scene::new(settings(name, memory), device, &workload);
        scene.until = Some(Nanos(until * 1_000_000_000));
        scene.run(&mut ()).expect("a run without faults").bytes.0
    };
    (bytes(2 * seconds) - bytes(seconds)) as f64 / 1e6 / seconds as f64
}

/// The rows of a device and a memory, each for more readers.
pub(crate) fn rows(device: (&'static str, u64), mib: u64) -> impl Iterator<Item = String> {
    let mut best: f64 = 0.0;
    READERS.iter().map(move |readers| {
        let [none, lru, forerun] =
            ["none", "lru", "forerun"].map(|name| rate(name, device, mib << 20, *readers));
        best = best.max(forerun);
        format!(
            "{:<20} {mib:>3} {readers:>7} {none:>7.1} {lru:>7.1} {forerun:>7.1} {:>9.3}",
            device.0,
            forerun / best
        )
    })
}
