//! Reads of a source that never come back hold up no other object of the same device.
//!
//! The source blocks until the test releases it. A wait that would not end is cut after [`BOUND`], far
//! beyond the three seconds that it takes on an idle machine.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::arena::Target;
use forerun_io::source::{Key, Source};
use forerun_io::{BackendChoice, Config, Driver, Reader};

const BOUND: Duration = Duration::from_secs(600);
const BYTES: u64 = 256 << 20;

/// Reads that wait, and whether they may go on.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, open)| !*open).unwrap());
    }

    /// Waits until so many reads are in here.
    fn wait_for(&self, reads: usize) {
        let state = self.state.lock().unwrap();
        let few = |state: &mut (usize, bool)| state.0 < reads;
        let (state, waited) = self.changed.wait_timeout_while(state, BOUND, few).unwrap();
        assert!(!waited.timed_out(), "{} of {reads} reads began", state.0);
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Opens the gate at its end.
struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// How an object's device is described.
#[derive(Clone, Copy, Debug)]
struct Kind {
    is_served: bool,
    requests_max: Option<u32>,
}

#[derive(Debug)]
struct Object {
    name: String,
    kind: Kind,
    gate: Option<Arc<Gate>>,
}

impl Source for Object {
    fn key(&self) -> Key {
        let (name, version) = (self.name.as_str().into(), "1".into());
        Key::Object { name, version }
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn is_served(&self) -> bool {
        self.kind.is_served
    }

    fn requests_max(&self) -> Option<u32> {
        self.kind.requests_max
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES)
    }

    fn read(&self, target: &mut Target, _: u64, skip: usize) -> io::Result<usize> {
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(7));
        Ok(end)
    }
}

/// Reads 4 KiB here in a thread.
fn read(reader: &Arc<Reader>, offset: u64) -> Receiver<bool> {
    read_long(reader, offset, 4096)
}

/// Reads so many bytes here in a thread.
fn read_long(reader: &Arc<Reader>, offset: u64, bytes: usize) -> Receiver<bool> {
    let (tell, told) = channel();
    let reader = reader.clone();
    std::thread::spawn(move || {
        let mut into = vec![0; bytes];
        let read = reader.read_at(&mut into, offset);
        let is_whole = matches!(read, Ok(count) if count == bytes);
        // The test may have failed meanwhile.
        let _ = tell.send(is_whole && into.iter().all(|byte| *byte == 7));
    });
    told
}

/// So many reads of one object hang. `learned` reads of another one come before, so that the device's
/// costs are known.
fn hang(kind: Kind, reads: u64, in_flight_max: u32, learned: u64, backend: &str) {
    let case =
        format!("{kind:?}, {reads} hang, {in_flight_max} allowed, {learned} before, {backend}");
    let mut settings = preset::default().settings(Bytes(64 << 20)).unwrap();
    settings.in_flight_max = in_flight_max;
    let backend = BackendChoice::named(backend).unwrap();
    let driver = Driver::new(Config::new(settings).backend(backend)).unwrap();
    let gate = Arc::new(Gate::default());
    // Where the test fails its reads end, too.
    let _opens = Opens(gate.clone());
    let open = |name: &str, gate: Option<Arc<Gate>>| {
        let name = name.to_string();
        Arc::new(
            driver
                .open_source(Arc::new(Object { name, kind, gate }))
                .unwrap(),
        )
    };
    let warm = open("warm", None);
    for at in 0..learned {
        assert!(read(&warm, at * (3 << 20)).recv_timeout(BOUND).unwrap());
    }
    let dead = open("dead", Some(gate.clone()));
    let hung: Vec<_> = (0..reads)
        .map(|at| read(&dead, at * (BYTES / reads)))
        .collect();
    gate.wait_for(1);
    let live: Vec<_> = (0..4)
        .map(|number| open(&format!("live {number}"), None))
        .collect();
    let answers: Vec<_> = live.iter().map(|live| read(live, 32 << 20)).collect();
    for answer in answers {
        assert_eq!(answer.recv_timeout(BOUND), Ok(true), "{case}");
    }
    // And another one, while they hang still.
    assert_eq!(
        read(&live[0], 48 << 20).recv_timeout(BOUND),
        Ok(true),
        "{case}"
    );
    gate.open();
    for answer in hung {
        assert_eq!(answer.recv_timeout(BOUND), Ok(true), "{case}");
    }
    drop((warm, dead, live));
    driver.finish().unwrap();
}

