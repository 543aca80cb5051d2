//! Hints in real time: announced blocks are fetched, others are read, and no byte is wrong.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use forerun_baselines::METHODS;
use forerun_core::{Bytes, Ledger, Settings, preset};
use forerun_io::{BackendChoice, Config, Driver, Error, FaultPlan, Reader, generated};

const PIECE: u64 = 64 << 10;
const BYTES: u64 = 100 * PIECE + 777;
const SEED: u64 = 9;
const WORKERS: usize = 4;

/// File and offset.
type Place = (usize, u64);

fn settings(policy: &str, memory: u64) -> Settings {
    let mut settings = preset::find("forerun")
        .unwrap()
        .settings(Bytes(memory))
        .unwrap();
    settings.hinted = METHODS.hinted(policy).unwrap();
    settings
}

fn driver(settings: Settings) -> Driver {
    Driver::new({
        let mut config = Config::new(settings);
        config.backend = BackendChoice::named("memory").unwrap();
        config.lab.disks = 2;
        config
    })
    .unwrap()
}

fn open(driver: &Driver, files: u64) -> Vec<Reader> {
    (0..files)
        .map(|index| driver.open_generated(SEED, index, BYTES).unwrap())
        .collect()
}

/// Every piece of every file, in an order that jumps.
fn order(files: u64) -> Vec<Place> {
    let pieces = BYTES.div_ceil(PIECE);
    let all = files * pieces;
    // 37 has no factor in common with the number of pieces, so each comes once.
    assert_ne!(all % 37, 0);
    let at = (0..all).map(|i| i * 37 % all);
    at.map(|at| ((at / pieces) as usize, at % pieces * PIECE))
        .collect()
}

fn check(reader: &Reader, index: usize, offset: u64) {
    let mut buffer = vec![0; PIECE as usize];
    let read = reader.read_at(&mut buffer, offset).unwrap();
    assert_eq!(read as u64, PIECE.min(BYTES - offset));
    generated::check(SEED, index as u64, offset, &buffer[..read]).unwrap();
}

#[test]
fn every_byte_is_right_under_every_hinted_method_and_all_hints_are_used() {
    for method in METHODS.hinted {
        for memory in [1 << 20, 4 << 20, 64 << 20] {
            let driver = driver(settings(method.spec.name, memory));
            let readers = open(&driver, 2);
            let order = order(2);
            let hints = order.iter().map(|(f, at)| (&readers[*f], *at, PIECE));
            assert_eq!(driver.hint(hints).unwrap(), order.len());
            for (file, offset) in &order {
                check(&readers[*file], *file, *offset);
            }
            drop(readers);
            let ledger = driver.finish().unwrap();
            ledger.check().unwrap();
            assert!(ledger.memory_peak.0 <= memory);
            assert!(
                ledger.hints > 0 && ledger.hints_read == ledger.hints,
                "{ledger:?}"
            );
        }
    }
}

/// Four workers share one announced order.
fn shared_order(work: impl Fn(&[Place], usize, &dyn Fn(&Place)) + Sync) -> Ledger {
    let driver = driver(settings("forestall", 8 << 20));
    let readers = open(&driver, 2);
    let order = order(2);
    let hints = order.iter().map(|(f, at)| (&readers[*f], *at, PIECE));
    driver.hint(hints).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (order, readers, work) = (&order, &readers, &work);
            let read = move |(file, at): &Place| check(&readers[*file], *file, *at);
            scope.spawn(move || work(order, worker, &read));
        }
    });
    drop(readers);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    let ended = ledger.hints_read + ledger.hints_missed + ledger.hints_dropped;
    assert_eq!(ended, ledger.hints);
    ledger
}

/// Each reads every fourth piece and then waits for the others, so that one is overtaken by three
/// reads at most, whichever runs when.
#[test]
fn workers_a_few_reads_apart_keep_their_places_in_one_order() {
    let all = Barrier::new(WORKERS);
    let ledger = shared_order(|order, worker, read| {
        for pieces in order.chunks(WORKERS) {
            pieces.get(worker).into_iter().for_each(read);
            all.wait();
        }
    });
    assert_eq!(ledger.hints_read, ledger.hints, "{ledger:?}");
}

/// One that sleeps long loses its place to the window. How many do is up to the machine; every byte
/// is right, and every hint ends once.
#[test]
fn workers_any_number_of_reads_apart_read_what_is_there() {
    let next = AtomicUsize::new(0);
    shared_order(|order, _, read| {
        while let Some(place) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            read(place);
        }
    });
}

#[test]
fn failing_fetches_reach_only_the_reads_that_need_them() {
    let config = {
        let mut config = Config::new(settings("aggressive", 8 << 20));
        config.backend = BackendChoice::named("memory").unwrap();
        config.lab.fault = Some(FaultPlan {
            seed: 5,
            error_permille: 300,
            ..FaultPlan::default()
        });
        config
    };
    let driver = Driver::new(config).unwrap();
    let readers = open(&driver, 2);
    let order = order(2);
    driver
        .hint(order.iter().map(|(f, at)| (&readers[*f], *at, PIECE)))
        .unwrap();
    let mut failed = 0;
    for (file, offset) in &order {
        let mut buffer = vec![0; PIECE as usize];
        match readers[*file].read_at(&mut buffer, *offset) {
            Ok(read) => {
                generated::check(SEED, *file as u64, *offset, &buffer[..read]).unwrap();
            }
            Err(_) => failed += 1,
        }
    }
    drop(readers);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.failed > 0, "some prefetches failed");
    assert!(failed * 2 < order.len(), "most reads did not");
}

