//! One machine: over the same references the engine makes the fetches and evictions of the bare
//! planner, in the same order, under every hinted method.
//!
//! The planner runs in [`unit`], the theory's clock; the engine is driven here in that same clock,
//! through the inputs and outputs of any driver: files are opened, reads announced, blocks asked
//! for, served and released. So `forerun simulate --device unit` differs from all other runs only
//! in its clock.
//!
//! ```text
//! each unit    Release of the last read   Completed   Read   Decide   -> Evict, Fetch .. Serve
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use forerun_baselines::METHODS;
use forerun_core::detect::Access;
use forerun_core::hinted::{BlockNo, Setup};
use forerun_core::protocol::{Served, Wants};
use forerun_core::table::flag;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, Fetch, FetchOutcome, FileId, Input, Nanos, Output, Placement,
    Profile, ReadId, ReaderId, RequestId,
};
use forerun_sim::hinted::host::{self, Host};
use forerun_sim::hinted::stand_in::{self, Trace};
use forerun_sim::hinted::unit::{self, Instance};
use forerun_sim::hinted::{Place, Reads, Reference};
use forerun_sim::random::Random;
use forerun_sim::trace::{Op, Options, open};

const BLOCK_BYTES: u64 = 8192;

/// A fetch, and the block given up for it.
type Pair = (BlockNo, Option<BlockNo>);

/// The engine in the theory's clock.
struct Driver<'a> {
    engine: Engine,
    reads: &'a Reads,
    /// By file and block of it, the block of the references; and back.
    blocks: BTreeMap<(u32, u32), BlockNo>,
    places: Vec<(u32, u32)>,
    disks: Vec<VecDeque<(u64, RequestId)>>,
    fetch_units: u64,
    now: u64,
    is_served: bool,
    /// Given up, and its fetch not seen yet.
    evicted: Option<BlockNo>,
    pairs: Vec<Pair>,
}

impl<'a> Driver<'a> {
    fn new(setup: &Setup, instance: &'a Instance) -> Self {
        let reads = &instance.reads;
        let host = Host {
            block_bytes: Bytes(BLOCK_BYTES),
            ..Host::default()
        };
        let settings = host::settings(setup, &host, reads.references.len()).unwrap();
        let mut counts = vec![0u32; setup.disks.into()];
        let own = |place: &Place| {
            let count = &mut counts[usize::from(place.disk.0)];
            *count += 1;
            (u32::from(place.disk.0), *count - 1)
        };
        let places: Vec<(u32, u32)> = reads.places.iter().map(own).collect();
        let blocks = (0..).map(BlockNo).zip(&places);
        let mut driver = Self {
            engine: Engine::new(settings).unwrap(),
            reads,
            blocks: blocks.map(|(block, place)| (*place, block)).collect(),
            places,
            disks: vec![VecDeque::new(); setup.disks.into()],
            fetch_units: instance.fetch_units,
            now: 0,
            is_served: false,
            evicted: None,
            pairs: Vec::new(),
        };
        for (disk, count) in (0..setup.disks).zip(counts) {
            driver.open(disk, count);
        }
        driver
    }

    fn open(&mut self, disk: u16, blocks: u32) {
        let (device, file) = (DeviceId(disk), FileId(disk.into()));
        let bytes = Bytes(u64::from(blocks.max(1)) * BLOCK_BYTES);
        let placement = Placement::linear(device, Bytes(0));
        let (reader, profile) = (ReaderId(disk.into()), Profile::default());
        self.handle(Input::Device { device, profile });
        self.handle(Input::File {
            file,
            placement,
            bytes,
        });
        self.handle(Input::Open { reader, file });
    }

