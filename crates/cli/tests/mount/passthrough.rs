//! Files that the kernel reads from the source by itself: which they are, that their bytes are right
//! whatever happens to them, and that no open fails because of the mode another one has.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use forerun_io::page_cache::pages_cached;
use rustix::fs::{Advice, OFlags, fadvise};
use serde_json::Value;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::reading::reads_are_right;
use super::silent::Silent;
use super::{Mounted, bytes, can_mount, eventually, folder, forerun, run, skipped};

/// Not tiny.
const BYTES: usize = 3 << 20;

fn control(folder: &TempDir) -> String {
    folder.path().join("control").to_str().unwrap().to_owned()
}

/// A mount with a file `a`; none if this machine cannot.
fn mounted(flags: &[&str]) -> Option<Mounted> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(BYTES, 1)).unwrap();
    let control = control(&folder);
    Mounted::of(folder, &[&["--control", &control], flags].concat())
}

/// The same, and the kernel can do it.
fn passing(mode: &str) -> Option<Mounted> {
    let mounted = mounted(&["--passthrough", mode])?;
    warm(&mounted.source("a"));
    drop(File::open(mounted.point("a")).unwrap());
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

fn opens(mounted: &Mounted) -> u64 {
    passthrough(mounted)["opens"].as_u64().unwrap()
}

/// Blocks that the engine was asked for.
fn asked(mounted: &Mounted) -> u64 {
    stats(mounted)["counters"]["reads"].as_u64().unwrap()
}

/// The source's page cache has all of this file.
fn warm(source: &Path) {
    std::io::copy(&mut File::open(source).unwrap(), &mut std::io::sink()).unwrap();
}

/// It has nothing of it, as far as the kernel can be made to; whether it has not.
fn cool(source: &Path) -> bool {
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
    drop(open);
    eventually("the release", || passthrough(&mounted)["open_files"] == 0);
}

/// As many threads open each of these files: of more, one has it open at every moment, and its mode
/// never changes.
const FILES: usize = 4;
const THREADS: usize = 8;

/// Enough that opens meet in each pair of states.
const ROUNDS: usize = 600;

#[test]
fn opens_in_both_modes_at_once_from_many_threads_never_fail_and_read_right() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    let content = bytes(BYTES, 1);
    for number in 0..FILES {
        fs::write(mounted.source(number.to_string()), &content).unwrap();
    }
    if !cool(&mounted.source("0")) {
        return skipped("a page cache that cannot be emptied");
    }
    let seed = fastrand::Rng::new().get_seed();
    println!("seed {seed}");
    let (before, ended) = (opens(&mounted), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (mounted, content) = (&mounted, &content);
        let read = |thread: usize| {
            let mut random = fastrand::Rng::with_seed(seed ^ thread as u64);
            let mut piece = vec![0; 9000];
            let point = mounted.point((thread % FILES).to_string());
            for round in 0..ROUNDS {
                let mut options = File::options();
                if random.u8(0..8) == 0 {
                    options.custom_flags(OFlags::DIRECT.bits().cast_signed());
                }
                let file = options.read(true).open(&point);
                let file = file.unwrap_or_else(|error| panic!("round {round}: {error}"));
                let at = random.usize(0..BYTES - piece.len());
                file.read_exact_at(&mut piece, at as u64).unwrap();
                assert!(piece == content[at..at + piece.len()], "round {round}");
            }
        };
        let readers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || read(thread)))
            .collect();
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(!seed);
            while !ended.load(Ordering::Relaxed) {
                let source = mounted.source(random.usize(0..FILES).to_string());
                warm(&source);
                cool(&mounted.source(random.usize(0..FILES).to_string()));
            }
        });
        // The mode changes while readers go on, or a panic of theirs would be waited for for ever.
        let ends: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        ended.store(true, Ordering::Relaxed);
        for end in ends {
            end.unwrap();
        }
    });
    let passed = opens(&mounted) - before;
    println!("{passed} of {} in passthrough", THREADS * ROUNDS);
    assert!(passed > 0 && passed < (THREADS * ROUNDS) as u64);
    eventually("every release", || passthrough(&mounted)["open_files"] == 0);
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
    eventually("the release", || passthrough(&mounted)["open_files"] == 0);
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
fn an_open_file_shows_every_change_at_once() {
    let Some(mounted) = passing("always") else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    let open = File::open(&point).unwrap();
    let read = || {
        let mut whole = vec![0; 2 * BYTES];
        let mut filled = 0;
        loop {
            match open.read_at(&mut whole[filled..], filled as u64).unwrap() {
                0 => break,
                count => filled += count,
            }
        }
        whole.truncate(filled);
        whole
    };
    let writer = File::options().write(true).open(&source).unwrap();
    for round in 0..50 {
        let content = bytes(BYTES / 2 + round * 4567 % 900_000, round as u64);
        match round % 3 {
            // Rewritten in place, then cut or grown.
            0 => writer.write_all_at(&content, 0).unwrap(),
            // Made empty first.
            1 => {
                writer.set_len(0).unwrap();
                writer.write_all_at(&content, 0).unwrap();
            }
            _ => {
                writer.set_len(1000).unwrap();
                (&writer).write_all(b"").unwrap();
                writer.write_all_at(&content, 0).unwrap();
            }
        }
        writer.set_len(content.len() as u64).unwrap();
        assert!(read() == content, "round {round}, open");
        assert!(
            fs::read(&point).unwrap() == content,
            "round {round}, opened"
        );
        assert_eq!(
            fs::metadata(&point).unwrap().len(),
            content.len() as u64,
            "round {round}: the open asked"
        );
    }
    writer.set_len(77).unwrap();
    eventually("the size, with no open", || {
        open.metadata().unwrap().len() == 77
    });
}

