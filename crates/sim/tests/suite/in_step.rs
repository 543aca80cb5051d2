//! Readers of one file in step: the first to meet a mark opens the next window, and it goes out when one of them
//! needs it. So a file costs the device as much as with one reader, however many take turns at its front.

use forerun_core::Bytes;
use forerun_sim::workload::{Step, Steps, Workload};
use forerun_sim::{Report, Scene, device};

use crate::stage::{DISK, MEMORY, settings};

const BLOCK: u64 = 4096;

/// So many readers of each file, one a little after the other; each computes after a read.
#[derive(Debug)]
struct InStep {
    files: usize,
    readers: usize,
    blocks: u64,
    /// Blocks of a read.
    read: u64,
    think: u64,
    apart: u64,
}

impl Workload for InStep {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.blocks * BLOCK); self.files]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.files * self.readers)
            .map(|reader| reader / self.readers)
            .collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let late = (reader % self.readers) as u64 * self.apart;
        let begin = Step::read(0, self.read * BLOCK, late + self.think);
        let bytes = self.read * BLOCK;
        let rest =
            (1..self.blocks / self.read).map(move |n| Step::read(n * bytes, bytes, self.think));
        Box::new(core::iter::once(begin).chain(rest))
    }
}

fn run(disk: &str, workload: &InStep) -> Report {
    let device = device::parse(disk).unwrap();
    Scene::new(settings("forerun", MEMORY), device, workload)
        .run(&mut ())
        .unwrap()
}

/// Files, readers of each, blocks of a read, its computing and how far the readers are apart, in microseconds.
#[test]
fn files_that_are_read_in_step_take_as_long_as_by_one_reader_each() {
    let slow = "hp97560";
    for (disk, files, readers, read, think, apart) in [
        (DISK, 1, 2, 1, 1000, 500),
        (DISK, 4, 2, 1, 1000, 500),
        (DISK, 4, 3, 16, 3000, 1000),
        (DISK, 8, 2, 16, 0, 0),
        (slow, 4, 2, 1, 1000, 500),
        (slow, 4, 2, 1, 2000, 20_000),
        (slow, 3, 5, 4, 500, 100),
        ("object_store", 4, 2, 16, 1000, 500),
    ] {
        let by = |readers| {
            let workload = InStep {
                files,
                readers,
                blocks: 1024,
                read,
                think: think * 1000,
                apart: apart * 1000,
            };
            run(disk, &workload).elapsed.0
        };
        let last = readers as u64 * apart * 1000;
        let times = by(readers) as f64 / (by(1) + last) as f64;
        let case = format!(
            "{disk}: {files} files, {readers} readers each, {read} blocks, {think} us, {apart} us apart"
        );
        println!("{times:.3} {case}");
        assert!(times <= 1.2, "{times:.3} times as long, {case}");
    }
}
