//! Files that the kernel reads from the source by itself: which they are, and that no open fails
//! because of the mode another one has. Their bytes are looked at in `passed_bytes.rs`.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use forerun_io::page_cache::pages_cached;
use rustix::fs::{Advice, OFlags, fadvise};
use serde_json::Value;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::silent::Silent;
use super::{Mounted, bytes, can_mount, eventually, folder, forerun, run, skipped};

/// Not tiny.
pub(crate) const BYTES: usize = 3 << 20;

fn control(folder: &TempDir) -> String {
    folder.path().join("control").to_str().unwrap().to_owned()
}

/// A mount with a file `a`; none if this machine cannot.
pub(crate) fn mounted(flags: &[&str]) -> Option<Mounted> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(BYTES, 1)).unwrap();
    let control = control(&folder);
    Mounted::of(folder, &[&["--control", &control], flags].concat())
}

/// The same, and the kernel can do it.
pub(crate) fn passing(mode: &str) -> Option<Mounted> {
    let mounted = mounted(&["--passthrough", mode])?;
    warm(&mounted.source("a"));
    drop(File::open(mounted.point("a")).unwrap());
    released(&mounted);
    if passthrough(&mounted)["possible"] == false {
        skipped("needs FUSE passthrough: Linux 6.9 and CAP_SYS_ADMIN");
        return None;
    }
    Some(mounted)
}

fn stats(mounted: &Mounted) -> Value {
    let socket = control(&mounted.folder);
    let (code, said) = forerun(&["ctl".as_ref(), socket.as_ref(), "stats".as_ref()]);
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&said).unwrap()
}

fn passthrough(mounted: &Mounted) -> Value {
    stats(mounted)["passthrough"].clone()
}

/// Waits until no file is open: the kernel tells of it after `close` has returned.
fn released(mounted: &Mounted) {
    eventually("every release", || {
        stats(mounted)["open_files"] == Value::Array(Vec::new())
    });
}

pub(crate) fn opens(mounted: &Mounted) -> u64 {
    passthrough(mounted)["opens"].as_u64().unwrap()
}

/// Blocks that the engine was asked for.
fn asked(mounted: &Mounted) -> u64 {
    stats(mounted)["counters"]["reads"].as_u64().unwrap()
}

/// The source's page cache has all of this file.
pub(crate) fn warm(source: &Path) {
    std::io::copy(&mut File::open(source).unwrap(), &mut std::io::sink()).unwrap();
}

/// It has nothing of it, as far as the kernel can be made to; whether it has not.
pub(crate) fn cool(source: &Path) -> bool {
    let file = File::open(source).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    pages_cached(file.as_fd(), 0, u64::MAX >> 1) == Some(0)
}

/// Whether an open of this file is in passthrough, and that it reads right.
fn is_passed(mounted: &Mounted, name: &str) -> bool {
    let before = opens(mounted);
    let content = fs::read(mounted.point(name)).unwrap();
    assert!(content == fs::read(mounted.source(name)).unwrap(), "{name}");
    opens(mounted) > before
}

#[test]
fn of_a_warm_a_cold_and_a_tiny_file_the_warm_one_is_passed_through() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    fs::write(mounted.source("tiny"), bytes(5000, 2)).unwrap();
    fs::write(mounted.source("cold"), bytes(BYTES, 3)).unwrap();
    let asked_before = asked(&mounted);
    assert!(is_passed(&mounted, "a"));
    assert_eq!(
        asked(&mounted),
        asked_before,
        "the engine had no part in it"
    );
    assert!(!is_passed(&mounted, "tiny"));
    if !cool(&mounted.source("cold")) {
        return skipped("a page cache that cannot be emptied");
    }
    let before = opens(&mounted);
    assert!(fs::read(mounted.point("cold")).unwrap() == bytes(BYTES, 3));
    assert_eq!(opens(&mounted), before);
    // All but the last pages.
    let half = File::open(mounted.source("cold")).unwrap();
    half.read_exact_at(&mut vec![0; BYTES / 2], 0).unwrap();
    assert!(cool(&mounted.source("cold")) && opens(&mounted) == before);
    warm(&mounted.source("cold"));
    // An open beside one in another mode follows that.
    released(&mounted);
    assert!(is_passed(&mounted, "cold"), "it is warm now");
}

#[test]
fn always_is_every_file_and_never_is_none() {
    let Some(always) = passing("always") else {
        return;
    };
    fs::write(always.source("tiny"), "tiny").unwrap();
    fs::write(always.source("empty"), "").unwrap();
    cool(&always.source("a"));
    for name in ["a", "tiny", "empty"] {
        assert!(is_passed(&always, name), "{name}");
    }
    assert_eq!(asked(&always), 0);
    let never = mounted(&["--passthrough", "never"]).unwrap();
    warm(&never.source("a"));
    assert!(!is_passed(&never, "a"));
    assert!(asked(&never) as usize >= BYTES / 4096);
}

