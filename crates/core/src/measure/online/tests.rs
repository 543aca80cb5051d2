//! Online: estimates of disks, arrays and servers whose costs are known.

use alloc::vec::Vec;
use std::println;

use super::*;
use crate::conformance::Random;
use crate::kind::Kind;

/// Requests at once of a server of which nothing is known.
const LEAST: u32 = Kind::Server { most: 64 }.side_by_side();

/// Requests one behind the other, every other one from a cache.
#[test]
fn a_cache_that_has_half_of_the_requests_hides_no_device() {
    let mut method = Online::default();
    let mut now = 0;
    for number in 0..1000u64 {
        let time = match number % 2 {
            0 => 12_000_000 + 5_000_000,
            _ => 10_000,
        };
        let sample = Sample {
            sent: Nanos(now),
            ended: Nanos(now + time),
            distance: Bytes(1 << 30),
            bytes: Bytes(500_000),
            in_flight: 1,
            left: 1,
            ..Sample::default()
        };
        method.ended(&sample);
        now += time;
    }
    let expected = method.expected(Bytes(1 << 30), Bytes(500_000));
    assert!(expected.0.abs_diff(17_000_000) < 1_000_000, "{expected:?}");
}

/// Pages at random of a disk that has two at a time and reads in 6 to 10 ms; one in so many is from its cache.
#[test]
fn a_cache_that_has_some_of_the_pages_makes_a_disk_no_faster() {
    for one_in in [2, 3, 4, 8] {
        let (mut random, mut method, mut now) = (Random(one_in), one(), 1_000);
        for number in 0..2000 {
            let is_hit = number > 100 && random.one_in(one_in);
            let took = if is_hit {
                60_000
            } else {
                6_000_000 + random.below(4_000_000)
            };
            now += took;
            method.ended(&Sample {
                sent: Nanos(now - took - 1_000),
                ended: Nanos(now),
                distance: Bytes(1 << 30),
                bytes: Bytes(4096),
                in_flight: 2,
                left: 2,
                ..Sample::default()
            });
        }
        let expected = method.expected(Bytes(1 << 30), Bytes(4096)).0;
        assert!(
            (6_500_000..9_500_000).contains(&expected),
            "1 in {one_in}: {expected} ns"
        );
    }
}

/// A store of eight servers, whose costs are as they were told.
fn store() -> Online {
    let described = Profile::constant(Nanos(20_000_000), 80_000_000).unwrap();
    let mut method = Online::default();
    method.told(&described.with_servers(8).unwrap().with_most(256));
    method.ended(&sample(&method, 1, 1));
    method
}

/// A request that was sent with so many and took so many times the time it takes alone.
fn sample(method: &Online, in_flight: u32, times: u64) -> Sample {
    let alone = method.expected(Bytes(1 << 30), Bytes(1 << 20)).0;
    Sample {
        ended: Nanos(times * alone),
        distance: Bytes(1 << 30),
        bytes: Bytes(1 << 20),
        in_flight,
        left: in_flight,
        ahead: Nanos(u64::from(in_flight) * alone),
        ..Sample::default()
    }
}

/// Until its costs are measured anew, because all come back late.
fn suspicious() -> Online {
    let mut method = store();
    while method.limit() > LEAST {
        method.ended(&sample(&method, 32, 40));
    }
    method
}

/// All that a store had been given comes back late: it may have become slower.
#[test]
fn what_was_sent_before_a_change_of_costs_is_no_evidence_of_fewer_servers() {
    let mut method = suspicious();
    for _ in 0..64 {
        method.ended(&sample(&method, 32, 40));
    }
    assert_eq!((method.limit(), method.profile().servers()), (LEAST, 8));
}

#[test]
fn costs_are_known_after_two_requests_that_take_their_time_and_after_four_that_do_not() {
    for (times, expected) in [(1, 2), (3, 4)] {
        let (mut method, mut alone) = (suspicious(), 0);
        while method.limit() == LEAST {
            method.ended(&sample(&method, LEAST, times));
            alone += 1;
        }
        assert_eq!(alone, expected, "{times} times the time expected");
    }
}

