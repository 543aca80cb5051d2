//! Consequences of the figures of a drive with a write-back cache, zero-latency reads, slipped and
//! spare sectors, measured seeks, overheads by the access before; and which are refused.

use std::sync::Arc;

use forerun_core::Nanos;
use forerun_sim::device::hdd::{Access, Drawing, Drive};
use forerun_sim::device::{Model, model};
use forerun_sim::random::Random;

/// 100 Hz, 100 sectors a track of 0.1 ms each, 2 heads, seeks of 1 ms, a bus of 1 ms a sector.
const DRIVE: &str = "
kind = 'hdd'
rpm = 6000
tracks_per_cylinder = 2
head_switch_ms = 0
zone = [{ cylinders = 100, sectors_per_track = 100, track_skew_sectors = 0, cylinder_skew_sectors = 0 }]
seek.curve = [{ from_cylinders = 1, base_ms = 1 }]
controller.read_miss_ms = 0.5
controller.read_hit_ms = 0.25
controller.write_ms = 0.75
bus.read_bytes_per_second = 512_000
";

const CACHED: &str = "
[cache]
segments = 4
segment_bytes = 10_240
write_segments = 1
";

const MS: u64 = 1_000_000;

fn drawing(text: &str) -> Arc<Drawing> {
    match model::from_toml(text) {
        Ok(Model::Hdd(drawing)) => drawing,
        other => panic!("not a disk: {other:?}"),
    }
}

fn refused(text: &str) -> String {
    match model::from_toml(text) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted: {text}"),
    }
}

fn read(lbn: u64, sectors: u64) -> Access {
    Access {
        lbn,
        sectors,
        is_write: false,
    }
}

fn write(lbn: u64, sectors: u64) -> Access {
    Access {
        is_write: true,
        ..read(lbn, sectors)
    }
}

/// When it ends, in microseconds, of an access at this millisecond.
fn end(drive: &mut Drive, ms: u64, access: Access) -> u64 {
    drive.serve(Nanos(ms * MS), access).0 / 1_000
}

#[test]
fn a_cached_write_takes_overhead_and_bus_and_one_too_long_for_it_the_surface() {
    let mut drive = Drive::new(drawing(&[DRIVE, CACHED].concat()));
    assert_eq!(end(&mut drive, 0, write(5_000, 4)), 4_750);
    // 21 sectors, one more than the cache holds: written at the end of 20 ms, after the bus.
    let through = end(&mut drive, 1_000, write(5_000, 21));
    assert!(through > 1_000_000 + 21_750, "{through}");
    let mut plain = Drive::new(drawing(DRIVE));
    assert!(end(&mut plain, 0, write(5_000, 4)) > 4_750);
}

#[test]
fn a_full_dirty_cache_waits_until_the_oldest_run_is_on_the_surface() {
    let mut drive = Drive::new(drawing(&[DRIVE, CACHED].concat()));
    // Sector 5000 is cylinder 25, angle 0: after overhead and seek at 1.75, not before the bus has
    // brought enough at 4.45 (four of them, less three slots), so from 10 to 10.4 ms.
    assert_eq!(end(&mut drive, 0, write(5_000, 4)), 4_750);
    assert_eq!(end(&mut drive, 5, write(9_000, 4)), 10_400 + 4_000);
    // With two places it need not wait.
    let two = CACHED.replace("write_segments = 1", "write_segments = 2");
    let mut drive = Drive::new(drawing(&[DRIVE, &two].concat()));
    end(&mut drive, 0, write(5_000, 4));
    assert_eq!(end(&mut drive, 5, write(9_000, 4)), 5_000 + 4_750);
    assert!(end(&mut drive, 6, write(13_000, 4)) > 10_400);
}

#[test]
fn a_write_that_continues_the_dirty_run_needs_no_place() {
    let mut drive = Drive::new(drawing(&[DRIVE, CACHED].concat()));
    end(&mut drive, 0, write(5_000, 4));
    assert_eq!(end(&mut drive, 5, write(5_004, 4)), 5_000 + 4_750);
}

