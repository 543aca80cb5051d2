//! Announced reads: `forerun ctl MOUNT hint` has them read ahead, and refuses bad lists.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt, symlink};
use std::process::{Command, Stdio};

use rustix::fs::{Advice, fadvise};
use serde_json::Value;
use snapbox::cmd::cargo_bin;

use super::silent::{Silent, apart};
use super::{Mounted, bytes, eventually, folder, forerun};

const PIECE: usize = 64 << 10;
const PIECES: usize = 512;

/// How many of them are read: few, so that they are no pattern.
const READS: usize = 96;

/// Each read takes a switch of this disk, and nothing else does.
const SLOW: [&str; 2] = ["--emulate", "switching=3ms,rate=10GB/s"];

fn ctl(mounted: &Mounted, words: &[&str]) -> (i32, String) {
    let socket = mounted.folder.path().join("control");
    let words = words.iter().map(OsStr::new);
    let arguments: Vec<&OsStr> = ["ctl".as_ref(), socket.as_os_str()]
        .into_iter()
        .chain(words)
        .collect();
    forerun(&arguments)
}

pub(super) fn stats(mounted: &Mounted) -> Value {
    let (code, said) = ctl(mounted, &["stats"]);
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&said).unwrap()
}

pub(super) fn count(report: &Value, name: &str) -> u64 {
    report["counters"][name].as_u64().unwrap()
}

/// Announces this list; the answer.
pub(super) fn hint(mounted: &Mounted, list: &str) -> Value {
    let path = mounted.folder.path().join("list");
    fs::write(&path, list).unwrap();
    let (code, said) = ctl(mounted, &["hint", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&said).unwrap()
}

/// A mount of a file `a` of so many pieces, with a control socket; none if this machine cannot.
fn mounted(flags: &[&str]) -> Option<Mounted> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(PIECES * PIECE, 1)).unwrap();
    let socket = folder.path().join("control");
    let control = ["--control", socket.to_str().unwrap()];
    Mounted::of(folder, &[flags, &control].concat())
}

/// Where pieces begin, in an order that nothing can guess: no two of them are neighbours, whose
/// bytes would be a run, and a run is read ahead by what a switch costs: here half of the file.
fn order() -> Vec<usize> {
    let mut order: Vec<usize> = (0..PIECES).step_by(2).map(|at| at * PIECE).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut order);
    order.truncate(READS);
    order
}

/// Reads `a` in this order, with the kernel reading nothing else.
fn read(mounted: &Mounted, order: &[usize]) {
    let file = File::open(mounted.point("a")).unwrap();
    fadvise(&file, 0, None, Advice::Random).unwrap();
    let whole = bytes(PIECES * PIECE, 1);
    let mut piece = vec![0; PIECE];
    for at in order {
        file.read_exact_at(&mut piece, *at as u64).unwrap();
        assert!(piece == whole[*at..*at + PIECE], "at {at}");
    }
}

#[test]
fn announced_ranges_are_there_or_on_their_way_when_they_are_read() {
    let order = order();
    let Some(told) = mounted(&SLOW) else {
        return;
    };
    let list = order.iter().fold(String::new(), |mut list, at| {
        writeln!(list, "a {at} {PIECE}").unwrap();
        list
    });
    let answer = hint(&told, &list);
    assert_eq!(answer["taken"], READS, "{answer}");
    read(&told, &order);
    let told_report = stats(&told);
    let untold = mounted(&SLOW).unwrap();
    read(&untold, &order);
    let untold_report = stats(&untold);
    let of = |report: &Value| (count(report, "misses"), count(report, "reads"));
    let ((missed, reads), (untold_missed, untold_reads)) = (of(&told_report), of(&untold_report));
    println!("of {reads} blocks: {missed} missed, untold {untold_missed}");
    assert_eq!(reads, untold_reads);
    assert!(untold_missed * 10 >= untold_reads * 9, "{untold_report}");
    assert!(missed * 10 <= reads, "{told_report}");
    assert_eq!(count(&told_report, "hints_read"), READS as u64);
    assert_eq!(count(&untold_report, "hints"), 0);
    // The file is not needed any more.
    let descriptors = format!("/proc/{}/fd", told.daemon.id());
    eventually("the daemon closes the file", || {
        let open = fs::read_dir(&descriptors).unwrap().flatten();
        let mut open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        !open.any(|path| path == told.source("a"))
    });
}