/// Of 32 requests that go out together all come back in the time of one.
#[test]
fn more_servers_are_believed_at_once_where_requests_take_their_time() {
    let mut method = store();
    for _ in 0..EPOCH {
        method.ended(&sample(&method, 32, 1));
        assert!(method.limit() > LEAST, "nothing is measured for it");
    }
    assert_eq!(method.profile().servers(), 32);
}

/// A server of which nothing is known, whose requests take 38 ms however many there are, then ten times that.
#[test]
fn a_server_is_never_asked_for_less_than_eight_and_its_workers_are_found() {
    for servers in [8, 16] {
        let mut method = Online::default();
        method.told(&Profile::default().with_most(256));
        let mut now = 0;
        for number in 0..8000u64 {
            let alone = if number < 2000 {
                38_000_000
            } else {
                380_000_000
            };
            let in_flight = u64::from(method.limit()).min(64);
            assert!(in_flight >= u64::from(LEAST), "request {number}");
            now += alone / in_flight.min(servers);
            let took = alone * in_flight.max(servers) / servers;
            method.ended(&Sample {
                sent: Nanos(now.saturating_sub(took)),
                ended: Nanos(now),
                ahead: Nanos(in_flight * method.expected(Bytes(1 << 30), Bytes(1 << 20)).0),
                ..sample(&method, in_flight as u32, 1)
            });
            if number % 2000 == 1999 {
                let expected = method.expected(Bytes(1 << 30), Bytes(1 << 20)).0;
                let seen = u64::from(method.profile().servers());
                assert!(2 * seen >= servers, "{seen} of {servers} after {number}");
                assert!(
                    (alone / 2..alone * 2).contains(&expected),
                    "{expected} after {number}"
                );
            }
        }
    }
}

/// A device of one server, told of as 1 ms and 1 GB/s.
fn one() -> Online {
    let described = Profile::constant(Nanos(1_000_000), 1_000_000_000).unwrap();
    let mut method = Online::default();
    method.told(&described.with_servers(1).unwrap().with_most(256));
    method
}

/// A MiB that continues the one before, one of 40 requests that went out 50 ms ago.
fn of_many(now: u64) -> Sample {
    Sample {
        sent: Nanos(now - 50_000_000),
        ended: Nanos(now),
        bytes: Bytes(1 << 20),
        in_flight: 40,
        left: 40,
        ..Sample::default()
    }
}

#[test]
fn a_host_that_is_told_of_many_requests_at_once_sees_the_time_of_each() {
    let convoys = [
        (3, 3_100_000),
        (10, 2_000_000),
        (40, 8_000_000),
        (200, 30_000_000),
    ];
    for (convoy, gap) in convoys {
        let (mut method, mut now) = (one(), 100_000_000);
        for number in 0..50 * convoy {
            now += if number % convoy == 0 { gap } else { 12_000 };
            method.ended(&of_many(now));
        }
        let expected = method.expected(Bytes(0), Bytes(1 << 20)).0;
        let each = (gap + (convoy - 1) * 12_000) / convoy;
        assert!(
            (each / 2..each * 2).contains(&expected),
            "{expected} where {convoy} are told of every {gap} ns"
        );
    }
}

/// Two are told of together every 4.5 ms, and then more every 3.4: the first of them takes no longer than it should.
#[test]
fn those_told_of_with_a_request_that_is_on_time_do_not_seem_fast() {
    for convoy in [4, 8, 16] {
        let (mut method, mut now, mut least) = (one(), 100_000_000, u64::MAX);
        for number in 0..80 + 40 * convoy {
            let (length, gap, next) = match number < 80 {
                true => (2, 4_500_000, 40_000),
                false => (convoy, 3_400_000, 62_000),
            };
            now += if number % length == 0 { gap } else { next };
            method.ended(&of_many(now));
            least = least.min(method.expected(Bytes(0), Bytes(1 << 20)).0);
        }
        let each = (3_400_000 + (convoy - 1) * 62_000) / convoy;
        assert!(least > each / 2, "{least} where each takes {each} ns");
    }
}

