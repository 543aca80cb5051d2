//! A file that changed is seen whole by the next open: all bytes of the new version, none cut off
//! at the size of another, for every change of size and after every answer to the kernel just
//! before.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Mounted, bytes, can_mount, folder, start_of};

/// Enough that a version which is cut off once in a hundred opens is found.
const ROUNDS: u64 = 300;

/// Reads as a program that does not ask for the size.
fn read_to_the_end(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut content, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(content),
            count => content.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Reads as most programs do: open, the size, and so many bytes.
fn read_by_size(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut content = vec![0; usize::try_from(file.metadata()?.len()).unwrap()];
    file.read_exact(&mut content)?;
    Ok(content)
}

/// Which version was read instead.
fn earlier(read: &[u8], versions: &[Vec<u8>]) -> String {
    let ago = versions.iter().rev().position(|version| version == read);
    match ago {
        Some(ago) => format!("the version of {} rounds ago", ago + 1),
        None => format!("{} bytes of no version", read.len()),
    }
}

/// Changes a file again and again and reads it through the mount after each change, by a new open;
/// in every second round the kernel was told of the old version just before.
fn each_change_is_seen(change: impl Fn(&Path, u64) -> Vec<u8>) {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    fs::write(&source, bytes(5000, 0)).unwrap();
    assert!(read_to_the_end(&point).unwrap() == bytes(5000, 0));
    let (mut wrong, mut versions) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        if round % 2 == 0 {
            let size = fs::metadata(&source).unwrap().len();
            let told = fs::metadata(&point).map(|file| file.len());
            if told.as_ref().ok() != Some(&size) {
                wrong.push((round, format!("told {told:?}, not {size}")));
            }
        }
        let content = change(&source, round);
        let read = match round % 4 < 2 {
            true => read_to_the_end(&point),
            false => read_by_size(&point),
        };
        match read {
            Ok(read) if read == content => {}
            Ok(read) if content.starts_with(&read) => wrong.push((round, "cut off".into())),
            Ok(read) => wrong.push((round, earlier(&read, &versions))),
            Err(error) => wrong.push((round, error.to_string())),
        }
        versions.push(content);
    }
    let few = &wrong[..wrong.len().min(4)];
    assert!(wrong.is_empty(), "{} of {ROUNDS}: {few:?}", wrong.len());
}

#[test]
fn a_file_that_grew_is_read_whole() {
    each_change_is_seen(|path, round| {
        let content = bytes(5000 + 100 * round as usize, round);
        fs::write(path, &content).unwrap();
        content
    });
}

#[test]
fn a_file_that_shrank_is_read_whole() {
    each_change_is_seen(|path, round| {
        let content = bytes(200_000 - 500 * round as usize, round);
        fs::write(path, &content).unwrap();
        content
    });
}

#[test]
fn a_file_cut_at_the_end_is_read_to_its_new_end() {
    each_change_is_seen(|path, round| {
        let content = bytes(100_000, round);
        fs::write(path, &content).unwrap();
        let left = 100_000 - 300 * round;
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(left).unwrap();
        content[..left as usize].to_vec()
    });
}

#[test]
fn a_log_that_is_appended_to_is_read_to_its_end() {
    each_change_is_seen(|path, round| {
        let mut log = File::options().append(true).open(path).unwrap();
        log.write_all(&bytes(10 + 37 * round as usize, round))
            .unwrap();
        fs::read(path).unwrap()
    });
}

#[test]
fn a_file_rewritten_in_place_at_any_length_is_read_whole() {
    each_change_is_seen(|path, round| {
        let content = bytes(fastrand::Rng::with_seed(round).usize(1..300_000), round);
        fs::write(path, &content).unwrap();
        content
    });
}

#[test]
fn a_file_renamed_over_another_is_read_whole() {
    each_change_is_seen(|path, round| {
        let content = bytes(fastrand::Rng::with_seed(round).usize(1..50_000), round);
        let new = path.with_extension("new");
        fs::write(&new, &content).unwrap();
        fs::rename(&new, path).unwrap();
        content
    });
}

