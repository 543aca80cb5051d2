//! A store as a mount: objects are files, each in one version, and a store that fails or hangs harms its own
//! readers alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::OFlags;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::announced::{count, hint, stats};
use super::http_server::{Bare, Fault, Server};
use super::{Mounted, bytes, can_mount, folder, start_of};

/// A look-up for each open: changes are seen by the next one.
pub(super) const EACH_OPEN: [&str; 4] = ["--entry-timeout", "0", "--attribute-timeout", "0"];

fn variables(server: &Server) -> [(&'static str, String); 3] {
    [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ]
}

/// A mount of a store's address, with a control socket.
pub(super) fn mount(server: &Server, address: &str, flags: &[&str]) -> Option<Mounted> {
    if !can_mount() {
        return None;
    }
    let folder: TempDir = folder();
    let socket = folder.path().join("control");
    let flags = [flags, &["--control", socket.to_str().unwrap()]].concat();
    let daemon = start_of(
        Path::new(address),
        folder.path(),
        &flags,
        &variables(server),
    );
    Some(Mounted { folder, daemon })
}

pub(super) fn put(server: &Server, key: &str, version: u64, content: Vec<u8>) {
    server.put(&format!("/b/{key}"), &version.to_string(), content);
}

/// All files below a folder, by their paths.
pub(super) fn files(below: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![below.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                let content = fs::read(&path).unwrap();
                files.insert(path.strip_prefix(below).unwrap().to_owned(), content);
            }
        }
    }
    files
}

#[test]
fn objects_are_files_in_folders() {
    let server = Server::start();
    let mut expected = BTreeMap::new();
    let sizes = [0, 1, 4096, 70_000, 3_000_001];
    for (number, size) in sizes.into_iter().enumerate() {
        for path in ["a", "f/b", "f/g/c d", "ü/%41"] {
            let path = format!("{path}{number}");
            let content = bytes(size, number as u64);
            put(&server, &format!("data/{path}"), 1, content.clone());
            expected.insert(PathBuf::from(path), content);
        }
    }
    put(&server, "other", 1, vec![1]);
    // Files ahead of a second walk are fetched until it is seen that nothing of them is read.
    let Some(mounted) = mount(&server, "s3://b/data", &["--next-file", "none"]) else {
        return;
    };
    assert!(files(&mounted.point("")) == expected);
    let stat = fs::metadata(mounted.point("f/b4")).unwrap();
    assert_eq!((stat.len(), stat.mode() & 0o7777), (3_000_001, 0o444));
    assert_eq!(stat.mtime(), 1_704_067_200);
    assert!(fs::metadata(mounted.point("f")).unwrap().is_dir());
    let missing = fs::metadata(mounted.point("other")).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    let refused = File::create(mounted.point("new")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
    let file = File::open(mounted.point("a4")).unwrap();
    let mut piece = [0; 1000];
    for at in [2_999_999, 5, 1_500_000, 77_777] {
        let read = file.read_at(&mut piece, at).unwrap();
        let content = &expected[Path::new("a4")][at as usize..];
        assert!(piece[..read] == content[..read.max(1000.min(content.len()))]);
    }
    // Read once more: the kernel has the bytes, and asks for none.
    let (_, before) = server.counts();
    assert!(files(&mounted.point("f")).len() == 10);
    assert_eq!(server.counts().1, before);
}

#[test]
fn a_folder_of_thousands_is_listed_whole_with_and_without_attributes() {
    let server = Server::start();
    for number in 0..3000 {
        put(&server, &format!("k{number:04}"), 1, vec![0; number % 7]);
    }
    let Some(mounted) = mount(&server, "s3://b", &[]) else {
        return;
    };
    let list = |arguments: &[&str]| {
        let mut listed = Command::new("ls");
        listed.args(arguments).arg(mounted.point(""));
        let Output { status, stdout, .. } = listed.output().unwrap();
        assert!(status.success());
        String::from_utf8(stdout).unwrap()
    };
    let names = list(&["-1f"]);
    let names: Vec<_> = names
        .lines()
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(names.len(), 3000);
    assert!(names.is_sorted());
    let (before, _) = server.counts();
    let sizes = list(&["-l"]);
    let sizes = sizes
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(4));
    let sum: u64 = sizes
        .map(|size| size.unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, (0..3000).map(|number| number % 7).sum::<u64>());
    let (after, _) = server.counts();
    assert!(after - before < 30, "{} requests", after - before);
}

