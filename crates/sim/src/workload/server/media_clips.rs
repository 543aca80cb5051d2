//! Media clips: a Web server with video and audio files of the size of the 1998 World Cup's.
//!
//! Published are 20.4 GB of files of 24 to 1,418 KB with a mean of 152 KB, of which 9 % are large
//! video clips, chosen by a Zipf distribution. The rest is assumed: both kinds are spread evenly,
//! video from 500 KB on and audio up to 120 KB, which gives the published mean; the exponent is 1;
//! files are read in blocks of 64 KiB.
//!
//! ```text
//! video    9 %   500 .. 1,418 KB   mean 959        0.09 x 959 + 0.91 x 72 = 152 KB
//! audio   91 %    24 ..   120 KB   mean  72
//! ```
//!
//! Requests read files whole (Li et al. 2004), or with `is_partial` from their beginning to any
//! page (Li and Shen 2005).

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{ANNOUNCES, Draw, HANDLERS, READ_NS, REQUESTS, Read, START_NS, Server, begins, blocks};
use crate::random::Random;
use crate::workload::{SEED, Workload};

pub(in crate::workload) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "media-clips",
        summary: "a server of video and audio clips, popular ones often",
        source: "li04 section 3.1; li05 section 4.1; Arlitt and Jin, HPL-1999-35",
        unfit: "small files",
        knows: Knows::Online,
        params: &[
            Param {
                name: "files",
                summary: "how many; 134,000 have 20.4 GB",
                default: 134_000,
                min: 1,
                max: 1 << 20,
            },
            Param {
                name: "is_partial",
                summary: "1: of each file a random part from its beginning on, 0: all",
                default: 0,
                min: 0,
                max: 1,
            },
            HANDLERS,
            REQUESTS,
            READ_NS,
            START_NS,
            ANNOUNCES,
            SEED,
        ],
    },
    build: |v| {
        let clips = Clips {
            files: v.get("files"),
            is_partial: v.get("is_partial") == 1,
            read_ns: v.get("read_ns"),
            start_ns: v.get("start_ns"),
            seed: v.get("seed"),
        };
        Box::new(Server::new(
            clips,
            v.get("announces"),
            v.get("handlers"),
            v.get("requests"),
        ))
    },
};

/// In a hundred files.
const VIDEOS: u64 = 9;
const VIDEO: (u64, u64) = (500_000, 1_418_000);
const AUDIO: (u64, u64) = (24_000, 120_000);
const PAGE: u64 = 4096;

#[derive(Clone, Debug)]
struct Clips {
    files: u64,
    is_partial: bool,
    read_ns: u64,
    start_ns: u64,
    seed: u64,
}

impl Clips {
    fn size(&self, file: u64) -> u64 {
        let mut random = Random::part(self.seed, file);
        let (low, high) = if random.below(100) < VIDEOS {
            VIDEO
        } else {
            AUDIO
        };
        random.between(low, high)
    }

    /// A file by its popularity. Those of rank 2^k to 2^(k+1) are together as popular for every k,
    /// which is Zipf's law with the exponent 1; which rank a file has is drawn too.
    fn file(&self, request: u64) -> u64 {
        let mut random = Random::part(!self.seed, request);
        let octaves = u64::from(64 - self.files.leading_zeros());
        let rank = loop {
            let first = 1 << random.below(octaves);
            let rank = random.between(first, 2 * first - 1);
            if rank <= self.files {
                break rank;
            }
        };
        // An odd factor that has no divisor in common spreads ranks over the disk.
        rank.wrapping_mul(SPREAD) % self.files
    }
}

/// A prime above the most files there can be.
const SPREAD: u64 = 2_147_483_647;

impl Draw for Clips {
    fn files(&self) -> Vec<Bytes> {
        (0..self.files).map(|file| Bytes(self.size(file))).collect()
    }

    fn files_of(&self, request: u64) -> Vec<usize> {
        vec![self.file(request) as usize]
    }

    fn reads(&self, request: u64) -> Vec<Read> {
        let file = self.file(request);
        let size = self.size(file);
        let mut random = Random::part(self.seed.rotate_left(32), request);
        let part = match self.is_partial {
            true => (random.between(1, size.div_ceil(PAGE)) * PAGE).min(size),
            false => size,
        };
        let reads = blocks(part, self.read_ns).map(|step| (0, step)).collect();
        begins(reads, self.start_ns)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_and_the_total_are_the_published_ones() {
        let sizes = crate::workload::parse("media-clips").unwrap().files();
        let total: u64 = sizes.iter().map(|size| size.0).sum();
        assert!(total.abs_diff(20_400_000_000) < 200_000_000, "{total}");
        let mean = total / sizes.len() as u64;
        assert!(mean.abs_diff(152_000) < 1_500, "{mean}");
        let videos = sizes.iter().filter(|size| size.0 > 200_000).count();
        assert!(videos.abs_diff(sizes.len() * 9 / 100) < 400, "{videos}");
        let sizes = sizes.iter().map(|size| size.0);
        assert!(sizes.clone().min() >= Some(24_000) && sizes.max() <= Some(1_418_000));
    }

    #[test]
    fn a_few_files_have_many_requests() {
        let workload = crate::workload::parse("media-clips(requests=20000)").unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for file in workload.readers() {
            *counts.entry(file).or_insert(0_u32) += 1;
        }
        let most = counts.values().max().copied().unwrap();
        // One of 18 octaves has the first file alone.
        assert!((1000..1250).contains(&most), "{most}");
        assert!(counts.len() > 8_000, "{}", counts.len());
    }
}
