//! Which parts of the files ahead are fetched: those that programs read of the files before them.
//!
//! Each program here reads the same part of every file. Blocks that were fetched and that no program read are
//! counted, and so are reads that had to wait for a fetch of their own.

use super::driver::{Driver, inode, rank};

type Part = fn(u64) -> Vec<(u64, u64)>;

const HEAD: Part = |_| vec![(0, 1)];
const TAIL: Part = |blocks| vec![(blocks - 16.min(blocks), 16.min(blocks))];
const MIDDLE: Part = |blocks| vec![(blocks / 2, 5)];
const TAIL_THEN_MIDDLE: Part = |blocks| vec![(blocks - 16, 16), (blocks / 2, 64)];
const TAIL_THEN_HEAD: Part = |blocks| vec![(blocks - 2, 2), (0, 2)];
const NOTHING: Part = |_| Vec::new();

const FILES: u32 = 200;
const MEMORY: u64 = 256 << 20;

fn equal() -> Vec<u64> {
    vec![1024; FILES as usize]
}

/// From 200 to 900 kB.
fn unlike() -> Vec<u64> {
    (0..u64::from(FILES))
        .map(|file| 50 + file * 37 % 170)
        .collect()
}

fn in_order_of(order: fn(u32, u32) -> u32) -> Vec<u32> {
    let mut files: Vec<u32> = (0..FILES).collect();
    files.sort_by_key(|file| order(*file, FILES));
    files
}

/// Blocks behind the first files that were fetched and not read, and those that were missed.
fn walk(lengths: Vec<u64>, files: &[u32], part: Part) -> (u64, u64, Driver) {
    let mut driver = Driver::of("directory", lengths, MEMORY);
    driver.list(0, FILES);
    driver.walk_reading(files[..3].iter().copied(), part);
    let before = driver.engine.ledger();
    driver.walk_reading(files[3..].iter().copied(), part);
    let ledger = driver.engine.ledger();
    let misses = ledger.misses - before.misses;
    (ledger.files_ahead_unread, misses, driver)
}

#[test]
fn the_part_that_is_read_is_fetched_and_nothing_else() {
    let orders: [fn(u32, u32) -> u32; 4] = [
        |file, _| file,
        rank,
        inode,
        |file, files| files - rank(file, files),
    ];
    let parts = [HEAD, TAIL, MIDDLE, TAIL_THEN_MIDDLE, TAIL_THEN_HEAD];
    for (at, part) in parts.into_iter().enumerate() {
        for order in orders {
            let (unread, misses, driver) = walk(equal(), &in_order_of(order), part);
            let ledger = driver.engine.ledger();
            let read: u64 = part(1024).iter().map(|run| run.1).sum();
            assert_eq!((unread, misses), (0, 0), "part {at}");
            assert_eq!(ledger.used, 197 * read, "part {at}");
            assert_eq!(ledger.files_ahead_used, 197);
            assert_eq!(ledger.files_ahead_unread, 0);
        }
    }
}

#[test]
fn parts_of_files_of_unlike_lengths_are_found_at_the_same_relative_place() {
    for (at, part, most) in [(0, TAIL, 0), (1, MIDDLE, 2 * 197 + 8), (2, HEAD, 0)] {
        let (unread, misses, driver) = walk(unlike(), &in_order_of(|file, _| file), part);
        assert!(misses <= 2, "part {at}: {misses} misses");
        assert!(unread <= most, "part {at}: {unread} unread");
        assert_eq!(driver.used_and_wasted(), [197, 0], "part {at}");
    }
}

#[test]
fn files_that_are_not_read_are_opened_and_not_fetched() {
    let (unread, _, driver) = walk(equal(), &in_order_of(rank), NOTHING);
    assert_eq!((unread, driver.sent.len()), (0, 0));
    assert_eq!(driver.used_and_wasted(), [197, 0]);
}

#[test]
fn whole_files_are_fetched_whole_whatever_their_lengths() {
    let lengths: Vec<u64> = (0..u64::from(FILES))
        .map(|file| 1 + file * 7 % 15)
        .collect();
    let (unread, misses, driver) =
        walk(lengths, &in_order_of(|f, _| f), |blocks| vec![(0, blocks)]);
    assert_eq!((unread, misses), (0, 0));
    assert_eq!(driver.used_and_wasted(), [197, 0]);
}