/// So many objects, each read whole, hang in so much memory; another one is read whole all the same.
fn hang_whole(kind: Kind, memory: u64, objects: usize) {
    const WHOLE: usize = 4 << 20;
    let case = format!("{kind:?}, {objects} objects hang in {memory} bytes");
    let settings = preset::default().settings(Bytes(memory)).unwrap();
    let driver = Driver::new(Config::new(settings)).unwrap();
    let gate = Arc::new(Gate::default());
    let _opens = Opens(gate.clone());
    let open = |name: String, gate: Option<Arc<Gate>>| {
        let object = Object { name, kind, gate };
        Arc::new(driver.open_source(Arc::new(object)).unwrap())
    };
    let dead: Vec<_> = (0..objects)
        .map(|number| open(format!("dead {number}"), Some(gate.clone())))
        .collect();
    let hung: Vec<_> = dead.iter().map(|dead| read_long(dead, 0, WHOLE)).collect();
    gate.wait_for(1);
    for number in 0..2 {
        let live = open(format!("live {number}"), None);
        let told = read_long(&live, 0, WHOLE);
        assert_eq!(told.recv_timeout(BOUND), Ok(true), "{case}");
    }
    gate.open();
    for answer in hung {
        assert_eq!(answer.recv_timeout(BOUND), Ok(true), "{case}");
    }
    drop(dead);
    driver.finish().unwrap();
}

const STORE: Kind = Kind {
    is_served: true,
    requests_max: Some(64),
};
const NETWORK: Kind = Kind {
    is_served: true,
    requests_max: None,
};
const DISK: Kind = Kind {
    is_served: false,
    requests_max: None,
};

/// These cases, side by side.
fn all(cases: impl Iterator<Item = (Kind, u64, u32, u64, &'static str)>) {
    std::thread::scope(|scope| {
        for (kind, reads, in_flight_max, learned, backend) in cases {
            scope.spawn(move || hang(kind, reads, in_flight_max, learned, backend));
        }
    });
}

#[test]
fn reads_of_a_store_that_hang_hold_up_no_other_object() {
    all([1, 4, 64, 100]
        .iter()
        .map(|reads| (STORE, *reads, 256, 0, "auto")));
}

#[test]
fn reads_that_hang_hold_up_no_other_file_of_a_network_file_system() {
    all([1, 9, 16, 64]
        .iter()
        .map(|reads| (NETWORK, *reads, 256, 0, "auto")));
}

#[test]
fn reads_that_hang_hold_up_no_other_file_of_a_disk() {
    all([4, 16, 64]
        .iter()
        .map(|reads| (DISK, *reads, 256, 0, "pread")));
}

#[test]
fn as_many_reads_as_are_allowed_may_hang() {
    for kind in [STORE, NETWORK, DISK] {
        all([1, 2, 8]
            .iter()
            .map(|allowed| (kind, u64::from(*allowed), *allowed, 0, "pread")));
    }
}

#[test]
fn a_device_whose_costs_are_known_is_not_waited_for_either() {
    all([STORE, NETWORK, DISK]
        .iter()
        .map(|kind| (*kind, 64, 256, 64, "auto")));
}

#[test]
fn objects_that_hang_and_were_read_whole_leave_memory_to_others() {
    std::thread::scope(|scope| {
        for (memory, objects) in [(8, 12), (16, 19), (16, 40), (64, 60)] {
            for kind in [STORE, NETWORK] {
                scope.spawn(move || hang_whole(kind, memory << 20, objects));
            }
        }
    });
}
