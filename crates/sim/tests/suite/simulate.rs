//! Promises of `simulate` over any trace, device, scheduler and preset: a run that streams is the
//! run that keeps everything, and no run is quicker than the least that is possible.
//!
//! Traces, devices and requests are random; proptest prints and keeps a failing case.

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::{Bytes, Nanos};
use forerun_sim::device::needs::{Needs, Run};
use forerun_sim::device::{Device, Request, array::Array};
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::host::Host;
use forerun_sim::hinted::host::Notice;
use forerun_sim::random::Random;
use forerun_sim::scheduled::{NONE, behind};
use forerun_sim::simulate::pacing::Pacing;
use forerun_sim::simulate::placing::{Layout, Order, Placing, Regions};
use forerun_sim::simulate::recorded::{Recorded, Room};
use forerun_sim::simulate::requests::{Manner, Records, Source};
use forerun_sim::simulate::streamed::{self, References, Streamed};
use forerun_sim::simulate::{PAGE_BYTES, bound, engine, hinted, lru};
use forerun_sim::trace::{Record, TraceError};
use forerun_sim::workload::Workload;
use forerun_sim::world::Striping;
use proptest::prelude::*;

/// A trace of one to three devices: runs, loops, strides and jumps, some requests longer than a
/// block, times between them now and then.
fn trace(random: &mut Random) -> Vec<Record> {
    let devices = random.pick(&[1, 1, 2, 3]).copied().unwrap_or(1);
    let (span, length) = (random.between(1, 400) * 8192, random.between(1, 250));
    let (mut at, mut time) = (0, 0);
    let mut record = |_| {
        at = match random.below(8) {
            0 => random.below(span),
            1 => at.saturating_add(random.below(5) * 8192) % span,
            _ => (at + 8192) % span,
        };
        let bytes = match random.below(6) {
            0 => random.between(1, 200_000),
            1 => 512,
            _ => 8192,
        };
        time += random.magnitude(24);
        Record {
            device: random.below(devices) as u32 * 7,
            compute: random.chance(800).then(|| Nanos(random.magnitude(24))),
            arrival: Some(Nanos(time)),
            ..Record::range(at, bytes as u32).unwrap()
        }
    };
    (0..length).map(&mut record).collect()
}

fn source(random: &mut Random) -> Source {
    let records = trace(random);
    let open = move || -> Result<Records<'static>, TraceError> {
        let records = records.clone().into_iter();
        Ok(Box::new(records.map(|record| Ok((None, record)))))
    };
    let manner = Manner {
        block_bytes: random.pick(&[512, 4096, 8192, 65_536]).copied().unwrap(),
        with_writes: true,
        think: random.chance(300).then(|| Nanos(random.magnitude(22))),
    };
    let open = Box::new(open);
    Source { open, manner }
}

/// A device and its scheduler, by name; the scheduler is one that has a meaning there.
fn device(random: &mut Random) -> (String, &'static str) {
    let hdd = format!(
        "hdd(revolutions_per_minute={},seek_mean_ns={},inner_percent={},cache_bytes={})",
        random.between(3_600, 20_000),
        random.between(1_000_000, 50_000_000),
        random.between(30, 100),
        random.pick(&[0, 65_536, 8_388_608]).copied().unwrap(),
    );
    let flash = format!(
        "ssd(channels={},page_bytes={},host_bytes_per_second={})",
        random.between(1, 9),
        random.pick(&[512, 4096, 16_384]).copied().unwrap(),
        random.between(1_000_000, 900_000_000),
    );
    let store = format!("object_store(requests_in_flight={})", random.between(1, 9));
    let switching = format!("switching(cost_ns={})", random.magnitude(24));
    let one_server = [
        "instant",
        "hp97560",
        "hp_c2247a",
        "ibm_lightning_0661",
        "ibm_36gb_10k",
        "cheetah_15k_st373454",
        "hitachi_t7k250_160",
        "array(disks=3)",
        "array(disks=2,strip_bytes=512):ibm_36gb_10k",
        &switching,
        &hdd,
        &hdd,
    ];
    let many_servers = [&flash[..], &store, "array(disks=2):ssd"];
    if random.chance(250) {
        return ((*random.pick(&many_servers).unwrap()).to_owned(), NONE);
    }
    let orders = [NONE, "sstf", "scan", "look", "cscan"];
    let order = *random.pick(&orders).unwrap();
    ((*random.pick(&one_server).unwrap()).to_owned(), order)
}