#[test]
fn a_read_waits_for_a_run_that_is_being_written_and_for_all_where_the_drive_says_so() {
    let after = |cache: &str| {
        let mut drive = Drive::new(drawing(&[DRIVE, cache].concat()));
        end(&mut drive, 0, write(5_000, 4));
        // Cylinder 45, angle 50: at 15 ms if the arm sets out at 5.5.
        end(&mut drive, 5, read(9_050, 1))
    };
    // Free at 10.4, there at 11.4; the sector passes from 15.0 to 15.1, its bus ends at 16.1.
    let waiting = after(CACHED);
    assert_eq!(waiting, 16_100);
    // An idle time longer than the gap: the heads are free at once, and 6.5 is late for angle 50.
    let idle = format!("{CACHED}destage_idle_ms = 100");
    assert_eq!(after(&idle), 16_100);
    let mut drive = Drive::new(drawing(&[DRIVE, &idle].concat()));
    end(&mut drive, 0, write(5_000, 4));
    // Angle 80: 8.0 to 8.1 without waiting, a turn later behind the write.
    assert_eq!(end(&mut drive, 5, read(9_080, 1)), 9_100);
    let before = format!("{idle}\ndestage_before_reads = true");
    let mut drive = Drive::new(drawing(&[DRIVE, &before].concat()));
    end(&mut drive, 0, write(5_000, 4));
    assert_eq!(end(&mut drive, 5, read(9_080, 1)), 19_100);
}

#[test]
fn dirty_sectors_are_read_from_the_cache_and_stay_in_it_where_the_drive_keeps_them() {
    let hit = |cache: &str, ms| {
        let mut drive = Drive::new(drawing(&[DRIVE, cache].concat()));
        end(&mut drive, 0, write(5_000, 4));
        end(&mut drive, ms, read(5_001, 2)) == ms * 1_000 + 2_250
    };
    assert!(hit(CACHED, 5) && !hit(CACHED, 500));
    let keeps = format!("{CACHED}keeps_written = true");
    assert!(hit(&keeps, 5) && hit(&keeps, 500));
}

#[test]
fn a_zero_latency_read_of_a_track_takes_a_revolution_from_wherever_it_begins() {
    let fast = DRIVE.replace("= 512_000", "= 1_000_000_000_000");
    let zero = drawing(&format!("zero_latency_reads = true\n{fast}"));
    let plain = drawing(&fast);
    let mut random = Random::new(5);
    for _ in 0..1_000 {
        let now = Nanos(random.below(50 * MS));
        let took = |drawing, sectors| {
            let mut drive = Drive::new(Arc::clone(drawing));
            drive.serve(now, read(0, sectors)).since(now).0
        };
        // The overhead, the rest of the sector under the head, a turn, and little bus.
        let whole = took(&zero, 100);
        let turn = 10 * MS + MS / 2;
        assert!((turn..=turn + 110_000).contains(&whole), "{whole} at {now}");
        assert!(took(&plain, 100) >= whole.saturating_sub(100_000));
        for sectors in [1, 3, 50, 99] {
            assert!(took(&zero, sectors) <= took(&plain, sectors));
        }
    }
    // The head comes at slot 4 of 2 to 6: 4, 5 and 6 first, then 2 and 3, until slot 4 begins.
    let mut drive = Drive::new(zero);
    let ended = drive.serve(Nanos(10 * MS + 400_000 - MS / 2), read(2, 5)).0;
    assert!((20_400_000..20_400_010).contains(&ended), "{ended}");
}

#[test]
fn an_overhead_depends_on_the_access_before() {
    let more = "
controller.read_miss_after_write_ms = 3.5
controller.write_after_write_ms = 2.75
controller.write_append_ms = 1.75
";
    let text = [DRIVE, more, CACHED].concat();
    let mut drive = Drive::new(drawing(&text));
    assert_eq!(end(&mut drive, 0, write(5_000, 1)), 1_750);
    assert_eq!(end(&mut drive, 100, write(7_000, 1)), 103_750);
    assert_eq!(end(&mut drive, 200, write(7_001, 1)), 202_750);
    // Angle 2, cylinder 0: the arm is there at 304.5 instead of 301.5, before 310.2 in any case.
    let after_write = end(&mut drive, 300, read(2, 1));
    assert_eq!(after_write, 300_000 + 10_300 + 1_000);
    // Angle 20: at 402.0 it is passed by 403.5 + 1, and not by 401.5.
    end(&mut drive, 400, write(9_000, 1));
    assert_eq!(end(&mut drive, 500, read(20, 1)), 500_000 + 12_100 + 1_000);
    assert_eq!(
        end(&mut drive, 600, read(9_020, 1)),
        600_000 + 2_100 + 1_000
    );
}