/// Windows of a disk of 7 ms and 80 MB/s, in parts of 64 KiB that go out together, told of as 1 ms and 1 GB/s. Two of three
/// begin in the drive's cache.
#[test]
fn a_seek_is_not_shared_with_those_that_continue_it() {
    for parts in 2..=8 {
        let (mut method, mut now) = (one(), 0);
        for part in 0..50 * parts {
            let at = part % parts;
            now += if at == 0 { 12_000_000 } else { 0 };
            let sent = now;
            let has_seek = at == 0 && part / parts % 3 == 2;
            now += if has_seek { 7_000_000 } else { 0 } + 800_000;
            method.ended(&Sample {
                sent: Nanos(sent - u64::from(at) * 800_000),
                ended: Nanos(now),
                distance: Bytes(u64::from(at == 0) << 30),
                bytes: Bytes(1 << 16),
                in_flight: at + 1,
                left: parts - at,
                ..Sample::default()
            });
        }
        let [apart, adjacent] =
            [1 << 30, 0].map(|distance| method.expected(Bytes(distance), Bytes(1 << 16)).0);
        println!("{parts} parts: {apart} and {adjacent} ns");
        assert!(
            (2_300_000..4_200_000).contains(&apart),
            "{parts} parts: {apart} ns"
        );
        assert!(
            (600_000..1_200_000).contains(&adjacent),
            "{parts} parts: {adjacent} ns"
        );
    }
}

/// 0.1 ms and 2.4 GB/s, whose host stands still for 50 ms and is then told of up to so many requests at once, of which
/// one in so many continues none; the time of each convoy is off by a third at most.
fn told_together(told: &Profile, most: u64, apart: u64, seed: u64) -> u64 {
    let mut random = Random(seed);
    let (mut method, mut now) = (Online::default(), 100_000_000);
    method.told(told);
    for _ in 0..4000 / most {
        let convoy = 1 + random.below(most);
        let length = |_| [1 << 20, 400 << 10][usize::from(random.one_in(8))];
        let lengths: Vec<u64> = (0..convoy).map(length).collect();
        let whole = convoy * 100_000 + lengths.iter().sum::<u64>() * 10 / 24;
        let late = whole * 2 / 3 + random.below(whole * 2 / 3) - 20_000 * (convoy - 1);
        for (at, bytes) in lengths.into_iter().enumerate() {
            now += if at == 0 { late } else { 20_000 };
            method.ended(&Sample {
                sent: Nanos(now - 50_000_000),
                ended: Nanos(now),
                distance: Bytes(u64::from(random.one_in(apart)) << 30),
                bytes: Bytes(bytes),
                in_flight: 40,
                left: 40,
                ..Sample::default()
            });
        }
    }
    method.profile().rate(Bytes(0)) / 1_000_000
}

/// Where up to 64 are told together 4,000 requests are a hundred observations, of one length nearly: chance is left.
#[test]
fn convoys_leave_the_rate_within_a_factor_of_three() {
    for (cost, rate) in [(8_000_000, 80_000_000), (1_000_000, 1_000_000_000)] {
        let told = Profile::constant(Nanos(cost), rate).unwrap();
        let told = told.with_servers(1).unwrap();
        for (most, apart, least) in [
            (2, 2, 32),
            (4, 16, 32),
            (16, 2, 30),
            (16, 16, 28),
            (64, 3, 26),
            (64, 10, 22),
        ] {
            let rates = (0..32).map(|seed| told_together(&told, most, apart, seed));
            let near = rates.filter(|rate| (800..=7_200).contains(rate)).count();
            println!("{cost} ns, up to {most}, 1 in {apart} apart: {near} of 32");
            assert!(near >= least, "{cost} ns, {most}, {apart}: {near} of 32");
        }
    }
}

/// A request that was not there when a late one ended is in no convoy with it.
#[test]
fn a_disk_that_becomes_ten_times_faster_is_followed_whatever_came_before() {
    for seed in 0..8 {
        let (mut random, mut method, mut now) = (Random(seed), one(), 0);
        let mut serve = |method: &mut Online, took: u64| {
            now += took;
            method.ended(&Sample {
                sent: Nanos(now - took),
                ended: Nanos(now),
                distance: Bytes(1 << 30),
                bytes: Bytes(1 << 20),
                in_flight: 2,
                left: 2,
                ..Sample::default()
            });
        };
        for _ in 0..100 {
            serve(&mut method, 17_000_000 + random.below(8_000_000));
        }
        serve(&mut method, 40_000_000);
        for _ in 0..24 {
            serve(&mut method, 1_700_000 + random.below(800_000));
        }
        let expected = method.expected(Bytes(1 << 30), Bytes(1 << 20)).0;
        assert!(expected < 4_200_000, "{expected} ns, seed {seed}");
    }
}

