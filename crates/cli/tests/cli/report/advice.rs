//! `forerun advise`: its answer, its refusals, and its page.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use snapbox::cmd::cargo_bin;

use super::page;
use crate::{Folder, forerun, output_of};

#[test]
fn a_trace_whose_name_is_no_text_is_refused_for_that_and_one_without_lengths_has_none() {
    let folder = Folder::new();
    let latin = folder.path("").join(OsStr::from_bytes(b"f\xfcr"));
    fs::write(&latin, "1\n2\n3\n").unwrap();
    let advise = |path: &Path| {
        let mut command = Command::new(cargo_bin!("forerun"));
        command.arg("advise").arg(path).output().unwrap()
    };
    let output = advise(&latin);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("its name is not UTF-8"), "{said}");
    fs::rename(latin, folder.path("plain")).unwrap();
    let said = String::from_utf8(advise(&folder.path("plain")).stdout).unwrap();
    assert!(said.starts_with("trace: 3 reads from 1 files, "), "{said}");
}

#[test]
fn where_reading_ahead_gains_nothing_none_is_advised_and_no_mount() {
    let folder = Folder::new();
    let mut trace = "time,block,bytes\n".to_owned();
    let mut block = 1u64;
    for at in 0..300 {
        // Places that follow no other, far enough apart for no window to reach the next.
        block = (block * 48_271) % 2_147_483_647;
        let line = format!("{:.3},{},4096\n", f64::from(at) * 0.02, block % 1_000_000);
        trace += &line;
    }
    let trace = folder.file("random.csv", trace.as_bytes());
    let said = output_of(&format!("advise {trace} --device hdd --memory 16MiB"));
    let preset = "preset and memory: none with 1 MiB: reading ahead does not help this load; as good with it: linux-2.6.24";
    assert!(said.contains(preset), "{said}");
    assert!(
        !said.contains("mount --preset") && !said.contains("a mount"),
        "{said}"
    );
}

/// The answer that a page of these rows names.
fn answer_of(page: &str) -> (String, String) {
    let (_, answer) = page.split_once("<p class=\"answer\"><b>").unwrap();
    let (preset, answer) = answer.split_once("</b> with <b>").unwrap();
    let (memory, _) = answer.split_once("</b>").unwrap();
    (preset.to_owned(), memory.to_owned())
}

#[test]
fn the_page_of_an_advice_has_its_answer_and_the_default_of_linux_is_among_its_depths() {
    let folder = Folder::new();
    let video = folder.name("video.csv");
    output_of(&format!("trace sample video -o {video}"));
    let scattered = (0..300u64).map(|at| format!("{},{},4096\n", at, at * 7_919 % 100_003));
    let scattered = folder.file(
        "scattered.csv",
        format!("time,block,bytes\n{}", scattered.collect::<String>()).as_bytes(),
    );
    for (trace, device, preset, best) in [
        // A constant depth is better with the advised memory, which says so.
        (&video, "hdd", "forerun", "256 KiB"),
        (&video, "ssd", "linux-2.6.24", "128 KiB"),
        (&scattered, "hdd", "none", ""),
    ] {
        let words = format!("advise {trace} --device {device} --memory 32MiB --format json");
        let rows = output_of(&words);
        let advice: Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
        let lines = advice["advice"].to_string();
        assert_eq!(advice["advised_preset"], preset, "{lines}");
        let page = page(&folder, &folder.file("rows", rows.as_bytes()), "");
        let (answer, memory) = answer_of(&page);
        let mib = advice["advised_memory_bytes"].as_u64().unwrap() >> 20;
        assert_eq!(
            (answer.as_str(), memory),
            (preset, format!("{mib} MiB")),
            "{lines}"
        );
        assert_eq!(
            page.matches("constant").count(),
            1,
            "the advice alone: {lines}"
        );
        assert!(
            lines.contains(&format!("of 6 constant ones {best}")),
            "{lines}"
        );
        let chosen = rows.lines().filter(|row| !row.contains("constant_depth"));
        let chosen = format!("chosen from {} simulations", chosen.count() - 1);
        assert!(lines.contains(&chosen), "{chosen}: {lines}");
    }
}

#[test]
fn advice_names_a_preset_a_memory_and_the_kernel_beside_it_and_a_report_shows_it() {
    let folder = Folder::new();
    let trace = folder.name("video.csv");
    output_of(&format!("trace sample video -o {trace}"));
    let said = output_of(&format!(
        "advise {trace} --device seagate_146gb_10k --memory 16MiB"
    ));
    let lines: Vec<&str> = said.lines().collect();
    assert!((9..=12).contains(&lines.len()), "{said}");
    for begin in [
        "trace: 3072 reads of 402.7 MB from 24 files in ",
        "device: seagate_146gb_10k",
        "preset and memory: ",
        "command: forerun mount --preset ",
        "depth: ",
        "gives: p99 ",
        "kernel readahead of 128 KiB in the same memory: ",
        "twice the memory: ",
        "half the memory: ",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(begin)),
            "{begin}: {said}"
        );
    }
    let text = output_of(&format!(
        "advise {trace} --device seagate_146gb_10k --memory 16MiB --format json"
    ));
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let advised = last["advised_preset"].as_str().unwrap();
    assert!(
        said.contains(&format!("preset and memory: {advised} with ")),
        "{said}"
    );
    let rows = folder.file("advice", text.as_bytes());
    let writes = folder.file("writes", b"0,0,8192,w,0.5\n");
    for limit in [9_u64, 17, 42] {
        let said = output_of(&format!("advise {trace} --memory {limit}MiB"));
        let (_, mount) = said.split_once(" --memory ").unwrap();
        let (mount, _) = mount.split_once("MiB SOURCE").unwrap();
        assert!(mount.parse::<u64>().unwrap() <= limit, "{limit}: {said}");
    }
    let page = page(&folder, &rows, "");
    assert!(page.contains("<h2>Advice</h2>") && page.contains("preset and memory: "));
    for (arguments, why) in [
        (format!("advise {trace} --device nothing"), "nothing"),
        (
            format!("advise {trace} --memory 1KiB"),
            "must be at least 9MiB",
        ),
        (
            format!("advise {trace} --memory 8MiB"),
            "must be at least 9MiB",
        ),
        (
            format!("advise {writes}"),
            "only writes (1), which --writes",
        ),
        ("advise -".to_owned(), "-: no regular file"),
        ("advise /dev/stdin".to_owned(), "no regular file"),
        (format!("advise {} ", folder.name("none")), "no such file"),
    ] {
        let ended = forerun(&arguments).code(2);
        let stderr = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
        assert!(stderr.contains(why), "{arguments}: {stderr}");
    }
}
