//! `mount --record`: reads through a real mount as a trace that other commands read, and its bound.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use rustix::process::Signal;
use serde_json::Value;

use super::{Mounted, bytes, folder, forerun};

/// A mount of two files, one with a comma in its name, that records its reads.
fn recorded(more: &[&str]) -> Option<(Mounted, PathBuf)> {
    let folder = folder();
    for (name, seed) in [("a", 1), ("b,c", 2)] {
        fs::write(
            folder.path().join("source").join(name),
            bytes(4 << 20, seed),
        )
        .unwrap();
    }
    let record = folder.path().join("reads.csv");
    let name = record.to_str().unwrap().to_owned();
    let control = folder.path().join("control").display().to_string();
    let own = [
        "--record",
        &name,
        "--kernel-readahead",
        "4KiB",
        "--control",
        &control,
    ];
    let flags = [&own[..], more].concat();
    Some((Mounted::of(folder, &flags)?, record))
}

/// Reads of 64 KiB from both files by turns, at places that the kernel has not.
fn read(mounted: &Mounted, count: u64) {
    let files = ["a", "b,c"].map(|name| File::open(mounted.point(name)).unwrap());
    let mut buffer = vec![0; 64 << 10];
    for at in 0..count {
        let file = &files[at as usize % 2];
        file.read_exact_at(&mut buffer, at / 2 * (128 << 10))
            .unwrap();
    }
}

fn lines(record: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(record).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().map(cells).collect()
}

#[test]
fn a_record_has_each_read_with_its_file_in_order_and_advise_reads_it() {
    let Some((mut mounted, record)) = recorded(&[]) else {
        return;
    };
    read(&mounted, 40);
    let control = mounted.folder.path().join("control");
    let (_, said) = forerun(&["ctl".as_ref(), control.as_ref(), "stats".as_ref()]);
    let stats: Value = serde_json::from_str(&said).unwrap();
    assert!(stats["record"]["reads"].as_u64() >= Some(40), "{said}");
    assert_eq!(stats["record"]["error"], Value::Null);
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    let lines = lines(&record);
    assert_eq!(
        lines[0].join(","),
        "time_us,thread,device,offset_bytes,bytes"
    );
    let number = |line: &[String], at: usize| line[at].parse::<u64>().unwrap();
    let times: Vec<u64> = lines[1..].iter().map(|line| number(line, 0)).collect();
    assert!(times.is_sorted(), "{times:?}");
    // Each place is asked for, in one request or in several.
    for at in 0..40u64 {
        let (name, begin) = (["a", "b%2Cc"][at as usize % 2], at / 2 * (128 << 10));
        let mut asked: Vec<(u64, u64)> = lines[1..]
            .iter()
            .filter(|line| line[2] == name)
            .map(|line| (number(line, 3), number(line, 3) + number(line, 4)))
            .collect();
        asked.sort_unstable();
        let mut end = begin;
        for (from, to) in asked {
            if from <= end {
                end = end.max(to);
            }
        }
        assert!(end >= begin + (64 << 10), "{name} at {begin}: {lines:?}");
    }
    assert!(
        lines[1..]
            .iter()
            .all(|line| line.len() == 5 && number(line, 1) > 0)
    );
    let (code, said) = forerun(&[
        "trace".as_ref(),
        "info".as_ref(),
        record.as_ref(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    let info: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(
        (code, &info["devices"], &info["format"]),
        (0, &2.into(), &"csv".into()),
        "{said}"
    );
    let (code, said) = forerun(&[
        "advise".as_ref(),
        record.as_ref(),
        "--memory".as_ref(),
        "16MiB".as_ref(),
    ]);
    assert!(
        code == 0 && said.contains("from 2 files in ") && said.contains("preset and memory: "),
        "{said}"
    );
}

#[test]
fn a_record_ends_at_its_bound_with_a_whole_line_and_the_mount_goes_on() {
    let Some((mut mounted, record)) = recorded(&["--record-max", "64KiB"]) else {
        return;
    };
    for _ in 0..40 {
        read(&mounted, 60);
        // The kernel has these pages by then, and would give them without a request.
        for name in ["a", "b,c"] {
            let file = File::open(mounted.point(name)).unwrap();
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        }
    }
    assert_eq!(fs::read(mounted.point("a")).unwrap(), bytes(4 << 20, 1));
    mounted.signal(Signal::TERM);
    assert!(mounted.ended().success());
    let size = fs::metadata(&record).unwrap().len();
    assert!((60_000..=65_536).contains(&size), "{size}");
    assert!(lines(&record).iter().all(|line| line.len() == 5));
}

#[test]
fn a_record_that_cannot_be_is_refused_before_anything_is_mounted() {
    let Some((mounted, record)) = recorded(&[]) else {
        return;
    };
    let (source, point) = (mounted.source(""), mounted.folder.path().join("other"));
    let there = record.to_str().unwrap();
    let inside = source.join("reads.csv").display().to_string();
    fs::create_dir(&point).unwrap();
    for (flags, why) in [
        (
            &["--record", "/nowhere/at/all/reads.csv"][..],
            "no such directory",
        ),
        (
            &["--record", "r", "--passthrough", "always"],
            "--passthrough always with --record",
        ),
        (
            &["--record", "r", "--record-max", "1KiB"],
            "must be at least 64KiB",
        ),
        (&["--record-max", "1MiB"], "--record"),
        (&["--record", there][..], "exists already"),
        (&["--record", &inside], "lies in SOURCE or below MOUNTPOINT"),
    ] {
        let flags = flags.iter().map(std::ffi::OsStr::new);
        let words = ["mount", "--foreground"]
            .map(std::ffi::OsStr::new)
            .into_iter();
        let words: Vec<_> = words
            .chain(flags)
            .chain([source.as_os_str(), point.as_os_str()])
            .collect();
        let (code, said) = forerun(&words);
        assert!(code == 2 && said.contains(why), "{code}: {said}");
    }
}