/// Threads that take the next file each, and close their last one after they opened another.
fn threads(count: u32, part: Part, closes: bool) -> Driver {
    let mut driver = Driver::of("directory", equal(), MEMORY);
    driver.list(0, FILES);
    let mut open = vec![None; count as usize];
    for file in 0..FILES {
        let thread = file * 5 % count;
        let reader = driver.enter_as(thread.into(), 0, file, 0);
        let last = open[thread as usize].replace(reader).filter(|_| closes);
        for (first, blocks) in part(1024) {
            driver.read(reader, first, blocks);
        }
        match last {
            Some(last) => driver.leave(last),
            None => driver.answer(0, 0),
        }
    }
    driver.complete();
    driver
}

#[test]
fn threads_and_files_that_stay_open_are_no_different() {
    for (at, part) in [HEAD, TAIL, MIDDLE, TAIL_THEN_MIDDLE]
        .into_iter()
        .enumerate()
    {
        for count in [1, 2, 3, 8] {
            for closes in [true, false] {
                let driver = threads(count, part, closes);
                let ledger = driver.engine.ledger();
                let unread = ledger.files_ahead_unread;
                let read: u64 = part(1024).iter().map(|run| run.1).sum();
                let all = u64::from(FILES) * read;
                let what = format!("part {at}, {count} threads, {closes}");
                assert!(unread * 100 <= all * 3, "{what}: {unread} of {all} unread");
                assert!(
                    ledger.misses * 10 <= all,
                    "{what}: {} of {all} missed",
                    ledger.misses
                );
                assert!(ledger.files_ahead_used >= 180, "{what}: {ledger:?}");
            }
        }
    }
}

#[test]
fn a_habit_that_changes_is_followed_after_a_window_of_files() {
    let mut driver = Driver::of("directory(files=16)", equal(), MEMORY);
    driver.list(0, FILES);
    driver.walk_reading(0..60, HEAD);
    let before = driver.engine.ledger();
    driver.walk_reading(60..FILES, TAIL);
    let ledger = driver.engine.ledger();
    let wasted = ledger.files_ahead_wasted - before.files_ahead_wasted;
    assert!((1..=32).contains(&wasted), "{wasted} files");
    assert_eq!(ledger.files_ahead_unread, wasted);
    assert!(ledger.misses - before.misses <= 32 * 16, "{ledger:?}");
}

#[test]
fn a_file_that_was_opened_and_not_read_is_not_used() {
    let mut driver = Driver::of("directory", equal(), MEMORY);
    driver.list(0, FILES);
    driver.walk_reading(0..3, TAIL);
    let reader = driver.enter(0, 3, 0);
    assert_eq!(driver.used_and_wasted(), [0, 0]);
    assert_eq!(
        driver.engine.ledger().files_ahead_open,
        4,
        "it waits to be read"
    );
    driver.read(reader, 0, 1);
    assert_eq!(driver.used_and_wasted(), [0, 0], "its end was fetched");
    driver.leave(reader);
    assert_eq!(driver.used_and_wasted(), [0, 1]);
    assert_eq!(driver.engine.ledger().files_ahead_unread, 16);
    let reader = driver.enter(0, 4, 0);
    driver.read(reader, 1023, 1);
    assert_eq!(driver.used_and_wasted(), [1, 1]);
    driver.leave(reader);
    assert_eq!(driver.engine.ledger().files_ahead_unread, 16 + 15);
}

#[test]
fn programs_that_read_elsewhere_each_time_waste_no_more_than_the_bound() {
    let mut driver = Driver::of("directory", equal(), MEMORY);
    driver.list(0, FILES);
    for (opens, file) in (1..).zip(0..FILES) {
        let reader = driver.enter(0, file, 0);
        driver.read(reader, u64::from(file) * 389 % 1000, 3);
        driver.leave(reader);
        let ledger = driver.engine.ledger();
        let spent = ledger.files_ahead_wasted + ledger.files_ahead_open;
        assert!(ledger.files_ahead_unread <= 5 * ledger.files_ahead_wasted);
        assert!(
            spent <= 16 + ledger.files_ahead_used + opens / 16,
            "{ledger:?}"
        );
    }
}