#[test]
fn a_file_made_anew_under_a_name_just_freed_is_read_whole() {
    each_change_is_seen(|path, round| {
        let content = bytes(fastrand::Rng::with_seed(round).usize(1..50_000), round);
        fs::remove_file(path).unwrap();
        fs::write(path, &content).unwrap();
        content
    });
}

#[test]
fn a_file_held_open_does_not_keep_others_from_seeing_it_whole() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    fs::write(&source, bytes(1000, 0)).unwrap();
    let held = File::open(&point).unwrap();
    for round in 1..=ROUNDS {
        let content = bytes(fastrand::Rng::with_seed(round).usize(1..100_000), round);
        fs::write(&source, &content).unwrap();
        assert!(read_to_the_end(&point).unwrap() == content, "round {round}");
    }
    drop(held);
}

#[test]
fn a_file_renamed_over_one_that_is_held_open_is_what_the_next_open_reads() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    fs::write(&source, bytes(1000, 0)).unwrap();
    let mut held = Vec::new();
    for round in 1..=ROUNDS {
        held.push((File::open(&point).unwrap(), round - 1));
        let content = bytes(1000, round);
        fs::write(mounted.source("b"), &content).unwrap();
        fs::rename(mounted.source("b"), &source).unwrap();
        assert!(read_to_the_end(&point).unwrap() == content, "round {round}");
    }
    for (mut file, round) in held {
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert!(content == bytes(1000, round), "held since round {round}");
    }
}

/// A version that says which one it is.
fn version(number: u64) -> Vec<u8> {
    let length = fastrand::Rng::with_seed(number).usize(1..60_000);
    [&number.to_le_bytes()[..], &bytes(length, number)].concat()
}

#[test]
fn sixteen_readers_beside_a_writer_see_whole_versions_and_none_older_than_their_open() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    let (source, new, point) = (mounted.source("a"), mounted.source("b"), mounted.point("a"));
    fs::write(&source, version(0)).unwrap();
    let (newest, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let reads = std::thread::scope(|scope| {
        let reader = || {
            let mut reads = 0;
            while !done.load(Ordering::SeqCst) {
                let least = newest.load(Ordering::SeqCst);
                let read = read_to_the_end(&point).unwrap();
                let number = u64::from_le_bytes(read[..8].try_into().unwrap());
                assert!(
                    read == version(number),
                    "{} bytes of version {number}",
                    read.len()
                );
                assert!(number >= least, "version {number} after {least} was there");
                reads += 1;
            }
            reads
        };
        let readers: Vec<_> = (0..16).map(|_| scope.spawn(reader)).collect();
        for number in 1..=2 * ROUNDS {
            fs::write(&new, version(number)).unwrap();
            // Rights that change, too: every reader has them.
            let mode = if number % 5 == 0 { 0o600 } else { 0o644 };
            fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
            fs::rename(&new, &source).unwrap();
            newest.store(number, Ordering::SeqCst);
            if number % 3 == 0 {
                fs::set_permissions(&source, fs::Permissions::from_mode(0o640)).unwrap();
            }
            std::thread::yield_now();
        }
        done.store(true, Ordering::SeqCst);
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum::<u32>()
    });
    println!("{reads} reads of {} versions", 2 * ROUNDS + 1);
}

/// Links below `/proc` keep their inode numbers and have no time of birth.
#[test]
fn a_link_that_leads_elsewhere_under_the_same_number_is_read_anew() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let mut shell = Command::new("sh")
        .args(["-c", "while read -r to && cd \"$to\"; do echo; done"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut go, mut gone) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let source = format!("/proc/{}", shell.id());
    let daemon = start_of(Path::new(&source), folder.path(), &[], &[]);
    let mounted = Mounted { folder, daemon };
    for to in ["/", "/proc", "/", "/sys"] {
        writeln!(go, "{to}").unwrap();
        gone.read_exact(&mut [0]).unwrap();
        let shown = fs::read_link(mounted.point("cwd")).unwrap();
        assert_eq!(shown, Path::new(to));
    }
    drop(go);
    shell.wait().unwrap();
}