#[test]
fn a_mode_there_is_not_is_refused_with_those_there_are() {
    let (code, said) = forerun(&["mount", "--passthrough", "some", "a", "b"].map(AsRef::as_ref));
    assert_eq!(code, 2, "{said}");
    for word in ["some", "--passthrough", "auto", "always", "never"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn an_emulated_device_and_an_unchanging_tree_have_none() {
    let emulated = ["--emulate", "switching=1ms,rate=1GB/s"];
    for flags in [&emulated[..], &["--unchanging", "--passthrough", "always"]] {
        let Some(mounted) = mounted(flags) else {
            return;
        };
        warm(&mounted.source("a"));
        assert!(!is_passed(&mounted, "a"), "{flags:?}");
        assert!(asked(&mounted) > 0);
    }
}

#[test]
fn what_is_passed_through_is_seen_in_top_and_in_the_report() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    let open = File::open(mounted.point("a")).unwrap();
    let report = stats(&mounted);
    assert_eq!(report["passthrough"]["mode"], "auto");
    assert_eq!(report["passthrough"]["open_files"], 1);
    assert_eq!(report["open_files"][0]["passthrough"], true);
    assert_eq!(report["open_files"][0]["file_bytes"], BYTES);
    let socket = control(&mounted.folder);
    let (_, said) = forerun(&["top".as_ref(), "--once".as_ref(), socket.as_ref()]);
    assert!(said.contains("in passthrough 1"), "{said}");
    let none = "the kernel reads all files by itself (passthrough): the engine has no device";
    assert!(said.contains(none), "{said}");
    drop(open);
    released(&mounted);
}

/// As many threads open each of these files: of more, one has it open at every moment, and its mode
/// never changes.
const FILES: usize = 4;
const THREADS: usize = 8;

/// Enough that opens meet in each pair of states.
const ROUNDS: usize = 2_000;

/// Not tiny, and soon read.
const SHORT: usize = 100_000;

#[test]
fn opens_in_both_modes_at_once_from_many_threads_never_fail_and_read_right() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    let content = bytes(SHORT, 1);
    for number in 0..FILES {
        fs::write(mounted.source(number.to_string()), &content).unwrap();
    }
    let all: Vec<_> = (0..FILES)
        .map(|number| mounted.source(number.to_string()))
        .collect();
    if !all.iter().all(|source| cool(source)) {
        return skipped("a page cache that cannot be emptied");
    }
    all.iter().for_each(|source| warm(source));
    let seed = fastrand::Rng::new().get_seed();
    println!("seed {seed}");
    let (before, ended) = (opens(&mounted), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (mounted, content) = (&mounted, &content);
        let read = |thread: usize| {
            let mut random = fastrand::Rng::with_seed(seed ^ thread as u64);
            let mut piece = vec![0; 5000];
            let point = mounted.point((thread % FILES).to_string());
            for round in 0..ROUNDS {
                let mut options = File::options();
                if random.u8(0..8) == 0 {
                    options.custom_flags(OFlags::DIRECT.bits().cast_signed());
                }
                let file = options.read(true).open(&point);
                let file = file.unwrap_or_else(|error| panic!("round {round}: {error}"));
                let at = random.usize(0..SHORT - piece.len());
                file.read_exact_at(&mut piece, at as u64).unwrap();
                assert!(piece == content[at..at + piece.len()], "round {round}");
            }
        };
        let readers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || read(thread)))
            .collect();
        // The last page alone comes and goes, within microseconds: two opens at once may ask for
        // different modes.
        let ended = &ended;
        for source in &all {
            scope.spawn(move || {
                let (file, mut last) = (File::open(source).unwrap(), [0; 1]);
                fadvise(&file, 0, None, Advice::Random).unwrap();
                while !ended.load(Ordering::Relaxed) {
                    let at = (SHORT - 1) as u64;
                    fadvise(&file, at / 4096 * 4096, None, Advice::DontNeed).unwrap();
                    std::thread::yield_now();
                    file.read_exact_at(&mut last, at).unwrap();
                    std::thread::yield_now();
                }
            });
        }
        let ends: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        // Before any of them panics here, or the others would never end.
        ended.store(true, Ordering::Relaxed);
        for end in ends {
            end.unwrap();
        }
    });
    let passed = opens(&mounted) - before;
    println!("{passed} of {} in passthrough", THREADS * ROUNDS);
    assert!(passed > 0 && passed < (THREADS * ROUNDS) as u64);
    released(&mounted);
}

#[test]
fn an_open_follows_the_mode_the_file_is_open_in() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    let (source, content) = (mounted.source("a"), bytes(BYTES, 1));
    let passed = File::open(mounted.point("a")).unwrap();
    if !cool(&source) {
        return skipped("a page cache that cannot be emptied");
    }
    // Cold now, and open in passthrough.
    assert!(is_passed(&mounted, "a"));
    let before = opens(&mounted);
    drop(passed);
    released(&mounted);
    cool(&source);
    let cached = File::open(mounted.point("a")).unwrap();
    assert_eq!(opens(&mounted), before);
    // Warm now, and open without.
    warm(&source);
    assert!(!is_passed(&mounted, "a"));
    drop(cached);
    let mut read = Vec::new();
    File::open(mounted.point("a"))
        .unwrap()
        .read_to_end(&mut read)
        .unwrap();
    assert!(read == content);
}