#[test]
fn whole_files_are_announced_by_paths_below_the_mount_on_standard_input() {
    let Some(mounted) = mounted(&SLOW) else {
        return;
    };
    fs::create_dir(mounted.source("in")).unwrap();
    fs::write(mounted.source("in/my file"), bytes(PIECE, 2)).unwrap();
    let list = format!("{}\nin/my file\t\n", mounted.point("a").display());
    let mut client = Command::new(cargo_bin!("forerun"))
        .args([
            "ctl".as_ref(),
            mounted.folder.path().join("control").as_os_str(),
        ])
        .args(["hint", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    input.write_all(list.as_bytes()).unwrap();
    drop(input);
    let output = client.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["taken"], 2, "{answer}");
    assert_eq!(
        fs::read(mounted.point("in/my file")).unwrap(),
        bytes(PIECE, 2)
    );
    assert_eq!(
        fs::read(mounted.point("a")).unwrap(),
        bytes(PIECES * PIECE, 1)
    );
    assert!(count(&stats(&mounted), "hints_read") > 0);
}

#[test]
fn ranges_that_cannot_be_read_are_refused_by_reason_and_the_others_taken() {
    let Some(mounted) = mounted(&["--passthrough", "never"]) else {
        return;
    };
    fs::create_dir(mounted.source("folder")).unwrap();
    let secret = mounted.folder.path().join("secret");
    fs::write(&secret, "outside").unwrap();
    symlink(&secret, mounted.source("out")).unwrap();
    symlink("..", mounted.source("up")).unwrap();
    let list = "missing\nmissing 0 5\na 0 5\nfolder\nout\nup/secret\na 1GiB 1\n";
    let answer = hint(&mounted, list);
    assert_eq!(answer["taken"], 1, "{answer}");
    let refused = |part: &str| {
        let all = answer["refused"].as_array().unwrap().iter();
        let mut of = all.filter(|refused| refused["why"].as_str().unwrap().contains(part));
        of.next().map(|refused| {
            (
                refused["ranges"].as_u64().unwrap(),
                refused["first"].clone(),
            )
        })
    };
    assert_eq!(
        refused("no such file"),
        Some((2, "missing".into())),
        "{answer}"
    );
    assert_eq!(
        refused("no regular file"),
        Some((2, "folder".into())),
        "{answer}"
    );
    assert_eq!(
        refused("Not a directory"),
        Some((1, "up/secret".into())),
        "{answer}"
    );
    assert_eq!(refused("behind the end"), Some((1, "a".into())), "{answer}");
    // If not one is taken, that is a failure.
    let list = mounted.folder.path().join("list");
    fs::write(&list, "missing\n").unwrap();
    let (code, said) = ctl(&mounted, &["hint", list.to_str().unwrap()]);
    assert!(
        code == 1 && said.contains("nothing was announced: missing: "),
        "{said}"
    );
}

#[test]
fn a_line_that_is_no_range_is_named_and_nothing_is_announced() {
    let Some(mounted) = mounted(&[]) else {
        return;
    };
    let list = mounted.folder.path().join("list");
    for (line, part) in [
        ("a 5", "expected PATH, or PATH OFFSET LENGTH"),
        ("a 0 0", "LENGTH must be at least 1"),
        ("/etc/passwd", "not below"),
        ("../secret", "has .. in it"),
    ] {
        fs::write(&list, format!("a 0 4096\n\n{line}\n")).unwrap();
        let (code, said) = ctl(&mounted, &["hint", list.to_str().unwrap()]);
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains("list: line 3: ") && said.contains(part),
            "{said}"
        );
    }
    assert_eq!(count(&stats(&mounted), "hints"), 0);
    let (code, said) = ctl(&mounted, &["hint", "/no/such/list"]);
    assert!(
        code == 2 && said.contains("/no/such/list: no such file"),
        "{said}"
    );
}

