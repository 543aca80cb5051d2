//! Readers of a trace and when its requests begin: closed, open and paced loops against the recursion of a queue
//! with one server, and the percentiles of their responses.

use forerun_core::Nanos;
use forerun_sim::random::Random;
use forerun_sim::simulate::Outcome;
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::grid::{Grid, Refusal};
use forerun_sim::simulate::input::Input;
use forerun_sim::simulate::pacing::{Loop, Pacing, Readers};
use forerun_sim::simulate::recorded::Room;
use forerun_sim::simulate::requests::{Manner, Records, Source};
use forerun_sim::times::Times;
use forerun_sim::trace::{Record, TraceError};

const BLOCK: u64 = 8192;
const DISK: &str = "switching(cost_ns=2000000,rate_bytes_per_second=8192000)";
/// Time of a request there: 2 ms to go to its place, and 1 ms for a block.
const SERVICE: u64 = 3_000_000;

/// A read of a block.
fn block(device: u32, number: u64, arrival: Option<u64>) -> Record {
    Record {
        device,
        arrival: arrival.map(Nanos),
        ..Record::range(number * BLOCK, BLOCK as u32).unwrap()
    }
}

/// Reads of a block: device, number, time of arrival.
fn input(reads: Vec<(u32, u64, Option<u64>)>) -> Input {
    let block = |(device, number, arrival)| block(device, number, arrival);
    input_of(reads.into_iter().map(block).collect(), None)
}

fn input_of(reads: Vec<Record>, think: Option<Nanos>) -> Input {
    let open = move || -> Result<Records<'static>, TraceError> {
        let records = reads.clone().into_iter();
        Ok(Box::new(records.map(|record| Ok((None, record)))))
    };
    let manner = Manner {
        block_bytes: BLOCK as u32,
        with_writes: false,
        think,
    };
    let records = open().unwrap();
    let open = Box::new(open);
    let room = Room {
        keeps: false,
        ..Room::ENDLESS
    };
    Input::of_trace(records, Source { open, manner }, room).unwrap()
}

fn outcome(input: &Input, pacing: Pacing, preset: &str) -> Outcome {
    let disk = Disk::named(DISK, Some("fcfs")).unwrap();
    let grid = Grid {
        pacing,
        ..Grid::new(input, &disk, Nanos(0))
    };
    let preset = preset.parse().unwrap();
    let run = grid.plan(&preset, None, 4096, &|_| ()).unwrap();
    let (outcome, bound) = grid.run(&run).unwrap();
    assert!(outcome.elapsed >= bound.least, "{bound:?}");
    outcome
}

fn paced(when: Loop, readers: Readers, speed: &str) -> Pacing {
    Pacing {
        readers,
        when,
        speed: speed.parse().unwrap(),
    }
}

/// Far from each other, so that each costs a switch; `interval` apart on average.
fn arrivals(count: u64, interval: u64, seed: u64) -> Vec<(u32, u64, Option<u64>)> {
    let mut random = Random::new(seed);
    let mut time = 0;
    let read = |at: u64| {
        let here = time;
        time += random.between(0, 2 * interval);
        (0, (at * 7919) % 100_000 * 10, Some(here))
    };
    (0..count).map(read).collect()
}

/// One server: a request begins when it has arrived and the one before has ended.
fn queue(reads: &[(u32, u64, Option<u64>)]) -> Times {
    let (mut times, mut end) = (Times::default(), 0);
    for (_, _, arrival) in reads {
        let arrival = arrival.unwrap();
        end = arrival.max(end) + SERVICE;
        times.add(Nanos(end - arrival));
    }
    times
}

#[test]
fn responses_in_an_open_loop_are_those_of_a_queue() {
    for seed in 1..4 {
        let reads = arrivals(3000, SERVICE * 4 / 3, seed);
        let (input, wanted) = (input(reads.clone()), queue(&reads));
        for when in [Loop::Open, Loop::Paced] {
            let found = outcome(&input, paced(when, Readers::One, "recorded"), "none");
            assert_eq!(found.responses, wanted, "{when:?}");
            assert_eq!(found.misses, 6000, "{when:?}");
            assert!(!found.is_saturated);
            assert!(found.tails().all(|(_, time)| time.is_some()));
            let last = reads.last().unwrap().2.unwrap();
            assert!(found.elapsed > last, "{} {last}", found.elapsed);
        }
        // In a closed loop nothing waits for another one, and gaps are computing.
        let closed = outcome(&input, Pacing::default(), "none");
        assert_eq!(closed.responses.longest(), Nanos(SERVICE));
        assert_eq!(closed.responses.at(1), closed.responses.longest());
        assert_eq!(closed.waits, closed.responses);
    }
}

#[test]
fn requests_of_the_first_instant_wait_for_each_other_in_their_responses() {
    for burst in [[0, 0, 0, 0], [0, 0, 0, 20 * SERVICE]] {
        let read = |at: usize| (0, at as u64 * 10, Some(burst[at]));
        let reads: Vec<_> = (0..burst.len()).map(read).collect();
        let (input, wanted) = (input(reads.clone()), queue(&reads));
        assert!(wanted.longest() >= Nanos(3 * SERVICE));
        for when in [Loop::Open, Loop::Paced] {
            let found = outcome(&input, paced(when, Readers::One, "recorded"), "none");
            assert_eq!(found.responses, wanted, "{when:?}");
        }
    }
}

