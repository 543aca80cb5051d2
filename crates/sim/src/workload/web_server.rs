//! Web server: threads open files at random, read each whole, and now and then append to a log.
//!
//! FileBench's profile of that name. Sizes have a gamma distribution of shape 1.5: many files are
//! small, a few are several times the mean:
//!
//! ```text
//! quantile   3 %   25 %   50 %   75 %   97 %          of the mean, 1,000 files
//! size      0.08   0.40   0.78   1.35   2.90
//! ```
//!
//! The thread whose read ends opens the next file. With every tenth file it appends 16 KiB to the
//! log, which here is the time of a copy: the kernel writes a log back later, one byte for so many
//! thousand that are read, and the simulator has no writes.
//!
//! Every file is drawn before the first read, so all presets read the same files in the same order.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{READ_BYTES, SEED, Step, Steps, THINK_NS, Workload, run};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "web-server",
        summary: "threads open files at random and read each whole",
        source: "FileBench 1.1.0, profile webserver; baek09 section 5.4",
        unfit: "popularity: every file is as likely as any other",
        knows: Knows::Online,
        params: &[
            Param {
                name: "files",
                summary: "how many; the profile has 1,000",
                default: 1_000,
                min: 1,
                max: 1 << 20,
            },
            Param {
                name: "mean_bytes",
                summary: "mean size; the profile has 16 KiB, music files of the paper 4 MB",
                default: 16 << 10,
                min: 1,
                max: 1 << 30,
            },
            Param {
                name: "threads",
                summary: "files that are open at a time; the profile has 100",
                default: 100,
                min: 1,
                max: 1 << 16,
            },
            Param {
                name: "opens",
                summary: "files that are opened and read, by all threads together",
                default: 10_000,
                min: 0,
                max: 1 << 24,
            },
            Param {
                summary: "bytes a read asks for; 4 KiB is a page",
                default: 4096,
                ..READ_BYTES
            },
            THINK_NS,
            Param {
                name: "append_ns",
                summary: "time of an append; 20 us is a copy of 16 KiB and a system call",
                default: 20_000,
                min: 0,
                max: 1_000_000_000,
            },
            SEED,
        ],
    },
    build: |v| {
        let (files, seed) = (v.get("files"), v.get("seed"));
        Box::new(WebServer {
            sizes: (0..files)
                .map(|file| size(v.get("mean_bytes"), seed, file))
                .collect(),
            opened: (0..v.get("opens"))
                .map(|at| Random::part(!seed, at).below(files) as usize)
                .collect(),
            threads: v.get("threads") as usize,
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            append_ns: v.get("append_ns"),
        })
    },
};

/// Files that a thread reads before it appends to the log.
const READS_AN_APPEND: usize = 10;

/// The gamma distribution of shape 1.5, FileBench's `filesizegamma`, in thousandths of its mean:
/// the quantiles 0, 1/32, .. 31/32, and 99.9 % for the last one. Straight lines between them have
/// that mean.
const GAMMA: [u64; 33] = [
    0, 83, 135, 182, 227, 270, 312, 355, 397, 440, 484, 529, 575, 622, 671, 722, 775, 831, 890,
    952, 1019, 1090, 1168, 1252, 1346, 1451, 1571, 1711, 1880, 2096, 2397, 2902, 5329,
];

/// The size of a file: at least a byte.
fn size(mean: u64, seed: u64, file: u64) -> Bytes {
    let mut random = Random::part(seed, file);
    let at = random.below(32) as usize;
    let (low, high) = (u128::from(GAMMA[at]), u128::from(GAMMA[at + 1]));
    let part = u128::from(random.below(1 << 16));
    // Thousandths, and 65536ths of those.
    let drawn = (low << 16) + (high - low) * part;
    let bytes = (u128::from(mean) * drawn / 1000) >> 16;
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).max(1))
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct WebServer {
    sizes: Vec<Bytes>,
    /// Which file each open is of.
    opened: Vec<usize>,
    threads: usize,
    read_bytes: u64,
    think_ns: u64,
    append_ns: u64,
}

impl Workload for WebServer {
    fn files(&self) -> Vec<Bytes> {
        self.sizes.clone()
    }

    fn readers(&self) -> Vec<usize> {
        self.opened.clone()
    }

    fn at_once(&self) -> usize {
        self.threads
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let size = self
            .opened
            .get(reader)
            .and_then(|file| self.sizes.get(*file));
        let reads = run(0, size.map_or(0, |size| size.0), self.read_bytes);
        let appends = (reader + 1).is_multiple_of(READS_AN_APPEND);
        let append = appends.then(|| Step::read(0, 0, self.append_ns));
        let steps = reads.map(|(offset, bytes)| Step::read(offset, bytes, self.think_ns));
        Box::new(steps.chain(append))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_mean_and_the_median_of_the_gamma_distribution() {
        let mean = 4_000_000;
        let mut sizes: Vec<u64> = (0..20_000).map(|file| size(mean, 5, file).0).collect();
        let found = sizes.iter().sum::<u64>() / 20_000;
        assert!(found.abs_diff(mean) < mean / 50, "{found}");
        sizes.sort_unstable();
        let median = sizes[10_000];
        assert!(median.abs_diff(3_100_000) < mean / 50, "{median}");
    }

    #[test]
    fn a_reader_reads_its_file_whole_and_every_tenth_appends() {
        let workload = crate::workload::parse("web-server(files=7,opens=20,threads=3)").unwrap();
        assert_eq!(workload.at_once(), 3);
        let (sizes, opened) = (workload.files(), workload.readers());
        for (reader, file) in opened.into_iter().enumerate() {
            let steps: Vec<Step> = workload.steps(reader).collect();
            let bytes: u64 = steps.iter().map(|step| step.bytes.0).sum();
            assert_eq!(bytes, sizes[file].0);
            let appends = steps.iter().filter(|step| step.bytes.0 == 0).count();
            assert_eq!(appends, usize::from(reader % 10 == 9));
        }
    }
}
