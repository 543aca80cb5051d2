//! The simulator and the watch decide the same: the records that a kernel would write of a simulated run, taken apart as
//! those of a running kernel are, give each open file the limit that it got there, in the same order.

use std::fmt::Write as _;
use std::io::Write;

use forerun_core::{Bytes, Nanos, Settings, preset};
use forerun_sim::device;
use forerun_sim::kernel::{Event, Machine};
use forerun_sim::workload::{self, Workload};
use forerun_steering::disks::Spread;
use forerun_steering::events::{Ahead, Cause as Why, FileKey, Request};
use forerun_steering::{Cause, Kernel, Reader, Steering, Wanted};
use forerun_watch::Seeing;
use forerun_watch::memory::Domain;
use forerun_watch::sample::{Layouts, Record};
use forerun_watch::tracepoint::Tracepoint;

const MEMORY: Bytes = Bytes(64 << 20);
/// The device's limit, in pages.
const OWN: u32 = 32;

/// A kernel of which the records are all that is known.
struct Recorded {
    files: Vec<Bytes>,
    memory: Bytes,
    set: Vec<(u32, u32)>,
}

impl Kernel<Domain> for Recorded {
    fn limit(&mut self, _: usize) -> Option<u32> {
        Some(OWN)
    }

    fn reader(&mut self, _: usize, key: FileKey, _: &Ahead) -> Result<Reader<Domain>, Cause> {
        Ok(Reader {
            bytes: self.files[key.inode as usize].0,
            number: 3,
            domain: Domain::default(),
        })
    }

    fn memory(&mut self, _: &Domain) -> Bytes {
        self.memory
    }

    fn journal(&mut self, _: usize) -> Option<Box<dyn Write>> {
        None
    }

    fn set(&mut self, _: usize, event: &Ahead, wanted: Wanted) -> Result<Option<Nanos>, Cause> {
        self.set.push((event.process, wanted.pages));
        Ok(Some(event.time))
    }

    fn schedule(&mut self, _: usize, _: bool) -> Option<bool> {
        Some(false)
    }
}

fn tracepoint(id: u64, fields: &[(&str, usize, usize)]) -> Tracepoint {
    let mut text = format!("ID: {id}\n");
    for (name, offset, size) in fields {
        writeln!(text, "\tfield:u {name};\toffset:{offset};\tsize:{size};").unwrap();
    }
    Tracepoint::parse(&text).unwrap()
}

/// The layouts of Linux 6.18.
fn layouts() -> Layouts {
    let ahead = [
        ("common_type", 0, 2),
        ("i_ino", 8, 8),
        ("s_dev", 16, 4),
        ("index", 24, 8),
        ("size", 36, 4),
        ("async_size", 40, 4),
        ("ra_pages", 44, 4),
        ("req_count", 64, 8),
    ];
    let block = [
        ("common_type", 0, 2),
        ("dev", 8, 4),
        ("sector", 16, 8),
        ("nr_sector", 24, 4),
    ];
    let of = |id, fields: &[_]| tracepoint(id, fields);
    let events = [of(1, &ahead), of(2, &ahead), of(3, &block), of(4, &block)];
    Layouts::new(Seeing::Readahead, &events, 1).unwrap()
}

/// A record with these fields of its event.
fn record((id, length): (u16, usize), of: u32, time: Nanos, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut raw = vec![0; length];
    raw[..2].copy_from_slice(&id.to_ne_bytes());
    for (at, bytes) in fields {
        raw[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    let head = [9, 0, of, of].map(u32::to_ne_bytes).concat();
    let size = (length as u32).to_ne_bytes();
    [&head[..], &time.0.to_ne_bytes(), &size, &raw].concat()
}

fn of_ahead(event: &Ahead) -> Vec<u8> {
    let id = match event.cause {
        Why::Miss => 1,
        Why::Mark => 2,
    };
    let fields: [(usize, &[u8]); 7] = [
        (8, &event.inode.to_ne_bytes()),
        (16, &event.device.to_ne_bytes()),
        (24, &event.index.to_ne_bytes()),
        (36, &event.size.to_ne_bytes()),
        (40, &event.async_size.to_ne_bytes()),
        (44, &event.limit.to_ne_bytes()),
        (64, &event.asked.to_ne_bytes()),
    ];
    record((id, 72), event.process, event.time, &fields)
}

fn of_request(request: &Request) -> Vec<u8> {
    let id = if request.is_complete { 4 } else { 3 };
    let sectors = request.sectors as u32;
    let fields: [(usize, &[u8]); 3] = [
        (8, &request.device.to_ne_bytes()),
        (16, &request.sector.to_ne_bytes()),
        (24, &sectors.to_ne_bytes()),
    ];
    record((id, 32), 0, request.time, &fields)
}

fn settings() -> Settings {
    preset::default().settings(MEMORY).unwrap()
}

/// Events of a simulated run, with the limits that were set.
fn simulated(workload: &dyn Workload) -> Vec<Event> {
    let mut events = Vec::new();
    let machine = Machine {
        workload,
        device: device::parse("switching").unwrap(),
        cache: MEMORY,
        limit: OWN,
        watch: Some(settings()),
    };
    machine.run(&mut |event| events.push(event)).unwrap();
    events
}

/// The limits that the records of these events give.
fn decided(workload: &dyn Workload, memory: Bytes, events: &[Event]) -> Vec<(u32, u32)> {
    let settings = forerun_steering::windows::settings(settings()).unwrap();
    let below = [(&[(1, true)][..], Spread::Striped)];
    let mut steering = Steering::new(settings, Nanos(0), &below);
    let mut kernel = Recorded {
        files: workload.files(),
        memory,
        set: Vec::new(),
    };
    let layouts = layouts();
    for event in events {
        let bytes = match event {
            Event::Ahead(event) => of_ahead(event),
            Event::Request(request) => of_request(request),
            Event::Tick(now) => {
                steering.tick(*now, &mut kernel);
                continue;
            }
            Event::Set(..) => continue,
        };
        match layouts.record(&bytes) {
            Some(Record::Ahead(event)) if event.size > 0 => {
                let _ = steering.ahead(0, &event, &mut kernel);
            }
            Some(Record::Ahead(_)) => {}
            Some(Record::Request(request)) => steering.request(&request),
            other => panic!("{other:?}"),
        }
    }
    kernel.set
}

#[test]
fn the_records_of_a_simulated_run_give_the_limits_that_were_set_in_it() {
    for name in [
        "sequential(file_bytes=67108864)",
        "many-readers(readers=10,file_bytes=16777216)",
        "many-readers(readers=40,file_bytes=4194304)",
        "many-readers(readers=3,file_bytes=33554432,shared=1)",
    ] {
        let workload = workload::parse(name).unwrap();
        let events = simulated(&*workload);
        let set = |event: &Event| match event {
            Event::Set(process, pages) => Some((*process, *pages)),
            _ => None,
        };
        let set: Vec<(u32, u32)> = events.iter().filter_map(set).collect();
        assert!(set.len() >= 2, "{name}: {set:?}");
        assert_eq!(decided(&*workload, MEMORY, &events), set, "{name}");
        if name.contains("readers=10") {
            let half = Bytes(MEMORY.0 / 2);
            assert_ne!(decided(&*workload, half, &events), set, "half the memory");
        }
    }
}
