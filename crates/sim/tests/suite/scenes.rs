//! Scenes that make no sense end in an error, empty ones in an empty report; never in a panic.

use std::cell::Cell;

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::journal::Entry;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Input, Nanos};
use forerun_sim::device::{Completion, Device, Request, scheduler};
use forerun_sim::trace::{Access, Trace};
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::workload::{Steps, Workload};
use forerun_sim::wrap::{Layer, Queued, Wrapped};
use forerun_sim::{Report, Scene, WorldError, device, workload};

use crate::stage::{DISK, MEMORY, settings};

fn scene(workload: &dyn Workload) -> Scene<'_> {
    Scene::new(
        settings("forerun", MEMORY),
        device::parse(DISK).unwrap(),
        workload,
    )
}

fn run(workload: &dyn Workload) -> Result<Report, WorldError> {
    scene(workload).run(&mut ())
}

#[derive(Debug)]
struct Odd {
    files: Vec<Bytes>,
    readers: Vec<usize>,
}

impl Workload for Odd {
    fn files(&self) -> Vec<Bytes> {
        self.files.clone()
    }
    fn readers(&self) -> Vec<usize> {
        self.readers.clone()
    }
    fn steps(&self, _reader: usize) -> Steps<'_> {
        Box::new(core::iter::empty())
    }
}

#[test]
fn scenes_that_make_no_sense_are_refused() {
    let nobody = Odd {
        files: vec![],
        readers: vec![],
    };
    let mut homeless = scene(&nobody);
    homeless.devices.clear();
    assert_eq!(homeless.run(&mut ()), Err(WorldError::Devices(0)));
    let stranger = Odd {
        files: vec![Bytes(1)],
        readers: vec![0, 1],
    };
    assert_eq!(run(&stranger), Err(WorldError::NoFile(1)));
    let vast = Odd {
        files: vec![Bytes(1), Bytes(u64::MAX)],
        readers: vec![],
    };
    assert_eq!(run(&vast), Err(WorldError::FileSize(1)));
    let mut poor = scene(&nobody);
    poor.settings.memory = Bytes(0);
    assert!(matches!(poor.run(&mut ()), Err(WorldError::Settings(_))));
}

#[test]
fn a_run_longer_than_allowed_is_stopped() {
    let long = workload::parse("sequential").unwrap();
    let mut scene = scene(&*long);
    scene.events_max = 100;
    assert_eq!(scene.run(&mut ()), Err(WorldError::Events(100)));
}

#[test]
fn nobody_reading_nothing_takes_no_time() {
    let nobody = Odd {
        files: vec![],
        readers: vec![],
    };
    let idle = Odd {
        files: vec![Bytes(0), Bytes(5)],
        readers: vec![1, 0],
    };
    for workload in [nobody, idle] {
        let report = run(&workload).unwrap();
        assert_eq!((report.elapsed, report.bytes), (Nanos(0), Bytes(0)));
        assert_eq!(report.throughput_bytes_per_second(), 0);
        assert_eq!(report.summary("x").request_bytes_mean, 0);
    }
}

/// Reads at and past the end of the file, of no bytes, of more bytes than there are.
#[test]
fn reads_past_the_end_take_what_there_is() {
    let access = |offset, bytes| Access {
        reader: 0,
        offset,
        bytes,
        think_ns: 1,
    };
    let accesses = [
        access(4090, u64::MAX),
        access(5000, 1),
        access(u64::MAX, u64::MAX),
        access(0, 0),
        access(4999, 1),
    ];
    let trace = Trace::new(vec![Bytes(5000)], vec![0], accesses).unwrap();
    for preset in PRESETS {
        let device = device::parse(DISK).unwrap();
        let report = Scene::new(settings(preset.name, MEMORY), device, &trace).run(&mut ());
        let reader = report.unwrap().readers[0];
        assert_eq!(
            (reader.bytes, reader.reads, reader.errors),
            (Bytes(911), 5, 0)
        );
        assert_eq!(reader.compute, Nanos(5));
    }
}

