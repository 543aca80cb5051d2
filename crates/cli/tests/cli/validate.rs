//! `forerun simulate --validate`: a trace whose times can be reckoned by hand, and bad input.

use snapbox::str;

use super::{Folder, forerun};

/// 100 Hz, 100 sectors of 0.1 ms on a track, no seek; a bus that takes no time.
const DISK: &str = "
kind = 'hdd'
rpm = 6000
tracks_per_cylinder = 1
head_switch_ms = 0
zone = [{ cylinders = 10, sectors_per_track = 100 }]
seek.curve = [{ from_cylinders = 1, base_ms = 0 }]
bus.read_bytes_per_second = 1_000_000_000_000
";

/// The drive takes 10 ms (sectors 0 to 99 from angle 0), and after a gap of 4.9 ms, at angle 49,
/// 0.2 ms for sector 50.
const TRACE: &[u8] = b"R Miss 0 100 10000 4900\nR Miss 50 1 3200 0\n";

#[test]
fn the_distance_is_that_of_the_times() {
    let folder = Folder::new();
    let disk = folder.file("disk.toml", DISK.as_bytes());
    let trace = folder.file("trace", TRACE);
    // 10 and 3.2 ms measured, 10 and 0.2 modelled: the root of 3 * 3 / 2.
    forerun(&format!(
        "simulate --validate {trace} --device-file {disk} --format csv"
    ))
    .success()
    .stdout_eq(str![[r#"
requests,count,measured_mean_ms,modelled_mean_ms,distance_ms
all,2,6.600,5.100,2.121
reads,2,6.600,5.100,2.121
writes,0,0.000,0.000,0.000

"#]]);
    forerun(&format!("simulate --validate {trace} --device-file {disk}"))
        .success()
        .stdout_eq(str![[r#"
requests     count   measured, ms   modelled, ms rms distance, ms
all              2          6.600          5.100            2.121
...
"#]]);
}

#[test]
fn in_an_open_loop_a_request_waits_for_those_before_it_on_its_own_drive() {
    let folder = Folder::new();
    let disk = folder.file("disk.toml", DISK.as_bytes());
    // 10 ms from angle 0. The second waits for the first and then for a revolution, the third has a drive of its own, the
    // last comes later.
    let trace = b"0.000 0 0 100 1\n0.000 0 100 100 1\n0.000 1 0 100 1\n40.000 1 0 100 1\n";
    let trace = folder.file("t", trace);
    let open = format!(
        "simulate --validate {trace} --device-file {disk} --trace-format disksim --format csv"
    );
    forerun(&format!("{open} --loop open"))
        .success()
        .stdout_eq(str![[r#"
requests,count,mean_ms,p50_ms,p90_ms,p95_ms,p99_ms,p100_ms
all,4,15,10,30,30,30,30
reads,4,15,10,30,30,30,30
writes,0,0,0,0,0,0,0

"#]]);
    let said = forerun(&format!("{open} --loop paced")).code(2);
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("--loop: must be open"), "{said}");
    let timeless = folder.file("timeless", b"1\n2\n");
    let said = forerun(&format!(
        "simulate --validate {timeless} --device-file {disk} --trace-format plain --loop open"
    ));
    let said = String::from_utf8_lossy(&said.code(2).get_output().stderr).into_owned();
    assert!(said.contains("request 1 has no time"), "{said}");
}

#[test]
fn a_request_past_the_end_a_trace_without_times_and_no_disk_are_refused() {
    let folder = Folder::new();
    let disk = folder.file("disk.toml", DISK.as_bytes());
    let far = folder.file("far", b"R Miss 999 2 1000 0\n");
    forerun(&format!("simulate --validate {far} --device-file {disk}"))
        .code(2)
        .stderr_eq(str![[r#"
forerun: [..]far: request 1 ends at byte 512512; the drive holds 512000

"#]]);
    let plain = folder.file("plain", b"1\n2\n");
    forerun(&format!(
        "simulate --validate {plain} --device-file {disk} --trace-format plain"
    ))
    .code(2)
    .stderr_eq(str![[r#"
forerun: [..]plain: request 1 has no measured response time; of the formats, disksim-validate has it

"#]]);
    let trace = folder.file("trace", TRACE);
    forerun(&format!("simulate --validate {trace} --device ssd"))
        .code(2)
        .stderr_eq(str![[r#"
forerun: --validate: ssd is not a disk of one model; give --device-file, or a built-in disk

"#]]);
    forerun(&format!(
        "simulate --validate {trace} --device-file {disk} --scheduler cscan"
    ))
    .code(2);
}

#[test]
fn a_drive_whose_figures_contradict_each_other_is_refused_by_name() {
    let folder = Folder::new();
    let trace = folder.file("trace", TRACE);
    let curve = "seek.curve = [{ from_cylinders = 1, base_ms = 0 }]";
    let text = DISK.replace(curve, "seek.points_ms = [[1, 5], [9, 2]]");
    let disk = folder.file("disk.toml", text.as_bytes());
    forerun(&format!("simulate --validate {trace} --device-file {disk}"))
        .code(2)
        .stderr_eq(str![[r#"
forerun: [..]disk.toml: seek time in ms of a distance, given that of a shorter one = 4.25: must lie from 4.4 to 4000

"#]]);
}
