//! Several programs in one folder, each at a place of its own, in turns.

use super::driver::{Driver, inode, rank};

const FILES: u32 = 5000;
const WALKERS: u32 = 8;
const MEMORY: u64 = 256 << 20;

/// Walkers in turns that open so many files each; of each, how many were open ahead.
fn walk(order: fn(u32, u32) -> u32, files: u32, opener: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    let mut driver = Driver::new("directory", files, MEMORY);
    driver.list(0, files);
    let mut ordered: Vec<u32> = (0..files).collect();
    ordered.sort_by_key(|file| order(*file, files));
    let mut ahead = vec![0; WALKERS as usize];
    let each = files / WALKERS;
    for step in 0..each {
        for walker in 0..WALKERS {
            let file = ordered[(walker * each + step) as usize];
            ahead[walker as usize] += u32::from(driver.ahead.contains_key(&file));
            let reader = driver.enter_as(opener(walker, step).into(), 0, file, 0);
            driver.read(reader, 0, driver.length(file));
            driver.leave(reader);
        }
    }
    let [used, wasted] = driver.used_and_wasted();
    assert_eq!(u64::from(ahead.iter().sum::<u32>()), used);
    assert!(wasted <= 16, "{wasted} wasted, {used} used");
    ahead
}

#[test]
fn each_of_eight_programs_at_places_of_their_own_has_files_ahead() {
    let orders: [fn(u32, u32) -> u32; 4] = [
        |file, _| file,
        rank,
        inode,
        |file, files| files - rank(file, files),
    ];
    for (at, order) in orders.into_iter().enumerate() {
        for files in [499, FILES - 1] {
            let ahead = walk(order, files, |walker, _| walker);
            let least = files / WALKERS * 3 / 4;
            assert!(
                ahead.iter().all(|count| *count >= least),
                "order {at}, {files} files: {ahead:?}"
            );
        }
    }
}

#[test]
fn walks_of_a_large_folder_are_told_apart_by_place_whoever_opens() {
    let pools: [fn(u32, u32) -> u32; 3] = [
        |_, _| 1,
        |walker, step| (walker * 5 + step * 3) % 4,
        |walker, step| walker + step * WALKERS,
    ];
    for (at, opener) in pools.into_iter().enumerate() {
        let ahead = walk(rank, FILES - 1, opener);
        let least = FILES / WALKERS * 9 / 10;
        let all = ahead.iter().all(|count| *count >= least);
        assert!(all, "pool {at}: {ahead:?}");
    }
}

#[test]
fn programs_that_open_in_random_order_have_none_ahead() {
    for (files, openers) in [(4999, 8), (4999, 1), (499, 8), (499, 64)] {
        let mut driver = Driver::new("directory", files, MEMORY);
        driver.list(0, files);
        let (mut state, mut order) = (u64::from(files + openers), (0..files).collect::<Vec<_>>());
        for at in (1..order.len()).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            order.swap(at, (state >> 33) as usize % (at + 1));
        }
        for (at, file) in (0..).zip(order) {
            let reader = driver.enter_as(u64::from(at % openers), 0, file, 0);
            driver.leave(reader);
        }
        let [used, wasted] = driver.used_and_wasted();
        println!("{files} files, {openers} openers: {used} used, {wasted} wasted");
        assert!(
            used + wasted <= 16,
            "{files} files, {openers} openers: {used}, {wasted}"
        );
    }
}

#[test]
fn a_program_that_goes_on_elsewhere_loses_four_files() {
    let mut driver = Driver::new("directory", FILES, MEMORY);
    driver.list(0, FILES);
    driver.walk(0..100);
    let before = driver.used_and_wasted()[0];
    driver.walk(2000..2100);
    let used = driver.used_and_wasted()[0] - before;
    assert!(used >= 96, "{used}");
}