/// Disks that take 4 to 12 ms for a page, at which so many requests at random are.
fn pages_on(disks: u64, readers: u32, requests: usize, seed: u64) -> (u64, u32) {
    let (mut random, mut method, mut now) = (Random(seed), Online::default(), 0);
    let mut free = std::vec![0; disks as usize];
    let mut sent: Vec<Sample> = Vec::new();
    for _ in 0..requests {
        while sent.len() < readers.min(method.limit()) as usize {
            let in_flight = sent.len() as u32 + 1;
            let page = (Bytes(1 << 30), Bytes(4096));
            let ahead = u64::from(in_flight) * method.expected(page.0, page.1).0;
            let disk = &mut free[random.below(disks) as usize];
            *disk = now.max(*disk) + 4_000_000 + random.below(8_000_000);
            sent.push(Sample {
                sent: Nanos(now),
                ended: Nanos(*disk),
                distance: page.0,
                bytes: page.1,
                in_flight,
                ahead: Nanos(ahead),
                ..Sample::default()
            });
        }
        let first = (0..sent.len()).min_by_key(|at| sent[*at].ended).unwrap();
        let left = sent.len() as u32;
        let is_full = left >= method.limit();
        let done = sent.swap_remove(first);
        now = done.ended.0;
        method.ended(&Sample {
            left,
            is_full,
            ..done
        });
    }
    let expected = method.expected(Bytes(1 << 30), Bytes(4096)).0;
    (expected, method.profile().servers())
}

/// Of disks one page in four takes 6 ms or less.
#[test]
fn the_chance_of_a_disk_makes_an_array_neither_faster_nor_smaller() {
    for (disks, readers) in [(2, 8), (4, 4), (4, 16), (4, 64), (8, 100)] {
        let of = |seed| pages_on(disks, readers, 500 + 400 * seed as usize, seed);
        let seen: Vec<(u64, u32)> = (0..24).map(of).collect();
        println!("{disks} disks, {readers} readers: {seen:?}");
        let times = seen.iter().map(|(time, _)| time / 1000).sum::<u64>() / 24;
        let servers = seen
            .iter()
            .map(|(_, servers)| u64::from(*servers))
            .sum::<u64>();
        assert!(
            (6_800..=9_200).contains(&times),
            "{disks}, {readers}: {times} us"
        );
        assert!(
            servers >= 24 * disks * 5 / 8,
            "{disks}, {readers}: {servers} / 24"
        );
    }
}

#[test]
fn the_time_in_which_a_device_runs_out_is_a_small_part_however_long_it_takes() {
    for runs_out in [2_000_000, 12_000_000, 100_000_000] {
        let (mut method, mut now, mut lost) = (one(), 0, 0);
        for _ in 0..200_000 {
            let is_alone = method.limit() == 1;
            let took = if is_alone { runs_out } else { 500_000 };
            lost += if is_alone { took } else { 0 };
            now += took;
            method.ended(&Sample {
                sent: Nanos(now - 500_000),
                ended: Nanos(now),
                bytes: Bytes(1 << 19),
                in_flight: if is_alone { 1 } else { 8 },
                left: if is_alone { 1 } else { 8 },
                ahead: Nanos(4_000_000),
                ..Sample::default()
            });
        }
        assert!(lost > 0, "nothing was measured");
        assert!(32 * lost <= now + 64 * runs_out, "{lost} of {now} ns");
    }
}

#[test]
fn a_device_that_never_completes_is_still_given_two_requests_or_one_and_a_server_32() {
    assert_eq!(Online::default().limit(), 1);
    let mut server = Online::default();
    for (most, expected) in [(64, 32), (4, 4)] {
        server.told(&Profile::default().with_most(most));
        assert_eq!((server.limit(), server.profile().servers()), (expected, 8));
    }
    let disk = Profile::default().with_servers(1).unwrap();
    let mut told = Online::default();
    told.told(&disk);
    assert_eq!((told.limit(), told.profile()), (2, &disk));
    told.told(&disk.clone().with_most(1));
    assert_eq!(told.limit(), 1);
}