#[test]
fn settling_below_zero_shortens_a_seek_to_write_and_never_below_nothing() {
    let fast = DRIVE.replace("= 512_000", "= 1_000_000_000_000");
    let time = |settle: &str, slot: u64| {
        let text = format!("write_settle_ms = {settle}\n{fast}");
        end(&mut Drive::new(drawing(&text)), 0, write(5_000 + slot, 1))
    };
    // Overhead 0.75 and seek 1.0: slot 15 is passed at 1.75, reached at 1.75 - 0.4.
    assert_eq!([time("0", 15), time("-0.4", 15)], [11_600, 1_600]);
    assert_eq!([time("-0.4", 12), time("-9", 12)], [11_300, 1_300]);
    assert_eq!(time("-9", 7), 10_800, "no earlier than without a seek");
}

#[test]
fn a_slipped_sector_moves_those_after_it_into_the_spares_of_its_range() {
    let zone = "zone = [{ cylinders = 100, sectors_per_track = 100, track_skew_sectors = 0, \
                cylinder_skew_sectors = 0, spare_sectors = 2, spare_range_tracks = 1, \
                slipped_sectors = [3, 105, 110] }]";
    let plain = DRIVE.lines().find(|line| line.starts_with("zone")).unwrap();
    let text = DRIVE
        .replace(plain, zone)
        .replace("= 512_000", "= 1_000_000_000_000");
    let drawing = drawing(&text);
    assert_eq!(drawing.sectors(), 200 * 98);
    let mut drive = Drive::new(Arc::clone(&drawing));
    // (sector, slot): the first track holds 98, one slipped; the second 98, two slipped.
    let places = [
        (0, 0),
        (2, 2),
        (3, 4),
        (97, 98),
        (98, 0),
        (102, 4),
        (103, 6),
        (106, 9),
        (107, 11),
    ];
    for (at, (sector, slot)) in (1..).zip(places) {
        let ended = end(&mut drive, at * 100, read(sector, 1));
        let turn = if slot < 5 { 10_000 } else { 0 };
        assert_eq!(ended, at * 100_000 + turn + slot * 100 + 100, "{sector}");
    }
    // A run over the gap takes the gap's time too.
    let ended = end(&mut drive, 2_000, read(103, 5));
    assert_eq!(ended, 2_000_000 + 1_200);
}

#[test]
fn seeks_between_two_points_lie_on_the_line() {
    let points = "seek.points_ms = [[1, 1], [11, 2], [51, 4]]";
    let curve = DRIVE.lines().find(|line| line.starts_with("seek")).unwrap();
    let drawing = drawing(&DRIVE.replace(curve, points));
    for (cylinders, ms) in [
        (0, 0.0),
        (1, 1.0),
        (6, 1.5),
        (11, 2.0),
        (31, 3.0),
        (51, 4.0),
        (99, 4.0),
    ] {
        assert_eq!(drawing.seek(cylinders).0 as f64 / 1e6, ms, "{cylinders}");
    }
}

#[test]
fn reading_on_ends_where_the_drive_says() {
    let fast = DRIVE.replace("= 512_000", "= 1_000_000_000_000");
    let held = |until: &str, sector: u64| {
        let cache = "[cache]\nsegments = 1\nsegment_bytes = 204_800\nreadahead_bytes = 163_840\n";
        let mut drive = Drive::new(drawing(&[&fast, cache, until].concat()));
        end(&mut drive, 0, read(30, 10));
        // A second later it is in the cache or not.
        end(&mut drive, 1_000, read(sector, 1)) < 1_000_300
    };
    let ends = [
        ("", 360),
        ("readahead_until = 'segment'", 360),
        ("readahead_until = 'track'", 100),
        ("readahead_until = 'cylinder'", 200),
        ("readahead_until = 'next_track'", 100),
        ("readahead_needs_run = true", 40),
    ];
    for (until, first_missing) in ends {
        assert!(held(until, first_missing - 1), "{until}");
        assert!(!held(until, first_missing), "{until}");
    }
}

#[test]
fn a_drive_that_does_not_yield_reads_on_before_it_serves_another_request() {
    let fast = DRIVE.replace("= 512_000", "= 1_000_000_000_000");
    let ended = |yields: &str| {
        let cache = "[cache]\nsegments = 2\nsegment_bytes = 204_800\nreadahead_bytes = 51_200\n";
        let mut drive = Drive::new(drawing(&[&fast, cache, yields].concat()));
        end(&mut drive, 0, read(0, 1));
        end(&mut drive, 11, read(9_050, 1))
    };
    // The read ends at 10.1, reading on at 20.1.
    assert_eq!(ended(""), 15_100);
    assert_eq!(ended("readahead_yields = false"), 25_100);
}