#[test]
fn a_queue_that_grows_to_the_end_is_saturated_and_has_no_percentiles() {
    let reads = arrivals(3000, SERVICE * 4 / 3, 5);
    let input = input(reads);
    for (speed, is_saturated) in [
        ("recorded", false),
        ("0.5x", false),
        ("2x", true),
        ("10x", true),
    ] {
        let found = outcome(&input, paced(Loop::Open, Readers::One, speed), "none");
        assert_eq!(found.is_saturated, is_saturated, "{speed}");
        assert_eq!(found.tails().all(|(_, time)| time.is_none()), is_saturated);
        assert_eq!(found.responses.count(), 3000);
    }
}

/// A stream of requests that arrive before the ones before have ended is one stream to the engine.
#[test]
fn a_stream_in_an_open_loop_is_prefetched() {
    let reads = (0..2000).map(|at| (0, at, Some(at * 1_300_000))).collect();
    let input = input(reads);
    let open = paced(Loop::Open, Readers::One, "recorded");
    let [none, forerun] = ["none", "forerun"].map(|preset| outcome(&input, open, preset));
    let hits = forerun.hits + forerun.late_hits;
    assert!(hits > 3800, "{hits}");
    assert!(forerun.responses.mean() < none.responses.mean());
}

#[test]
fn readers_of_their_own_devices_do_not_wait_for_each_other() {
    let both = |at: u64| (at as u32 % 2, at * 10, Some(at * 1000));
    let input = input((0..1000).map(both).collect());
    let one = outcome(&input, Pacing::default(), "none");
    let own = outcome(
        &input,
        paced(Loop::Closed, Readers::Device, "recorded"),
        "none",
    );
    // 1 us lies between two arrivals, 2 between two of one device; the second one begins 1 us late.
    assert_eq!(one.elapsed, 1000 * SERVICE + 999 * 1000);
    assert_eq!(own.elapsed, 500 * SERVICE + 499 * 2000 + 1000);
    for (when, readers) in [
        (Loop::Paced, Readers::Device),
        (Loop::Open, Readers::Device),
        (Loop::Open, Readers::One),
    ] {
        let found = outcome(&input, paced(when, readers, "recorded"), "none");
        assert_eq!(found.elapsed, 500 * SERVICE + 1000, "{when:?} {readers:?}");
    }
    let one = outcome(&input, paced(Loop::Paced, Readers::One, "recorded"), "none");
    assert_eq!(one.elapsed, 1000 * SERVICE);
}

/// Each process waits for its own reads, whichever files they are of, and two may read one file.
#[test]
fn processes_have_open_files_of_their_own() {
    // The first one goes through both files by turns; a tenth of the reads are the second one's, all of file 1.
    let read = |at: u64| {
        let (pid, file) = (u32::from(at % 10 == 9), at as u32 % 2);
        Record {
            process: Some(pid + 70),
            ..block(file, at * 10, Some(at * 1000))
        }
    };
    let input = input_of((0..1000).map(read).collect(), Some(Nanos(0)));
    let opened = input.recorded.as_ref().unwrap().opened();
    assert_eq!(opened.regions().collect::<Vec<_>>(), [0, 1, 1]);
    // Regions lie on a disk each: readers by device read side by side, and the first process waits for both.
    let run = |when, readers| outcome(&input, paced(when, readers, "recorded"), "none");
    let readers = [Readers::One, Readers::Process, Readers::Device];
    let [one, process, device] = readers.map(|readers| run(Loop::Closed, readers));
    assert_eq!(one.elapsed, 1000 * SERVICE);
    assert_eq!(device.elapsed, 500 * SERVICE);
    let least = 900 * SERVICE;
    assert!(
        (least..1000 * SERVICE).contains(&process.elapsed),
        "{}",
        process.elapsed
    );
    assert_eq!((one.reads, one.misses), (process.reads, process.misses));
    // In an open loop it is no matter whose requests they are.
    let open = [Readers::One, Readers::Process].map(|readers| run(Loop::Open, readers));
    assert_eq!(open[0].responses, open[1].responses);
    let last = run(Loop::Paced, Readers::Process);
    assert!(last.elapsed >= least, "{}", last.elapsed);
}

#[test]
fn times_that_are_not_there_are_refused() {
    let disk = Disk::named(DISK, None).unwrap();
    let timed = input(vec![(0, 1, Some(0)), (0, 2, Some(9))]);
    let untimed = input(vec![(0, 1, None), (0, 2, None)]);
    let plan = |input: &Input, when, readers, preset: &str| {
        let grid = Grid {
            pacing: paced(when, readers, "recorded"),
            ..Grid::new(input, &disk, Nanos(0))
        };
        let run = grid.plan(&preset.parse().unwrap(), None, 4096, &|_| ());
        run.err()
    };
    // One that has none among others would begin with the first of all.
    let partly = input(vec![
        (0, 1, Some(0)),
        (0, 2, None),
        (0, 3, Some(9)),
        (0, 4, None),
    ]);
    let missing = Refusal::Arrivals {
        requests: 2,
        at: None,
    };
    for when in [Loop::Open, Loop::Paced] {
        let refused = plan(&partly, when, Readers::One, "none");
        assert_eq!(refused, Some(missing.clone()), "{when:?}");
    }
    assert_eq!(plan(&partly, Loop::Closed, Readers::Device, "none"), None);
    let open = Loop::Open;
    assert_eq!(
        plan(&untimed, open, Readers::One, "none"),
        Some(Refusal::Untimed)
    );
    assert_eq!(plan(&untimed, Loop::Closed, Readers::Device, "none"), None);
    assert_eq!(plan(&timed, open, Readers::One, "none"), None);
    assert_eq!(
        plan(&timed, open, Readers::One, "demand-lru"),
        Some(Refusal::Pacing)
    );
    assert_eq!(
        plan(&timed, Loop::Closed, Readers::Device, "aggressive"),
        Some(Refusal::Pacing)
    );
}