#[test]
fn a_replaced_object_is_new_to_the_next_open_and_old_or_an_error_to_the_others() {
    let server = Server::start();
    let version = |number: u64| bytes(fastrand::Rng::with_seed(number).usize(1..400_000), number);
    put(&server, "a", 0, version(0));
    let Some(mounted) = mount(&server, "s3://b", &EACH_OPEN) else {
        return;
    };
    for round in 1..100 {
        let mut old = File::open(mounted.point("a")).unwrap();
        let mut begin = vec![0; 1000.min(version(round - 1).len())];
        old.read_exact(&mut begin).unwrap();
        put(&server, "a", round, version(round));
        assert!(
            fs::read(mounted.point("a")).unwrap() == version(round),
            "round {round}"
        );
        let mut all = Vec::new();
        old.seek(SeekFrom::Start(0)).unwrap();
        match old.read_to_end(&mut all) {
            Ok(_) => assert!(all == version(round - 1), "round {round}"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ESTALE), "round {round}"),
        }
    }
    server.delete("/b/a");
    let gone = File::open(mounted.point("a")).unwrap_err();
    assert_eq!(gone.raw_os_error(), Some(libc::ENOENT));
    put(&server, "a/b", 1, vec![7]);
    assert_eq!(fs::read(mounted.point("a/b")).unwrap(), [7]);
}

#[test]
fn readers_beside_a_writer_see_whole_versions_or_an_error() {
    let server = Server::start();
    let version = |number: u64| {
        let length = fastrand::Rng::with_seed(number).usize(1..60_000);
        [&number.to_le_bytes()[..], &bytes(length, number)].concat()
    };
    put(&server, "a", 0, version(0));
    let Some(mounted) = mount(&server, "s3://b", &EACH_OPEN) else {
        return;
    };
    let (newest, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let point = mounted.point("a");
    let whole: u32 = std::thread::scope(|scope| {
        let reader = || {
            let mut whole = 0;
            while !done.load(Ordering::SeqCst) {
                let least = newest.load(Ordering::SeqCst);
                let mut file = File::open(&point).unwrap();
                let mut read = Vec::new();
                match file.read_to_end(&mut read) {
                    Ok(_) => whole += 1,
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::ESTALE));
                        continue;
                    }
                }
                let number = u64::from_le_bytes(read[..8].try_into().unwrap());
                assert!(read == version(number), "{} bytes of {number}", read.len());
                assert!(number >= least, "version {number} after {least}");
            }
            whole
        };
        let readers: Vec<_> = (0..8).map(|_| scope.spawn(reader)).collect();
        for number in 1..=300 {
            put(&server, "a", number, version(number));
            newest.store(number, Ordering::SeqCst);
            std::thread::yield_now();
        }
        // However slow the machine is, some came between two versions.
        let last = File::open(&point).map(|mut file| file.read_to_end(&mut Vec::new()));
        last.unwrap().unwrap();
        done.store(true, Ordering::SeqCst);
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum()
    });
    println!("{whole} whole reads");
}

#[test]
fn a_store_that_hangs_holds_up_its_readers_and_not_the_end_of_the_mount() {
    let server = Server::start();
    for number in 0..40 {
        put(&server, &format!("k{number}"), 1, bytes(300_000, number));
    }
    let Some(mut mounted) = mount(&server, "s3://b", &[]) else {
        return;
    };
    let in_memory = fs::read(mounted.point("k0")).unwrap();
    let listed = fs::read_dir(mounted.point("")).unwrap().count();
    server.fail_always(Some(Fault::Stall(0)));
    let (before, _) = server.counts();
    let point = mounted.point("");
    // More than there are threads that take requests.
    let readers: Vec<_> = (1..listed)
        .map(|number| {
            let path = point.join(format!("k{number}"));
            std::thread::spawn(move || fs::read(path).map(drop))
        })
        .collect();
    super::eventually("the store is asked", || server.counts().0 > before);
    assert!(fs::read(mounted.point("k0")).unwrap() == in_memory);
    mounted.signal(rustix::process::Signal::TERM);
    mounted.ended();
    for reader in readers {
        assert!(
            reader.join().unwrap().is_err(),
            "none of its bytes ever came"
        );
    }
}

/// The sizes of a folder come with its names, also for a program that reads all names first.
#[test]
fn the_sizes_of_a_folder_cost_no_request_for_each_name() {
    let server = Server::start();
    for number in 0..3000 {
        put(&server, &format!("f/k{number:04}"), 1, vec![0; 3]);
    }
    let believed = ["--entry-timeout", "3600s", "--attribute-timeout", "3600s"];
    let Some(mounted) = mount(&server, "s3://b", &believed) else {
        return;
    };
    let (before, _) = server.counts();
    let names: Vec<_> = fs::read_dir(mounted.point("f")).unwrap().collect();
    assert_eq!(names.len(), 3000);
    for name in names {
        assert_eq!(fs::metadata(name.unwrap().path()).unwrap().len(), 3);
    }
    let (after, _) = server.counts();
    assert!(after - before < 30, "{} requests", after - before);
}

