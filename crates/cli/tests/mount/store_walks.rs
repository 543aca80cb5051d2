//! Walks over objects of a mounted store: fetched ahead, in the version that their opens find.

use std::fs;

use super::announced::{count, stats};
use super::http_server::Server;
use super::stores::{EACH_OPEN, mount, put};
use super::{Mounted, eventually};

const OBJECTS: u64 = 300;
/// Less than a window.
const BYTES: usize = 20_000;
/// However slow the machine is.
const BELIEVED: [&str; 4] = ["--entry-timeout", "3600s", "--attribute-timeout", "3600s"];

fn content(number: u64, version: u64) -> Vec<u8> {
    vec![u8::try_from((number * 7 + version) % 251).unwrap(); BYTES]
}

fn filled() -> Server {
    let server = Server::start();
    for number in 0..OBJECTS {
        put(&server, &format!("f/k{number:04}"), 1, content(number, 1));
    }
    server
}

fn listed(mounted: &Mounted) -> usize {
    fs::read_dir(mounted.point("f")).unwrap().count()
}

fn reads_right(mounted: &Mounted, number: u64, version: u64) {
    let read = fs::read(mounted.point(format!("f/k{number:04}"))).unwrap();
    assert!(
        read == content(number, version),
        "{number}, version {version}"
    );
}

#[test]
fn objects_in_the_order_of_their_listing_are_fetched_ahead_with_one_request_each() {
    for threads in [1, 4] {
        let server = filled();
        let Some(mounted) = mount(&server, "s3://b", &BELIEVED) else {
            return;
        };
        assert_eq!(listed(&mounted), usize::try_from(OBJECTS).unwrap());
        let (requests, bytes) = server.counts();
        let next = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if number >= OBJECTS {
                            return;
                        }
                        reads_right(&mounted, number, 1);
                    }
                });
            }
        });
        let (after, sent) = server.counts();
        let report = stats(&mounted);
        let (used, unread) = (
            count(&report, "files_ahead_used"),
            count(&report, "files_ahead_unread"),
        );
        // One of several may be late with its open, however long: then there is no order for a while.
        let least = if threads == 1 { OBJECTS / 2 } else { 1 };
        assert!(used >= least, "{threads} threads: {used} used");
        assert_eq!(unread, 0, "{threads} threads");
        // The first ones in two parts, as any read.
        let asked = after - requests;
        assert!(
            asked <= OBJECTS + OBJECTS / 5,
            "{threads} threads: {asked} requests"
        );
        let all = OBJECTS * BYTES as u64;
        let sent = sent - bytes;
        assert!(
            sent <= all + all / 10,
            "{threads} threads: {sent} of {all} bytes"
        );
    }
}

#[test]
fn eight_threads_at_places_of_their_own_in_one_folder_have_objects_ahead() {
    const THREADS: u64 = 8;
    let server = filled();
    let Some(mounted) = mount(&server, "s3://b", &BELIEVED) else {
        return;
    };
    listed(&mounted);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let own = thread * OBJECTS / THREADS..(thread + 1) * OBJECTS / THREADS;
            scope.spawn(|| own.for_each(|number| reads_right(&mounted, number, 1)));
        }
    });
    let report = stats(&mounted);
    let count = |name| count(&report, name);
    let (used, wasted) = (count("files_ahead_used"), count("files_ahead_wasted"));
    assert!(used >= OBJECTS / 2, "{used} used, {wasted} wasted");
    assert_eq!(count("files_ahead_unread"), 0);
}

#[test]
fn an_object_that_was_replaced_after_it_was_opened_ahead_is_read_in_its_new_version() {
    let server = filled();
    let Some(mounted) = mount(&server, "s3://b", &EACH_OPEN) else {
        return;
    };
    listed(&mounted);
    let mut replaced = 0;
    for number in 0..OBJECTS {
        let is_replaced = number % 8 == 7;
        if is_replaced {
            let ahead = count(&stats(&mounted), "files_ahead_open");
            put(&server, &format!("f/k{number:04}"), 2, content(number, 2));
            replaced += u64::from(ahead > 0);
        }
        reads_right(&mounted, number, 1 + u64::from(is_replaced));
    }
    assert!(
        replaced > OBJECTS / 16,
        "{replaced} were replaced while others were ahead"
    );
    assert!(count(&stats(&mounted), "files_ahead_wasted") > 0);
}

#[test]
fn objects_ahead_of_a_walk_that_stopped_are_closed() {
    let server = filled();
    let Some(mounted) = mount(&server, "s3://b", &BELIEVED) else {
        return;
    };
    listed(&mounted);
    (0..20).for_each(|number| reads_right(&mounted, number, 1));
    eventually("objects are open ahead", || {
        count(&stats(&mounted), "files_ahead_open") > 0
    });
    eventually("they are closed", || {
        count(&stats(&mounted), "files_ahead_open") == 0
    });
    reads_right(&mounted, OBJECTS - 1, 1);
}
