//! Folders: a program walks folders of small files. It lists each, opens its files one after the
//! other, reads each whole and closes it, as tar, grep and data loaders do.
//!
//! The files lie on the disk in the order of their inode numbers, one right behind the other; the
//! listing of a folder is a permutation of that, and so are the names, as in a file system that
//! hashes names.
//!
//! ```text
//! disk      inode 0 | 1 | 2 | 3 | 4 ..        one folder behind the other
//! listing         3   0   4   1   2 ..        order=0 opens 3, 0, 4, ..
//! ```
//!
//! Each open is a reader of its own, and all are one process. An open takes no time in the world:
//! the cost of finding a file is not modelled, and a gain here is one in fetches alone.

use std::sync::Arc;

use forerun_core::Bytes;
use forerun_core::next_file::Entry;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{READ_BYTES, SEED, Step, Steps, THINK_NS, Turns, Visit, Walk, Workload, run};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "folders",
        summary: "small files of folders, opened one by one and read whole",
        source: "design note 0011",
        unfit: "files of many windows: each file is read in order here",
        knows: Knows::Online,
        params: &[
            READ_BYTES,
            THINK_NS,
            Param {
                name: "folders",
                summary: "how many; one ends before a walk has its stride, four show the carry-over",
                default: 4,
                min: 1,
                max: 1 << 12,
            },
            Param {
                name: "folder_files",
                summary: "files of a folder; 100 are a folder of sources or pictures",
                default: 100,
                min: 1,
                max: 1 << 14,
            },
            Param {
                name: "small_bytes",
                summary: "size of a file; 16 KiB is the middle of a source tree's",
                default: 16 << 10,
                min: 1,
                max: 1 << 30,
            },
            Param {
                name: "order",
                summary: "0: as listed; 1: by inode; 2: at random; 3: at random, the same in each pass",
                default: 0,
                min: 0,
                max: 3,
            },
            Param {
                name: "passes",
                summary: "how often all folders are walked",
                default: 1,
                min: 1,
                max: 16,
            },
            SEED,
        ],
    },
    build: |v| {
        Box::new(Folders {
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            folders: v.get("folders"),
            files: v.get("folder_files"),
            small_bytes: v.get("small_bytes"),
            order: v.get("order"),
            passes: v.get("passes"),
            seed: v.get("seed"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Folders {
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Number of folders.
    pub folders: u64,
    /// Files of each.
    pub files: u64,
    /// Bytes of each.
    pub small_bytes: u64,
    /// In which order they are opened: the parameter's numbers.
    pub order: u64,
    /// How often.
    pub passes: u64,
    /// Decides listings, names and random orders.
    pub seed: u64,
}

impl Folders {
    fn shuffled(&self, part: u64) -> Vec<u32> {
        let mut random = Random::part(self.seed, part);
        let mut order: Vec<u32> = (0..self.files as u32).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        order
    }

    /// The inode of each entry, as its rank in the folder.
    fn inodes(&self, folder: u64) -> Vec<u32> {
        self.shuffled(folder * 3)
    }

    /// The entries of a folder in the order in which a pass opens them.
    fn opens(&self, folder: u64, pass: u64) -> Vec<u32> {
        let parts = self.folders * 3;
        match self.order {
            0 => (0..self.files as u32).collect(),
            1 => {
                let mut entries: Vec<u32> = (0..self.files as u32).collect();
                let inodes = self.inodes(folder);
                entries.sort_by_key(|entry| inodes[*entry as usize]);
                entries
            }
            2 => self.shuffled(parts + pass * self.folders + folder),
            _ => self.shuffled(parts + folder),
        }
    }

    /// All opens, pass by pass: folder and entry.
    fn visits(&self) -> Vec<Visit> {
        let passes = (0..self.passes).flat_map(|pass| (0..self.folders).map(move |f| (pass, f)));
        let opens = passes.flat_map(|(pass, folder)| {
            let entries = self.opens(folder, pass).into_iter();
            entries.map(move |entry| Visit {
                folder: folder as u32,
                entry,
            })
        });
        opens.collect()
    }

    fn reads(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        run(0, self.small_bytes, self.read_bytes)
    }
}

impl Workload for Folders {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.small_bytes); (self.folders * self.files) as usize]
    }

    fn readers(&self) -> Vec<usize> {
        let inodes: Vec<_> = (0..self.folders).map(|f| self.inodes(f)).collect();
        let file = |visit: Visit| {
            let rank = inodes[visit.folder as usize][visit.entry as usize];
            visit.folder as usize * self.files as usize + rank as usize
        };
        self.visits().into_iter().map(file).collect()
    }

    fn steps(&self, _: usize) -> Steps<'_> {
        let read = |(offset, bytes)| Step::read(offset, bytes, self.think_ns);
        Box::new(self.reads().map(read))
    }

    fn turns(&self) -> Option<Turns<'_>> {
        let readers = self.folders * self.files * self.passes;
        let turns = (0..readers as usize).flat_map(|reader| self.reads().map(move |_| reader));
        Some(Box::new(turns))
    }

    fn is_packed(&self) -> bool {
        true
    }

    fn walk(&self) -> Option<Walk> {
        let listing = |folder: u64| -> Arc<[Entry]> {
            let names = self.shuffled(folder * 3 + 1);
            let entry = |(inode, name_rank)| Entry {
                name_rank,
                inode: folder << 20 | u64::from(inode),
                bytes: self.small_bytes,
            };
            self.inodes(folder)
                .into_iter()
                .zip(names)
                .map(entry)
                .collect()
        };
        Some(Walk {
            listings: (0..self.folders).map(listing).collect(),
            visits: self.visits(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::parse;

    #[test]
    fn every_pass_opens_every_file_once_in_its_order() {
        for order in 0..4 {
            let text = format!("folders(folders=3,folder_files=20,passes=2,order={order})");
            let folders = parse(&text).unwrap();
            let walk = folders.walk().unwrap();
            let files = folders.readers();
            assert_eq!(files.len(), 120);
            for pass in files.chunks(60) {
                let mut sorted = pass.to_vec();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..60));
            }
            assert_eq!(order == 1, files[..60].is_sorted(), "{order}");
            assert_eq!(order != 2, files[..60] == files[60..], "{order}");
            // A file lies where its inode number says.
            for (visit, file) in walk.visits.iter().zip(&files) {
                let entry = walk.listings[visit.folder as usize][visit.entry as usize];
                assert_eq!(entry.inode & 0xf_ffff, *file as u64 % 20);
            }
        }
    }
}
