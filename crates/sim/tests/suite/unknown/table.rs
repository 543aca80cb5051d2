//! The rows of the table of devices without a description.

use forerun_core::kind::Kind;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Profile, Settings, preset};
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::{Report, Scene, device};

/// Every device of the list that has costs, and those that were found to be slow when not
/// described.
pub(crate) const DEVICES: &[&str] = &[
    "hdd",
    "hp97560",
    "hp_c2247a",
    "ibm_lightning_0661",
    "ibm_36gb_10k",
    "seagate_146gb_10k",
    "cheetah_15k_st373454",
    "hitachi_t7k250_160",
    "emulated_default",
    "switching(cost_ns=1000000,rate_bytes_per_second=300000000)",
    "switching(cost_ns=12000000,rate_bytes_per_second=220000000)",
    "switching(cost_ns=30000000,rate_bytes_per_second=100000000)",
    "ssd",
    "array:hp97560",
    "array:ibm_36gb_10k",
    "object_store(first_byte_ns=1000000)",
    "object_store(first_byte_ns=10000000)",
    "object_store(first_byte_ns=30000000)",
    "object_store(first_byte_ns=100000000)",
    "object_store(first_byte_ns=200000000)",
];

/// The heading above the columns.
pub(crate) const HEAD: &str = "device                                                       readers  MiB  MB/s told  after    all";

const SECOND: u64 = 1_000_000_000;
/// The second column of figures begins after so many requests.
const REQUESTS: u64 = 32;
/// Longer blocks and shorter runs for faster devices.
const FAST: u64 = 300_000_000;

/// One device, number of readers and memory.
struct Case {
    device: &'static str,
    readers: usize,
    memory: u64,
    file_bytes: u64,
    block_bytes: u32,
}

impl Case {
    fn settings(&self) -> Settings {
        let preset = preset::find("forerun").expect("a preset");
        let mut settings = preset.settings(Bytes(self.memory)).expect("enough memory");
        settings.block_bytes = self.block_bytes;
        settings
    }

    fn run(&self, is_told: bool, until: u64) -> Report {
        let workload = ManyReaders {
            file_bytes: self.file_bytes,
            read_bytes: 64 << 10,
            think_ns: 0,
            readers: self.readers,
            shared: false,
        };
        let mut settings = self.settings();
        if is_told {
            settings.measure = Choice::of(&forerun_baselines::measure::given::METHOD);
        }
        let device = device::parse(self.device).expect("a device");
        let mut scene = Scene::new(settings, device, &workload);
        scene.told = (!is_told).then(|| nothing_of(self.device));
        scene.until = Some(Nanos(until));
        scene.run(&mut ()).expect("a run without faults")
    }

    fn bytes(&self, is_told: bool, until: u64) -> u64 {
        self.run(is_told, until).bytes.0
    }

    fn row(&self) -> String {
        let end = if self.block_bytes > 4096 { 20 } else { 60 } * SECOND;
        let mut from = 2 * SECOND;
        while self.run(false, from).ledger.requests < REQUESTS && from < end / 4 {
            from *= 2;
        }
        let of = |is_told, until| self.bytes(is_told, until) as f64;
        let later = |is_told| of(is_told, from + 8 * SECOND) - of(is_told, from);
        let (told, measured) = (of(true, end), of(false, end));
        format!(
            "{:<60} {:>7} {:>4} {:>10.1} {:>6.3} {:>6.3}",
            self.device,
            self.readers,
            self.memory >> 20,
            told / 1e6 / (end / SECOND) as f64,
            later(false) / later(true),
            measured / told,
        )
    }
}

/// The profile of a device of which nothing is known. A client of a store knows that it is one, and has so many
/// connections.
pub(crate) fn nothing_of(device: &str) -> Profile {
    let known = device::parse(device).expect("a device").profile();
    match known.kind() {
        Kind::Server { most } => {
            let store = Profile::constant(Nanos(30_000_000), 80_000_000);
            let store = store.and_then(|store| store.with_servers(16));
            store.expect("within the ranges").with_most(most)
        }
        _ => Profile::default(),
    }
}

/// The rows of a device.
pub(crate) fn rows(device: &'static str) -> impl Iterator<Item = String> {
    let built = device::parse(device).expect("a device");
    let capacity = built.capacity().map_or(1 << 42, |end| end.0);
    let [one, ten, many] = [1, 10, 64];
    [one, ten, many].into_iter().flat_map(move |readers| {
        [16u64 << 20, 256 << 20].map(move |memory| {
            let most = capacity / readers as u64;
            let mut case = Case {
                device,
                readers,
                memory,
                file_bytes: most.min(1 << 34) / 32_768 * 32_768,
                block_bytes: 32 << 10,
            };
            let rate = case.bytes(true, 2 * SECOND) / 2;
            if rate < FAST {
                case.block_bytes = 4096;
            }
            // Three times the bytes read, so that no file ends.
            let file = (rate * 180 / readers as u64).clamp(4 << 20, most.max(4 << 20));
            case.file_bytes = file.min(most) / 32_768 * 32_768;
            case.row()
        })
    })
}