#[test]
fn warm_files_of_a_folder_are_not_opened_ahead_and_announced_ones_are_refused() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    for number in 0..40 {
        let path = mounted.source(format!("folder/{number}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes(400_000, number)).unwrap();
    }
    let names = fs::read_dir(mounted.point("folder")).unwrap();
    let names: Vec<_> = names.map(|name| name.unwrap().file_name()).collect();
    let before = opens(&mounted);
    for name in &names {
        let number = name.to_str().unwrap().parse().unwrap();
        let path = mounted.point("folder").join(name);
        assert!(fs::read(path).unwrap() == bytes(400_000, number));
    }
    assert_eq!(opens(&mounted) - before, 40);
    assert_eq!(stats(&mounted)["counters"]["files_ahead"], 0);
    let list = mounted.folder.path().join("list");
    fs::write(&list, "folder/1\nfolder/2\n").unwrap();
    let socket = control(&mounted.folder);
    let words = [
        "ctl".as_ref(),
        socket.as_ref(),
        "hint".as_ref(),
        list.as_os_str(),
    ];
    let (code, said) = forerun(&words);
    assert!(code == 1 && said.contains("passthrough"), "{said}");
    assert_eq!(stats(&mounted)["counters"]["hints"], 0);
}

#[test]
fn a_source_that_is_passed_through_itself_is_read_without() {
    let Some(below) = passing("always") else {
        return;
    };
    let above = folder();
    let source = above.path().join("source");
    fs::remove_dir(&source).unwrap();
    std::os::unix::fs::symlink(below.point(""), &source).unwrap();
    let control = control(&above);
    let flags = ["--control", &control, "--passthrough", "always"];
    let above = Mounted::of(above, &flags).unwrap();
    for _ in 0..3 {
        assert!(!is_passed(&above, "a"));
    }
    assert!(asked(&above) > 0);
    assert_eq!(
        passthrough(&above)["possible"],
        true,
        "other devices may have it"
    );
}

#[test]
fn a_server_that_does_not_answer_holds_up_no_other_file_in_passthrough_either() {
    let Some(silent) = Silent::new(&["--passthrough", "always"]) else {
        return;
    };
    silent.orders().no_reads_from = Some(0);
    let slow = silent.mounted.point("slow/1");
    let reader = super::silent::apart(move || fs::read(slow).is_err());
    eventually("a read that waits", || silent.held() > 0);
    silent.good_is_read();
    silent.cut_off();
    let failed = reader.recv_timeout(super::wait::PATIENCE);
    assert!(failed.expect("the read ends"));
}

/// Mounts and reads as root of a name space of its own, which has no right to administer the
/// system.
const WITHOUT_THE_RIGHT: &str = r#"
set -e
"$2" mount --passthrough always --memory 32MiB --control "$1/control" "$1/source" "$1/point"
cmp "$1/source/a" "$1/point/a"
"$2" ctl "$1/control" stats
"$2" umount "$1/point"
"#;

#[test]
fn without_the_right_to_it_files_are_read_and_nothing_is_said() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(BYTES, 1)).unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .args([WITHOUT_THE_RIGHT, "sh"])
        .arg(folder.path())
        .arg(cargo_bin!("forerun"))
        .env("FORERUN_RUNTIME_DIR", folder.path().join("run"))
        .output();
    let Ok(output) = output else {
        return skipped("no unshare");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare") || said.contains("cannot mount") {
        return skipped(said);
    }
    assert!(output.status.success() && said.is_empty(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["passthrough"]["possible"], false);
    assert_eq!(report["passthrough"]["opens"], 0);
}

#[test]
fn files_on_an_overlay_are_read_without() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let source = folder.path().join("source");
    for name in ["lower", "upper", "work"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("lower/a"), bytes(BYTES, 1)).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (lower, upper, work) = (at("lower"), at("upper"), at("work"));
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let words = ["-t", "overlay", "overlay", "-o", &options].map(std::ffi::OsStr::new);
    let output = run("mount", &[&words[..], &[source.as_ref()]].concat());
    if !output.status.success() {
        return skipped("no overlay");
    }
    let control = control(&folder);
    let flags = ["--control", &control, "--passthrough", "always"];
    let mounted = Mounted::of(folder, &flags).unwrap();
    let read = fs::read(mounted.point("a"));
    let passed = passthrough(&mounted);
    // Before anything is asserted: the overlay is gone when its folder is removed.
    drop(run("umount", &["-l".as_ref(), source.as_ref()]));
    assert!(read.unwrap() == bytes(BYTES, 1));
    assert_eq!(
        (&passed["opens"], &passed["possible"]),
        (&0.into(), &true.into())
    );
}