#[test]
fn a_preset_that_follows_no_hints_says_which_do() {
    let Some(mounted) = mounted(&["--preset", "linux-2.6.24"]) else {
        return;
    };
    let list = mounted.folder.path().join("list");
    fs::write(&list, "a\n").unwrap();
    let (code, said) = ctl(&mounted, &["hint", list.to_str().unwrap()]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("linux-2.6.24 follows no announced reads") && said.contains("--preset mount"),
        "{said}"
    );
}

#[test]
fn more_than_there_is_room_for_is_refused_in_order_and_files_are_bounded() {
    let folder = folder();
    let socket = folder.path().join("control");
    let many = 1100;
    for at in 0..many {
        fs::write(folder.path().join(format!("source/{at}")), "x").unwrap();
    }
    File::create(folder.path().join("source/big"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let Some(mounted) = Mounted::of(folder, &["--control", socket.to_str().unwrap()]) else {
        return;
    };
    // A terabyte in pieces of a block, as the first range is, is more than can be kept in order.
    let answer = hint(&mounted, "1\nbig\n2\n");
    assert_eq!(
        (&answer["taken"], &answer["is_full"]),
        (&1.into(), &true.into()),
        "{answer}"
    );
    assert_eq!(answer["refused"][0]["ranges"], 2);
    let list = (0..many).fold(String::new(), |list, at| list + &format!("{at}\n"));
    let answer = hint(&mounted, &list);
    let refused = &answer["refused"][0];
    assert_eq!(answer["taken"], 1023, "with the large one 1024: {answer}");
    assert!(
        refused["why"]
            .as_str()
            .unwrap()
            .contains("more than 1024 files")
    );
    assert_eq!(
        (&refused["first"], &refused["ranges"]),
        (&"1023".into(), &77.into())
    );
    let descriptors = format!("/proc/{}/fd", mounted.daemon.id());
    assert!(fs::read_dir(descriptors).unwrap().count() < 1024 + 200);
}

#[test]
fn a_silent_file_system_keeps_other_announcements_waiting_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let control = ["--control", socket.to_str().unwrap()];
    let Some(silent) = Silent::new(&[&control[..], &["--passthrough", "never"]].concat()) else {
        return;
    };
    let list = folder.path().join("list");
    fs::write(&list, "slow/1\n").unwrap();
    silent.orders().silent = true;
    let announce = || {
        let (socket, list) = (socket.clone(), list.clone());
        apart(move || {
            let words: [&OsStr; 4] = [
                "ctl".as_ref(),
                socket.as_ref(),
                "hint".as_ref(),
                list.as_ref(),
            ];
            forerun(&words)
        })
    };
    // One is at it, four wait for it, the others are refused; a fourth if it comes before the first
    // was begun with.
    let clients: Vec<_> = (0..8).map(|_| announce()).collect();
    silent.good_is_read();
    let (code, said) = forerun(&["ctl".as_ref(), socket.as_ref(), "stats".as_ref()]);
    assert_eq!(code, 0, "{said}");
    let said: Vec<_> = clients
        .iter()
        .map(|client| client.recv().unwrap())
        .collect();
    let refused = said
        .iter()
        .filter(|(_, said)| said.contains("earlier announcements wait"));
    let refused = refused.count();
    assert!((3..=4).contains(&refused), "{said:?}");
    let waited = said
        .iter()
        .filter(|(_, said)| said.contains("no answer within 30 s"));
    assert_eq!(waited.count() + refused, 8, "{said:?}");
    assert!(said.iter().all(|(code, _)| *code == 1), "{said:?}");
    // Their clients have given up, and may announce the same again.
    silent.orders().held_go();
    fs::write(&list, "good 0 4096\n").unwrap();
    eventually("the silent ones are over", || {
        announce().recv().unwrap().0 == 0
    });
    let (_, said) = forerun(&["ctl".as_ref(), socket.as_ref(), "stats".as_ref()]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(count(&report, "hints"), 1, "{report}");
}
