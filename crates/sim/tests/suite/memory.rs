//! Memory and device in the windows' length: frames left for demand reads, blocks kept behind the
//! cursor where memory is short, and distances learned.

use forerun_core::journal::Entry;
use forerun_core::table::Table;
use forerun_core::{Bytes, Input, Nanos, Output, Profile};
use forerun_sim::Scene;
use forerun_sim::device::switching::Switching;
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::workload::{Steps, Workload};

use crate::stage::{issued, run_into, settings};

/// The most blocks that were in flight at a time.
fn in_flight_max(journal: &[Entry]) -> u64 {
    let (mut now, mut most) = (0, 0);
    let mut counts = std::collections::BTreeMap::new();
    for entry in journal {
        match entry {
            Entry::Output(Output::Fetch(fetch)) => {
                let count = u64::from(fetch.extent.count);
                counts.insert(fetch.request, count);
                now += count;
                most = most.max(now);
            }
            Entry::Input(_, Input::Completed { request, .. }) => {
                now -= counts.remove(request).unwrap();
            }
            _ => {}
        }
    }
    most
}

/// A store that serves any number at once, and readers that could have ten times the memory under
/// way: prefetching leaves a 32nd of the frames, not more, for blocks with a waiting reader.
#[test]
fn prefetching_may_take_all_memory_but_a_32nd() {
    let text = "many-readers(file_bytes=4000000,readers=40)";
    let frames = 2048;
    let mut settings = settings("ap", Table::memory_for(frames, 4096).0);
    settings.in_flight_max = 1024;
    let mut journal = Vec::new();
    let report = run_into(settings, "object_store", text, &mut journal);
    let most = in_flight_max(&journal);
    println!(
        "{most} of {frames} blocks in flight, {} refused",
        report.ledger.refused_prefetches
    );
    assert!(report.ledger.refused_prefetches > 0);
    let frames = u64::from(frames);
    assert!(most > frames * 15 / 16, "{most} of {frames} blocks");
}

/// Two readers of files with another between them, which is never read.
#[derive(Debug)]
struct Apart {
    readers: ManyReaders,
    between: u64,
}

impl Workload for Apart {
    fn files(&self) -> Vec<Bytes> {
        let file = Bytes(self.readers.file_bytes);
        vec![file, Bytes(self.between), file]
    }

    fn readers(&self) -> Vec<usize> {
        vec![0, 2]
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        self.readers.steps(reader)
    }
}

/// A switch costs 1 ms nearby, worth 20 blocks, and 16 ms a gigabyte away, worth 313. The windows
/// of two readers that far apart become as long as that, those of neighbours do not.
#[test]
fn windows_are_as_long_as_the_distances_between_requests_are_worth() {
    let near_and_far = [
        (Bytes(0), Nanos(1_000_000)),
        (Bytes(100_000_000), Nanos(1_000_000)),
        (Bytes(1_000_000_000), Nanos(16_000_000)),
    ];
    let longest = |between| {
        let apart = Apart {
            readers: ManyReaders {
                file_bytes: 20_000_000,
                read_bytes: 64 << 10,
                think_ns: 0,
                readers: 2,
                shared: false,
            },
            between,
        };
        let profile = Profile::new(near_and_far.to_vec(), vec![(Bytes(0), 80_000_000)]);
        let disk = Switching::new(profile.unwrap());
        let mut journal = Vec::new();
        let scene = Scene::new(settings("cp", 256 << 20), disk, &apart);
        scene.run(&mut journal).unwrap();
        let windows = issued(&journal).into_iter();
        windows.map(|one| one.extent.count).max().unwrap()
    };
    let (near, far) = (longest(0), longest(2_000_000_000));
    println!("windows of at most {near} blocks nearby, {far} far away");
    assert!(near <= 40 && far > 300, "{near} {far}");
}