/// Programs that ask for one name after the other, and no listing before, have their answers from pages of it.
#[test]
fn names_that_are_asked_for_one_by_one_are_answered_by_pages() {
    let server = Server::start();
    for number in 0..3000 {
        put(&server, &format!("f/k{number:04}"), 1, vec![0; 3]);
    }
    // However slow the machine is.
    let believed = ["--entry-timeout", "3600s", "--attribute-timeout", "3600s"];
    let Some(mounted) = mount(&server, "s3://b", &believed) else {
        return;
    };
    let (before, _) = server.counts();
    for number in 0..3000 {
        let path = mounted.point(format!("f/k{number:04}"));
        assert_eq!(fs::metadata(path).unwrap().len(), 3);
    }
    let (after, _) = server.counts();
    assert!(after - before <= 3 * 3 + 10, "{} requests", after - before);
    // Its bytes are a request, and its name is none.
    let (before, _) = server.counts();
    assert_eq!(fs::read(mounted.point("f/k2999")).unwrap(), [0; 3]);
    assert_eq!(server.counts().0 - before, 1);
}

/// Most threads of a mount, whatever its store does.
const THREADS_MAX: u32 = 64;

fn threads(mounted: &Mounted) -> u32 {
    let status = fs::read_to_string(format!("/proc/{}/status", mounted.daemon.id())).unwrap();
    let threads = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    threads.unwrap().trim().parse().unwrap()
}

/// Names that the store does not answer for cost no thread each, and leave others.
#[test]
fn names_that_hang_hold_up_their_programs_alone() {
    let server = Server::start();
    put(&server, "a", 1, vec![7]);
    put(&server, "f/b", 1, vec![7]);
    let Some(mounted) = mount(&server, "s3://b", &EACH_OPEN) else {
        return;
    };
    server.hang(Some("slow"));
    let point = mounted.point("");
    let stats: Vec<_> = (0..110)
        .map(|number| {
            let path = point.join(format!("slow{number}"));
            std::thread::spawn(move || fs::metadata(path).map(drop))
        })
        .collect();
    super::eventually("all that may hang do", || server.waiting().0 >= 128);
    assert_eq!(fs::read(mounted.point("a")).unwrap(), [7]);
    assert_eq!(fs::read_dir(mounted.point("f")).unwrap().count(), 1);
    assert!(threads(&mounted) <= THREADS_MAX, "{}", threads(&mounted));
    server.hang(None);
    for stat in stats {
        let missing = stat.join().unwrap().unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    }
}

/// Nor do ranges.
#[test]
fn ranges_that_hang_hold_no_threads() {
    const OBJECTS: usize = 70;
    const BYTES: usize = 1 << 20;
    let server = Server::start();
    put(&server, "a", 1, vec![7; BYTES]);
    for number in 0..OBJECTS {
        put(&server, &format!("slow{number}"), 1, vec![8; BYTES]);
    }
    let Some(mounted) = mount(&server, "s3://b", &["--memory", "256MiB"]) else {
        return;
    };
    let open = |name: String| File::open(mounted.point(&name)).unwrap();
    let slow: Vec<_> = (0..OBJECTS).map(|n| open(format!("slow{n}"))).collect();
    server.hang(Some("slow"));
    let reads: Vec<_> = slow
        .into_iter()
        .map(|file| {
            std::thread::spawn(move || {
                let mut end = [0; 4096];
                file.read_exact_at(&mut end, (BYTES - 4096) as u64).unwrap();
                assert_eq!(end, [8; 4096]);
            })
        })
        .collect();
    super::eventually("they hang", || server.waiting().0 >= OBJECTS);
    assert!(threads(&mounted) <= THREADS_MAX, "{}", threads(&mounted));
    assert_eq!(fs::read(mounted.point("a")).unwrap(), vec![7; BYTES]);
    server.hang(None);
    for read in reads {
        read.join().unwrap();
    }
}