#[test]
fn hints_end_with_the_memory_and_the_refusal_names_the_limit() {
    let driver = driver(settings("forestall", 1 << 20));
    let readers = open(&driver, 1);
    let many = || (0..100_000).map(|i| (&readers[0], i % 100 * PIECE, 1));
    let taken = driver.hint(many()).unwrap();
    assert!((1..100_000).contains(&taken), "{taken}");
    match driver.hint(many()) {
        Err(Error::HintsFull { limit }) => assert!(limit as usize >= taken),
        other => panic!("{other:?}"),
    }
    // Without a policy they are not wanted, which is no error; nor are those past the end.
    let plain = self::driver(settings("none", 1 << 20));
    let readers = open(&plain, 1);
    assert_eq!(plain.hint([(&readers[0], 0, 5)]).unwrap(), 1);
    assert_eq!(plain.hint([(&readers[0], u64::MAX, u64::MAX)]).unwrap(), 1);
    assert_eq!(plain.ledger().hints, 0);
}

/// Far more reads than there is room for hints, announced a few at a time while they are read.
#[test]
fn an_order_without_end_is_announced_bit_by_bit() {
    for policy in [
        "aggressive",
        "forestall",
        "reverse-aggressive",
        "demand-lru",
    ] {
        let driver = driver(settings(policy, 1 << 20));
        let readers = open(&driver, 3);
        let order = order(3);
        let endless = || order.iter().cycle();
        let mut to_announce = endless();
        let (mut announced, mut most) = (0, 0);
        for (at, (file, offset)) in endless().take(4000).enumerate() {
            while announced < at + 150 {
                let (file, offset) = to_announce.next().unwrap();
                driver.hint([(&readers[*file], *offset, PIECE)]).unwrap();
                announced += 1;
            }
            check(&readers[*file], *file, *offset);
            most = most.max(driver.ledger().hints_open);
        }
        drop(readers);
        let ledger = driver.finish().unwrap();
        ledger.check().unwrap();
        assert!(ledger.memory_peak.0 <= 1 << 20);
        assert!(
            ledger.hints_missed == 0 && ledger.refused_inputs == 0,
            "{policy}: {ledger:?}"
        );
        assert!(
            most < 682 && ledger.hints_read == 4000,
            "{policy}: {most} open"
        );
    }
}

#[test]
fn a_lower_limit_of_memory_goes_before_hints() {
    let driver = driver(settings("aggressive", 8 << 20));
    let readers = open(&driver, 2);
    let order = order(2);
    let hints = order.iter().map(|(f, at)| (&readers[*f], *at, PIECE));
    driver.hint(hints).unwrap();
    for (at, (file, offset)) in order.iter().enumerate() {
        if at == 50 {
            driver.limit_memory(Bytes(2 << 20)).unwrap();
        }
        check(&readers[*file], *file, *offset);
    }
    drop(readers);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert_eq!(ledger.hints_read + ledger.hints_dropped, ledger.hints);
    assert!(ledger.hints_dropped > 0, "{ledger:?}");
}

#[test]
fn a_file_that_changes_drops_its_hints_and_is_read_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![1; 40 * PIECE as usize]).unwrap();
    let driver = Driver::new(Config::new(settings("aggressive", 16 << 20))).unwrap();
    let reader = driver.open(&path).unwrap();
    driver
        .hint((0..40).map(|i| (&reader, i * 7 % 40 * PIECE, PIECE)))
        .unwrap();
    let mut buffer = vec![0; PIECE as usize];
    reader.read_at(&mut buffer, 0).unwrap();
    std::fs::write(&path, vec![2; 20 * PIECE as usize]).unwrap();
    // A fetch that ended meanwhile may have seen it first.
    reader.look().unwrap();
    assert_eq!(reader.size(), 20 * PIECE);
    for i in 0..20 {
        assert_eq!(
            reader.read_at(&mut buffer, i * PIECE).unwrap(),
            buffer.len()
        );
        assert!(buffer.iter().all(|byte| *byte == 2));
    }
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.hints_dropped > 0 && ledger.hints_read <= 40);
}

#[test]
fn hints_after_the_end_are_taken_and_fetch_nothing() {
    let driver = driver(settings("aggressive", 16 << 20));
    let readers = open(&driver, 2);
    let ended = driver.finish().unwrap();
    let order = order(2);
    let hints = order.iter().map(|(file, at)| (&readers[*file], *at, PIECE));
    assert_eq!(driver.hint(hints).unwrap(), order.len());
    assert_eq!(driver.ledger(), ended);
}

#[test]
fn a_range_without_bytes_before_the_end_announces_no_block() {
    let driver = driver(settings("aggressive", 16 << 20));
    let reader = &open(&driver, 1)[0];
    let end = BYTES - BYTES % PIECE + 777;
    let empty = [(100, 0), (0, 0), (end, 10), (end + 1, u64::MAX), (BYTES, 0)];
    let hints = empty.iter().map(|(at, bytes)| (reader, *at, *bytes));
    assert_eq!(driver.hint(hints).unwrap(), empty.len());
    assert_eq!(driver.ledger().hints, 0);
    driver.hint([(reader, end - 1, 10)]).unwrap();
    assert_eq!(driver.ledger().hints, 1);
}