/// One setting of everything a run depends on.
struct Case {
    source: Source,
    recorded: Recorded,
    disks: Option<u16>,
    layout: Layout,
    cache_blocks: u32,
    host: Host,
    device: String,
    order: &'static str,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let source = source(&mut random);
        let recorded = Recorded::of(source.requests().unwrap(), Some(Room::ENDLESS)).unwrap();
        let (device, order) = device(&mut random);
        let orders = [Order::Address, Order::Packed, Order::Dense];
        let disks = random.chance(700).then(|| random.between(1, 5) as u16);
        let are_fewer = recorded.disks(disks) <= recorded.told().devices;
        let layout = Layout {
            order: *random.pick(&orders).unwrap(),
            regions: match random.below(3) {
                0 => None,
                1 if are_fewer => Some(Regions::Concatenated),
                _ => Some(Regions::Striped),
            },
        };
        let host = Host {
            driver: Nanos(random.pick(&[0, 500_000]).copied().unwrap()),
            block_bytes: Bytes(source.manner.block_bytes.into()),
            notice: random
                .pick(&[Notice::AtOnce, Notice::AtReads])
                .copied()
                .unwrap(),
        };
        Self {
            disks,
            layout,
            cache_blocks: random.between(1, 300) as u32,
            source,
            recorded,
            host,
            device,
            order,
        }
    }

    fn placing(&self) -> Placing<'_> {
        let bytes = self.source.manner.block_bytes;
        Placing::new(&self.recorded, self.disks, self.layout, bytes)
    }

    fn devices(&self) -> Vec<Box<dyn Device>> {
        let one = |_| behind(&self.device, self.order).unwrap();
        (0..self.recorded.disks(self.disks)).map(one).collect()
    }

    fn hinted(&self, method: &str) -> forerun_sim::simulate::Outcome {
        let disks = self.recorded.disks(self.disks);
        let setup = Setup::of(method, disks, self.cache_blocks, &METHODS).unwrap();
        let bytes = self.source.manner.block_bytes;
        let reads = self.recorded.reads(self.disks, self.layout, bytes);
        hinted(&setup, &self.host, &reads, self.devices()).unwrap()
    }
}