    fn handle(&mut self, input: Input) {
        self.engine.handle(Nanos(self.now), input);
        loop {
            match self.engine.poll() {
                Output::Idle => return,
                Output::Evict(extent) => {
                    assert_eq!(
                        (extent.count, self.evicted),
                        (1, None),
                        "a fetch evicts a block"
                    );
                    self.evicted = Some(self.blocks[&(extent.file.0, extent.first.0)]);
                }
                Output::OpenAhead { .. } | Output::CloseAhead { .. } => panic!("no folders"),
                Output::Cancel { .. } => panic!("nothing hangs"),
                Output::Fetch(fetch) => self.fetch(&fetch),
                Output::Serve { served, .. } => {
                    assert_eq!(served, Served::Blocks { count: 1 });
                    self.is_served = true;
                }
            }
        }
    }

    fn fetch(&mut self, fetch: &Fetch) {
        assert_eq!(fetch.extent.count, 1);
        let block = self.blocks[&(fetch.extent.file.0, fetch.extent.first.0)];
        self.pairs.push((block, self.evicted.take()));
        let queue = &mut self.disks[usize::from(fetch.device.0)];
        let begin = queue.back().map_or(self.now, |(end, _)| *end);
        queue.push_back((begin + self.fetch_units, fetch.request));
    }

    fn run(mut self) -> Vec<Pair> {
        let references = self.reads.references.iter().map(|r| r.block);
        let references: Vec<BlockNo> = references.collect();
        for block in &references {
            self.hint(*block, 1, true);
        }
        self.hint(references[0], 0, false);
        for block in references {
            self.is_served = false;
            self.land();
            self.ask(block);
            while !self.is_served {
                let ends = self.disks.iter().filter_map(VecDeque::front);
                self.now = ends
                    .map(|(end, _)| *end)
                    .min()
                    .expect("something is under way");
                self.land();
                self.decide();
            }
            self.now += 1;
            self.handle(Input::Release { read: ReadId(0) });
        }
        assert_eq!(self.engine.ledger().refused_inputs, 0);
        assert_eq!(self.engine.ledger().refused_prefetches, 0);
        assert_eq!(self.engine.ledger().hints_open, 0);
        self.pairs
    }

    fn hint(&mut self, block: BlockNo, count: u32, more: bool) {
        let (file, first) = self.places[block.0 as usize];
        assert_eq!(self.engine.takes_hint(count), Some(true));
        self.handle(Input::Hint {
            reader: ReaderId(file),
            first: Block(first),
            count,
            more,
        });
    }

    /// Fetches that end by now arrive.
    fn land(&mut self) {
        for disk in 0..self.disks.len() {
            while let Some((_, request)) = self.disks[disk]
                .front()
                .copied()
                .filter(|(end, _)| *end <= self.now)
            {
                self.disks[disk].pop_front();
                let outcome = FetchOutcome::Done;
                self.handle(Input::Completed { request, outcome });
            }
        }
    }

    fn ask(&mut self, block: BlockNo) {
        let (file, first) = self.places[block.0 as usize];
        let found = self.engine.table().find(FileId(file), Block(first));
        let is_plain_hit = found.is_some_and(|f| f.flags & (flag::MARK | flag::FILLING) == 0);
        assert!(
            !is_plain_hit,
            "the hit path would hide {block:?} from the engine"
        );
        self.handle(Input::Read {
            read: ReadId(0),
            reader: ReaderId(file),
            access: Access::new(Block(first), 1),
            fresh: true,
            wants: Wants::Blocks,
        });
        self.decide();
    }

    fn decide(&mut self) {
        if self.engine.is_undecided() {
            self.handle(Input::Decide);
        }
    }
}

/// References to these blocks, numbered in the order of first use, as the engine meets them.
fn reads(ids: impl Iterator<Item = u64>, disks: u16) -> Reads {
    let mut numbers = BTreeMap::new();
    let mut reads = Reads::default();
    for id in ids {
        let block = *numbers.entry(id).or_insert_with(|| {
            reads.places.push(Place::striped(id, disks, BLOCK_BYTES));
            BlockNo(reads.places.len() as u32 - 1)
        });
        let compute = Nanos(1);
        reads.references.push(Reference { block, compute });
    }
    reads
}