#[test]
fn listed_objects_are_read_whatever_form_their_tags_have() {
    let server = Server::start();
    let mut expected = BTreeMap::new();
    for (number, size) in [0, 3, 300_000].into_iter().enumerate() {
        let content = bytes(size, number as u64);
        put(&server, &format!("f/{number}"), 1, content.clone());
        expected.insert(PathBuf::from(format!("f/{number}")), content);
    }
    let stores = [
        ("s3://b", vec![("AWS_ENDPOINT_URL", server.url(""))]),
        (
            "az://b",
            vec![
                ("AZURE_STORAGE_ACCOUNT_NAME", "account".to_owned()),
                ("AZURE_STORAGE_ENDPOINT", server.url("")),
            ],
        ),
        ("gs://b", vec![("GOOGLE_BASE_URL", server.url(""))]),
    ];
    for bare in [
        Bare::Nowhere,
        Bare::InListings,
        Bare::InAnswers,
        Bare::Everywhere,
    ] {
        server.bare(bare);
        for (address, variables) in &stores {
            if !can_mount() {
                return;
            }
            let folder: TempDir = folder();
            let daemon = start_of(Path::new(address), folder.path(), &[], variables);
            let mounted = Mounted { folder, daemon };
            assert!(files(&mounted.point("")) == expected, "{address}, {bare:?}");
        }
    }
}

#[test]
fn faults_that_pass_are_not_seen_and_refusals_are() {
    let server = Server::start();
    put(&server, "a", 1, bytes(2_000_000, 1));
    let Some(mounted) = mount(&server, "s3://b", &EACH_OPEN) else {
        return;
    };
    server.fail([Fault::Status(503, None), Fault::Reset, Fault::Cut(1000)]);
    assert!(fs::read(mounted.point("a")).unwrap() == bytes(2_000_000, 1));
    server.fail_always(Some(Fault::Status(403, None)));
    let refused = fs::read(mounted.point("b")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EACCES));
    server.fail_always(None);
    assert!(fs::read(mounted.point("a")).is_ok());
}

/// In its window, and alone; the one thread of a bucket that read it again let others wait.
#[test]
fn a_range_that_is_refused_is_asked_for_twice() {
    let server = Server::start();
    put(&server, "a", 1, bytes(3_000_000, 1));
    let Some(mounted) = mount(&server, "s3://b", &[]) else {
        return;
    };
    let direct = OFlags::DIRECT.bits().cast_signed();
    let file = File::options()
        .read(true)
        .custom_flags(direct)
        .open(mounted.point("a"));
    let file = file.unwrap();
    server.delete("/b/a");
    let (before, _) = server.counts();
    let mut room = [0; 8192];
    let begin = room.as_ptr().align_offset(4096);
    let refused = file.read_exact_at(&mut room[begin..begin + 4096], 1 << 20);
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOENT));
    assert_eq!(server.counts().0 - before, 2);
}

#[test]
fn an_announced_order_of_objects_is_read_ahead() {
    let server = Server::start();
    for number in 0..8 {
        put(&server, &format!("f/k{number}"), 1, bytes(100_000, number));
    }
    if !can_mount() {
        return;
    }
    let folder = folder();
    let socket = folder.path().join("control");
    let control = ["--control", socket.to_str().unwrap()];
    let daemon = start_of(
        Path::new("s3://b"),
        folder.path(),
        &control,
        &variables(&server),
    );
    let mounted = Mounted { folder, daemon };
    let order = [5, 2, 7, 0, 1, 6, 3, 4];
    let mut list: String = order
        .iter()
        .map(|number| format!("f/k{number}\n"))
        .collect();
    list += "f\nmissing\n";
    let answer = hint(&mounted, &list);
    assert_eq!(answer["taken"], 8, "{answer}");
    assert_eq!(answer["refused"].as_array().unwrap().len(), 2, "{answer}");
    for number in order {
        let content = fs::read(mounted.point(format!("f/k{number}"))).unwrap();
        assert!(content == bytes(100_000, number));
    }
    let held = File::open(mounted.point("f/k5")).unwrap();
    let report = stats(&mounted);
    assert!(count(&report, "hints_read") > 0, "{report}");
    assert_eq!(report["source"], "s3://b");
    assert_eq!(report["open_files"][0]["path"], "f/k5");
    drop(held);
}

#[test]
fn an_address_that_cannot_be_mounted_is_refused_by_name() {
    let server = Server::start();
    put(&server, "a", 1, vec![1]);
    let folder = folder();
    let refused = |source: &str, point: &Path| {
        let output = Command::new(cargo_bin!("forerun"))
            .args(["mount", source])
            .arg(point)
            .envs(variables(&server))
            .env("FORERUN_RUNTIME_DIR", folder.path().join("run"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{source}");
        String::from_utf8(output.stderr).unwrap()
    };
    let point = folder.path().join("point");
    let said = refused("s3://b/none", &point);
    assert!(
        said.contains("s3://b/none: no key begins with it"),
        "{said}"
    );
    let said = refused(&server.url("/b"), &point);
    assert!(said.contains("no listings"), "{said}");
    let said = refused("s3://b", &folder.path().join("missing"));
    assert!(said.contains("missing: no such directory"), "{said}");
    let said = refused("s3:///a", &point);
    assert!(said.contains("names no bucket"), "{said}");
}