#[test]
fn a_size_is_looked_after_though_attributes_are_believed_for_long() {
    let flags = ["--attribute-timeout", "9999s", "--passthrough", "always"];
    let Some(mounted) = mounted(&flags) else {
        return;
    };
    let open = File::open(mounted.point("a")).unwrap();
    assert_eq!(open.metadata().unwrap().len(), BYTES as u64);
    let writer = File::options().write(true).open(mounted.source("a"));
    writer.unwrap().set_len(5).unwrap();
    eventually("the size", || open.metadata().unwrap().len() == 5);
}

#[test]
fn a_file_removed_or_replaced_is_read_to_its_end_by_whoever_has_it_open() {
    let Some(mounted) = passing("always") else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    for round in 0..20 {
        let old = fs::read(&source).unwrap();
        let open = File::open(&point).unwrap();
        let new = bytes(BYTES, 100 + round);
        if round % 2 == 0 {
            fs::write(mounted.source("b"), &new).unwrap();
            fs::rename(mounted.source("b"), &source).unwrap();
        } else {
            fs::remove_file(&source).unwrap();
            // Often of the same inode number, once that is free.
            fs::write(&source, &new).unwrap();
        }
        assert!(fs::read(&point).unwrap() == new, "round {round}");
        let mut read = vec![0; BYTES];
        open.read_exact_at(&mut read, 0).unwrap();
        assert!(read == old, "round {round}, open");
        let same = open.metadata().unwrap().ino() == fs::metadata(&source).unwrap().ino();
        assert!(!same, "round {round}");
    }
}

/// A file is read cached, through, and cached again, and changes in one of these.
#[test]
fn no_old_page_is_left_by_the_one_mode_for_the_other() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    if !cool(&source) {
        return skipped("a page cache that cannot be emptied");
    }
    let write = |version: u64| {
        let writer = File::options().write(true).open(&source).unwrap();
        writer.write_all_at(&bytes(BYTES, version), 0).unwrap();
        writer.sync_all().unwrap();
    };
    for round in 0..24_u64 {
        let (first, second) = (10 * round, 10 * round + 5);
        write(first);
        cool(&source);
        assert!(
            fs::read(&point).unwrap() == bytes(BYTES, first),
            "{round} cold"
        );
        if round % 3 == 0 {
            write(second);
        }
        warm(&source);
        let open = File::open(&point).unwrap();
        if round % 2 == 0 {
            // Pages of the mount, while the file is passed through.
            fadvise(&open, 0, None, Advice::WillNeed).unwrap();
        }
        if round % 3 == 1 {
            write(second);
        }
        let mut read = vec![0; BYTES];
        open.read_exact_at(&mut read, 0).unwrap();
        let now = if round % 3 == 2 { first } else { second };
        assert!(read == bytes(BYTES, now), "{round} through");
        drop(open);
        let now = if round % 3 == 2 { second } else { now };
        write(now);
        cool(&source);
        assert!(
            fs::read(&point).unwrap() == bytes(BYTES, now),
            "{round} cold again"
        );
    }
}

#[test]
fn no_byte_differs_whichever_way_it_is_read_in_passthrough() {
    reads_are_right(&["--passthrough", "always"]);
}

/// Nobody in particular.
const STRANGER: u32 = 54_321;

#[test]
fn strangers_read_what_they_may_and_are_refused_at_once_what_they_may_not() {
    let Some(mounted) = mounted(&["--allow-other", "--passthrough", "always"]) else {
        return;
    };
    let path = mounted.source("a");
    fs::set_permissions(mounted.source(""), Permissions::from_mode(0o755)).unwrap();
    let read = || {
        let mut cat = Command::new("cat");
        let output = cat.arg(mounted.point("a")).uid(STRANGER).gid(STRANGER);
        let output = output.output().unwrap();
        output.status.success().then_some(output.stdout)
    };
    for round in 0..12 {
        let content = bytes(BYTES, round);
        fs::remove_file(&path).unwrap();
        fs::write(&path, &content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        // A right given is there within a second.
        eventually("the right", || read().as_ref() == Some(&content));
        let open = File::open(mounted.point("a")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "secret").unwrap();
        assert_eq!(read(), None, "round {round}");
        drop(open);
    }
}

#[test]
fn direct_reads_of_any_alignment_are_right() {
    let Some(mounted) = passing("always") else {
        return;
    };
    let content = bytes(BYTES, 1);
    let _also = File::open(mounted.point("a")).unwrap();
    let mut options = File::options();
    options
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed());
    let direct = options.open(mounted.point("a")).unwrap();
    for (at, length) in [(0, 4096), (1, 1), (4095, 70_000), (BYTES - 9, 9)] {
        let mut piece = vec![0; length + 1];
        let piece = &mut piece[1..];
        direct.read_exact_at(piece, at as u64).unwrap();
        assert!(*piece == content[at..at + length], "{at} {length}");
    }
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
    let failed = reader.recv_timeout(super::silent::PATIENCE);
    assert!(failed.expect("the read ends"));
}

/// Mounts and reads as root of a name space of its own, which has no right to administer the system.
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
fn a_file_in_passthrough_is_read_to_its_end_though_the_daemon_was_killed() {
    let Some(mut mounted) = passing("always") else {
        return;
    };
    let open = File::open(mounted.point("a")).unwrap();
    mounted.daemon.kill().unwrap();
    mounted.daemon.wait().unwrap();
    let mut read = vec![0; BYTES];
    open.read_exact_at(&mut read, 0).unwrap();
    assert!(read == bytes(BYTES, 1));
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