/// Every hinted method makes the same fetches and evictions in both; how many.
fn compare(name: &str, reads: &Reads, disks: u16, fetch_units: u64) -> usize {
    let mut compared = 0;
    for method in METHODS.hinted {
        let cache_blocks = (reads.places.len() as u32 / 3).max(2);
        let setup = Setup::of(method.spec.name, disks, cache_blocks, &METHODS).unwrap();
        let instance = Instance {
            reads: reads.clone(),
            warm: Vec::new(),
            fetch_units,
        };
        let planned = unit::run(&setup, &instance).unwrap().fetches;
        let planned: Vec<Pair> = planned.iter().map(|f| (f.block, f.evict)).collect();
        let engine = Driver::new(&setup, &instance).run();
        let differs = engine.iter().zip(&planned).position(|(a, b)| a != b);
        let about = format!(
            "{name}, {}, {disks} disks, F {fetch_units}",
            method.spec.name
        );
        if let Some(at) = differs {
            panic!(
                "{about}: fetch {at}: engine {:?}, planner {:?}",
                engine[at], planned[at]
            );
        }
        assert_eq!(engine.len(), planned.len(), "{about}");
        compared += engine.len();
    }
    compared
}

#[test]
fn the_engine_decides_as_the_planner_over_every_stand_in_and_synth() {
    const SEED: u64 = 1;
    let stand_ins = stand_in::LIST.iter().map(|stand_in| stand_in.trace(SEED));
    for (number, trace) in (0..).zip(stand_ins.chain([Trace::synth(SEED)])) {
        let disks = [1, 3, 4][number % 3];
        let references = trace.references.iter().map(|r| r.block.0 as usize);
        let reads = reads(references.map(|block| trace.addresses[block]), disks);
        let compared = compare(trace.name, &reads, disks, [4, 17][number % 2]);
        println!("{} seed {SEED}: {compared} fetches", trace.name);
    }
}

#[test]
fn the_engine_decides_as_the_planner_over_random_references() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (blocks, length) = (random.between(3, 60), random.between(1, 400));
        let disks = random.between(1, 5) as u16;
        let mut at = 0;
        let mut next = || {
            at = match random.chance(600) {
                true => (at + 1) % blocks,
                false => random.below(blocks),
            };
            at
        };
        let ids: Vec<u64> = (0..length).map(|_| next()).collect();
        let fetch_units = random.between(1, 30);
        compare(
            &format!("seed {seed}"),
            &reads(ids.into_iter(), disks),
            disks,
            fetch_units,
        );
    }
}

/// References of each trace that are compared: all methods on all traces in some seconds.
const REFERENCES_MAX: usize = 100_000;

/// Published traces belong to others and lie beside the repository, or where `FORERUN_TRACES` says.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test is told where traces lie")]
fn the_engine_decides_as_the_planner_over_every_published_trace() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("FORERUN_TRACES").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        println!(
            "SKIPPED: no traces in {} (FORERUN_TRACES)",
            folder.display()
        );
        return;
    }
    let parts = ["lirs", "disksim", "timed"].map(|part| std::fs::read_dir(folder.join(part)));
    let files = parts.into_iter().flatten().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.sort();
    let is_trace = |path: &&PathBuf| {
        let name = path.display().to_string();
        [".trace", ".ascii", ".vscsi"]
            .iter()
            .any(|part| name.contains(part))
    };
    for (number, path) in (0..).zip(paths.iter().filter(is_trace)) {
        let records = open(path, None, &Options::default()).unwrap();
        let records = records.map(|record| record.unwrap());
        let blocks = records
            .filter(|record| record.op == Op::Read)
            .flat_map(|record| record.blocks(BLOCK_BYTES as u32));
        let disks = [2, 1, 4][number % 3];
        let reads = reads(blocks.take(REFERENCES_MAX), disks);
        let compared = compare(
            &path.display().to_string(),
            &reads,
            disks,
            [8, 3][number % 2],
        );
        let references = reads.references.len();
        println!(
            "{}: {references} references, {compared} fetches compared",
            path.display()
        );
    }
}