#[test]
fn figures_that_contradict_each_other_are_refused_by_name_with_value_and_range() {
    let with = |from: &str, to: &str| {
        assert!(DRIVE.contains(from), "{from}");
        refused(&DRIVE.replace(from, to))
    };
    let curve = "seek.curve = [{ from_cylinders = 1, base_ms = 1 }]";
    let longer = with(curve, "seek.points_ms = [[1, 5], [50, 2]]");
    assert!(
        longer.contains("given that of a shorter one = "),
        "{longer}"
    );
    assert!(longer.contains("must lie from 4."), "{longer}");
    let twice = with(curve, "seek.points_ms = [[9, 1], [9, 2]]");
    assert_eq!(
        twice,
        "seek.points_ms, distance = 9: must lie from 10 to 99"
    );
    let both = with(curve, &format!("{curve}\nseek.points_ms = [[1, 1]]"));
    assert!(both.contains("points_ms"), "{both}");
    let zones = "zone = [{ cylinders = 100, sectors_per_track = 100, track_skew_sectors = 0, \
                 cylinder_skew_sectors = 0 }]";
    let second = "{ first_cylinder = 60, cylinders = 9, sectors_per_track = 9 }]";
    let overlap = with(zones, &zones.replace("}]", &format!("}}, {second}")));
    assert_eq!(
        overlap,
        "zone.first_cylinder, after the zones before = 60: must lie from 100 to 2000000"
    );
    let spares = |more: &str| with(zones, &zones.replace(" }]", &format!(", {more} }}]")));
    assert_eq!(
        spares("spare_range_tracks = 2, spare_sectors = 200"),
        "zone.spare_sectors = 200: must lie from 0 to 199"
    );
    assert_eq!(
        spares("spare_range_tracks = 2, spare_sectors = 1, slipped_sectors = [4, 9]"),
        "zone.slipped_sectors in one range of spare_sectors = 2: must lie from 0 to 1"
    );
    assert_eq!(
        spares("spare_sectors = 2, slipped_sectors = [9, 4]"),
        "zone.slipped_sectors, in increasing order = 4: must lie from 10 to 19999"
    );
    assert!(spares("spare_range_tracks = 0").contains("must lie from 1"));
    let more = CACHED.replace("write_segments = 1", "write_segments = 5");
    assert_eq!(
        refused(&[DRIVE, &more].concat()),
        "cache.write_segments = 5: must lie from 0 to 4"
    );
    let none = CACHED.replace("write_segments = 1", "keeps_written = true");
    assert!(refused(&[DRIVE, &none].concat()).contains("need cache.write_segments"));
    let settle = refused(&format!("write_settle_ms = -5000\n{DRIVE}"));
    assert_eq!(
        settle,
        "write_settle_ms = -5000: must lie from -4000 to 4000"
    );
}

#[test]
fn any_order_of_accesses_at_any_time_ends_after_it_began() {
    let zone = "zone = [{ cylinders = 100, sectors_per_track = 100, spare_sectors = 9, \
                slipped_sectors = [7, 8, 9, 5_000] }]";
    let plain = DRIVE.lines().find(|line| line.starts_with("zone")).unwrap();
    for more in [
        "destage_before_reads = true\nkeeps_written = true",
        "destage_idle_ms = 30\nreadahead_bytes = 5_120",
        "readahead_bytes = 10_240\nreadahead_until = 'cylinder'\nreadahead_yields = false",
    ] {
        let cache = CACHED.replace("write_segments = 1", "write_segments = 3");
        let text = [&DRIVE.replace(plain, zone), &cache, more].concat();
        let drawing = drawing(&format!(
            "zero_latency_reads = true\nwrite_settle_ms = -0.3\n{text}"
        ));
        let mut drive = Drive::new(Arc::clone(&drawing));
        let mut random = Random::new(9);
        let mut now = Nanos(0);
        for at in 0..20_000 {
            let access = Access {
                lbn: random.below(drawing.sectors() / 50),
                sectors: random.below(40),
                is_write: random.chance(400),
            };
            let ended = drive.serve(now, access);
            let longest = Nanos(now.0 + 400 * MS);
            assert!((now..longest).contains(&ended), "access {at}: {access:?}");
            now = Nanos(ended.0 + random.below(40 * MS));
        }
    }
}