/// Two files on two devices: neither waits for the other.
#[test]
fn devices_work_side_by_side() {
    let text = "many-readers(file_bytes=10000000,readers=2)";
    let pair = workload::parse(text).unwrap();
    let mut scene = scene(&*pair);
    scene.devices.push(device::parse(DISK).unwrap());
    let report = scene.run(&mut ()).unwrap();
    assert!(
        report
            .devices
            .iter()
            .all(|device| device.usage.switches == 1)
    );
    assert_eq!(report.readers[0].elapsed, report.readers[1].elapsed);
    assert!(report.elapsed < Nanos(8_000_000 + 126_000_000));
}

/// Counts the requests that are with the device inside.
#[derive(Debug)]
struct Open<'a> {
    now: usize,
    most: &'a Cell<usize>,
}

impl Layer for Open<'_> {
    fn submit<D: Device>(&mut self, inner: &mut D, now: Nanos, request: Request) {
        self.now += 1;
        self.most.set(self.most.get().max(self.now));
        inner.submit(now, request);
    }

    fn advance<D: Device>(&mut self, inner: &mut D, now: Nanos, done: &mut Vec<Completion>) {
        let before = done.len();
        inner.advance(now, done);
        self.now -= done.len() - before;
    }
}

/// One is at the disk beside those that wait.
#[test]
fn readers_wait_for_room_in_a_full_queue_and_all_of_them_end() {
    let readers = ManyReaders {
        file_bytes: 1 << 20,
        read_bytes: 4096,
        think_ns: 0,
        readers: 8,
        shared: false,
    };
    for (requests_max, expected) in [(1, 2), (2, 3), (5, 6), (7, 8), (100, 8), (0, 8)] {
        let most = Cell::new(0);
        let text = format!("anticipatory(wait_ns=0,merge_bytes=0,requests_max={requests_max})");
        let scheduler = scheduler::parse(&text).unwrap();
        let queued = Queued::new(scheduler, device::parse(DISK).unwrap());
        let open = Open {
            now: 0,
            most: &most,
        };
        let device = Wrapped::around(open, queued);
        let report = Scene::new(settings("none", MEMORY), device, &readers);
        let report = report.run(&mut ()).unwrap();
        assert_eq!(most.get(), expected, "{requests_max}");
        assert_eq!(report.bytes, Bytes(8 << 20), "{requests_max}");
    }
}

/// With every window refused but that of a reader that finds the queue short, pages come one by one.
#[test]
fn a_congested_queue_refuses_windows_of_linux_2_6_10_unless_that_is_corrected() {
    let readers = ManyReaders {
        file_bytes: 1 << 20,
        read_bytes: 65_536,
        think_ns: 0,
        readers: 8,
        shared: false,
    };
    let requests = |detect: &str, from: u32| {
        let text = format!("anticipatory(wait_ns=0,congested_from={from},congested_until=2)");
        let scheduler = scheduler::parse(&text).unwrap();
        let device = Queued::new(scheduler, device::parse(DISK).unwrap());
        let mut settings = settings("linux-2.6.24", MEMORY);
        settings.detect = Choice::parse("detect", METHODS.detect, detect).unwrap();
        let mut entries = Vec::new();
        let report = Scene::new(settings, device, &readers)
            .run(&mut entries)
            .unwrap();
        assert_eq!(report.bytes, Bytes(8 << 20), "{detect} {from}");
        let told = entries
            .iter()
            .filter(|entry| matches!(entry, Entry::Input(_, Input::Congested { .. })));
        assert_eq!(told.count() > 0, from > 0, "{detect} {from}");
        report.devices[0].usage.requests
    };
    let [shipped, corrected] = ["linux-2.6.10", "linux-2.6.10(corrected=1)"];
    let never = requests(shipped, 0);
    assert_eq!(requests(corrected, 3), never);
    assert_eq!(requests(corrected, 0), never);
    let refused = requests(shipped, 3);
    assert!(refused > 5 * never, "{refused} {never}");
}