/// Random requests, so many at a time, and how long they take from the first to the last.
fn serve(device: &mut dyn Device, random: &mut Random) -> (Needs, Nanos) {
    let room = device.capacity().map_or(1 << 34, |end| end.0) / 4;
    let most = 1 << random.between(14, 34);
    let span = random.between(1, room.min(most));
    let start = random.below(1 << 40);
    let (mut now, mut at, mut runs, mut done) = (Nanos(start), 0, Vec::new(), Vec::new());
    let (depth, count) = (random.between(1, 9), random.between(1, 120));
    let mut last = now;
    for id in 0..count {
        at = match random.chance(300) {
            true => random.below(span),
            false => at % span,
        };
        let bytes = random.magnitude(17);
        let (place, bytes) = (Bytes(at), Bytes(bytes));
        runs.push(Run { at: place, bytes });
        at = at.saturating_add(bytes.0);
        device.submit(now, Request::new(id, place, bytes));
        let wanted = if id + 1 == count { 1 } else { depth };
        while id + 1 - done.len() as u64 >= wanted {
            now = device.next_event().unwrap();
            device.advance(now, &mut done);
        }
        now = Nanos(
            now.0
                + if random.chance(200) {
                    random.magnitude(24)
                } else {
                    0
                },
        );
    }
    for one in &done {
        last = last.max(one.at);
    }
    let asked = runs.iter().filter(|run| run.bytes.0 > 0).count() as u64;
    (Needs::new(runs, asked), Nanos(last.0 - start))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn demand_lru_streams_what_the_planner_does(seed: u64) {
        let case = Case::new(seed);
        let wanted = case.hinted("demand-lru");
        let placing = case.placing();
        let place = |block| placing.place(block);
        let run = |devices| (&case.host, case.cache_blocks, devices);
        let (host, blocks, devices) = run(case.devices());
        let kept = streamed::kept(&case.recorded);
        let kept = lru::run(host, blocks, devices, place, kept).unwrap();
        prop_assert_eq!(&kept, &wanted, "{} {}", case.device, case.order);
        let forgotten = Recorded::of(case.source.requests().unwrap(), None).unwrap();
        prop_assert!(forgotten.references().is_empty());
        let stream = References::new(&case.source, &forgotten).unwrap();
        let (host, blocks, devices) = run(case.devices());
        let streamed = lru::run(host, blocks, devices, place, stream).unwrap();
        prop_assert_eq!(&streamed, &wanted, "{} {}", case.device, case.order);
    }

    #[test]
    fn no_requests_are_served_before_the_least_time(seed: u64) {
        let mut random = Random::new(seed);
        let (name, order) = device(&mut random);
        let mut device = behind(&name, order).unwrap();
        let (needs, taken) = serve(&mut *device, &mut random);
        let least = behind(&name, order).unwrap().least(&needs);
        prop_assert!(taken >= least, "{name} {order}: {taken} < {least}");
    }

    #[test]
    fn no_hinted_run_is_below_its_bound(seed: u64) {
        let case = Case::new(seed);
        let placing = case.placing();
        for method in METHODS.hinted {
            let outcome = case.hinted(method.spec.name);
            let bound = bound::by_block(
                &case.recorded, &placing, case.cache_blocks, &case.host, outcome.compute,
                &case.devices(),
            );
            prop_assert!(
                outcome.elapsed >= bound.least,
                "{} on {} {}: {} below {bound:?}",
                method.spec.name, case.device, case.order, outcome.elapsed
            );
        }
    }

    #[test]
    fn no_run_of_the_engine_is_below_its_bound(seed: u64) {
        let case = Case::new(seed);
        let bytes = case.source.manner.block_bytes;
        let placing = case.placing();
        let strip = Bytes(bytes.max(PAGE_BYTES).into());
        let is_striped = placing.regions() == Regions::Striped;
        let raid0 = Striping::raid0(strip).ok().filter(|_| is_striped);
        for preset in PRESETS {
            let mut settings = preset.settings(Bytes(64 << 20)).unwrap();
            settings.block_bytes = PAGE_BYTES;
            let streamed = Streamed::new(&case.source, &case.recorded, &placing, Pacing::default());
            let driver = case.host.driver;
            let outcome = engine(settings, driver, &streamed, raid0.clone(), case.devices());
            let outcome = outcome.unwrap();
            prop_assert_eq!(streamed.failure(), None);
            let devices: Vec<Box<dyn Device>> = match is_striped {
                true => vec![Box::new(Array::new(case.devices(), strip))],
                false => case.devices(),
            };
            let least = bound::least_of(&devices, &streamed.needs());
            let bound = bound::by_extent(outcome.compute, least, 1);
            prop_assert!(
                outcome.elapsed >= bound.least,
                "{} on {} {}: {} below {bound:?}",
                preset.name, case.device, case.order, outcome.elapsed
            );
        }
    }
}

#[test]
fn a_request_of_n_blocks_is_one_read_of_n_blocks() {
    let requests = [(5u64, 3u64), (0, 1), (4, 2), (5, 3)];
    let open = move || -> Result<Records<'static>, TraceError> {
        let record = |(first, count): (u64, u64)| {
            let range = Record::range(first * 4096, count as u32 * 4096).unwrap();
            Ok((None, range))
        };
        Ok(Box::new(requests.into_iter().map(record)))
    };
    let manner = Manner {
        block_bytes: 4096,
        with_writes: false,
        think: Some(Nanos(7)),
    };
    let open = Box::new(open);
    let source = Source { open, manner };
    let recorded = Recorded::of(source.requests().unwrap(), None).unwrap();
    let reads = |order: Order| {
        let placing = Placing::new(&recorded, Some(2), order.into(), 4096);
        let streamed = Streamed::new(&source, &recorded, &placing, Pacing::default());
        let read = |step: forerun_sim::workload::Step| {
            (step.offset.0 / 4096, step.bytes.0 / 4096, step.think.0)
        };
        streamed.steps(0).map(read).collect::<Vec<_>>()
    };
    let by_address = [(5, 3, 0), (0, 1, 7), (4, 2, 7), (5, 3, 7)];
    assert_eq!(reads(Order::Address), by_address);
    let packed = [(2, 3, 0), (0, 1, 7), (1, 2, 7), (2, 3, 7)];
    assert_eq!(reads(Order::Packed), packed);
    // In the order of first use 4 and 5 are far apart: one request, two reads.
    let by_use = [(0, 3, 0), (3, 1, 7), (4, 1, 7), (0, 1, 0), (0, 3, 7)];
    assert_eq!(reads(Order::Dense), by_use);
}
