//! Index search: queries of several keywords, answered from lists of postings read by turns.
//!
//! Published are the files (a mapping file of 522 MB, 18.5 GB of index in 8 partitions), the binary
//! search in the mapping file for each keyword, and that a query reads the lists of its keywords
//! sequentially and together. The prototype and its queries are not public, so the rest is assumed:
//!
//! ```text
//! keywords a query   1 2 3 4   with 25 30 25 20 %: 2.4 in the mean, as in Silverstein et al. 1999 for AltaVista
//! a keyword's list   64 KiB to 4 MiB (`octaves=6`), each octave as likely: 1 MiB in the mean, the range of the
//!                    microbenchmarks
//! which keyword      each octave of 2^17 ranks as likely (Zipf's law with exponent 1): a list has one place for ever
//! order of reads     lists are sorted by document and gone through together, as a merge does: a list twice as long
//!                    is read twice as fast, and all end with the last document
//! ```

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{ANNOUNCES, Draw, HANDLERS, READ, READ_NS, REQUESTS, Read, START_NS, Server, begins};
use crate::random::Random;
use crate::workload::{SEED, Step, Workload};

pub(in crate::workload) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "index-search",
        summary: "a server that intersects lists of postings, several streams a query",
        source: "li04 section 3.1; li05 section 4.1",
        unfit: "published seconds: queries and lists are assumed",
        knows: Knows::Online,
        params: &[
            HANDLERS,
            REQUESTS,
            READ_NS,
            START_NS,
            Param {
                name: "stops_early",
                summary: "1: lists are read at one pace until the shortest ends, 0: by document, all to the end",
                default: 0,
                min: 0,
                max: 1,
            },
            ANNOUNCES,
            Param {
                name: "octaves",
                summary: "lengths of lists: so many octaves below 4 MiB, each as likely",
                default: 6,
                min: 1,
                max: 10,
            },
            Param {
                name: "mapping_bytes",
                summary: "size of the mapping file; published are 522 MB",
                default: 522_000_000,
                min: PAGE,
                max: 1 << 40,
            },
            Param {
                name: "index_bytes",
                summary: "size of all partitions together; published are 18.5 GB",
                default: 18_500_000_000,
                min: PARTITIONS * PAGE,
                max: 1 << 41,
            },
            SEED,
        ],
    },
    build: |v| {
        let search = Search {
            read_ns: v.get("read_ns"),
            start_ns: v.get("start_ns"),
            stops_early: v.get("stops_early") == 1,
            octaves: v.get("octaves"),
            mapping: v.get("mapping_bytes"),
            partition: v.get("index_bytes") / PARTITIONS / PAGE * PAGE,
            seed: v.get("seed"),
        };
        Box::new(Server::new(
            search,
            v.get("announces"),
            v.get("handlers"),
            v.get("requests"),
        ))
    },
};

const PARTITIONS: u64 = 8;
const PAGE: u64 = 4096;
/// Of a look at a page of the mapping file: a few comparisons.
const LOOK_NS: u64 = 10_000;
/// Keywords, as a power of two: 131,072.
const KEYWORDS: u64 = 17;
/// No list is as long.
const LONGEST: u64 = 4 << 20;

#[derive(Clone, Debug)]
struct Search {
    read_ns: u64,
    start_ns: u64,
    stops_early: bool,
    octaves: u64,
    mapping: u64,
    partition: u64,
    seed: u64,
}

/// A list of postings.
#[derive(Clone, Copy)]
struct List {
    partition: u64,
    offset: u64,
    bytes: u64,
}

impl Search {
    fn keywords(&self, query: u64) -> Vec<u64> {
        let mut random = Random::part(!self.seed, query);
        let count = match random.below(100) {
            0..25 => 1,
            25..55 => 2,
            55..80 => 3,
            _ => 4,
        };
        let mut keyword = || {
            let first = 1 << random.below(KEYWORDS);
            random.between(first, 2 * first - 1)
        };
        (0..count).map(|_| keyword()).collect()
    }

    fn list(&self, keyword: u64) -> List {
        let mut random = Random::part(self.seed, keyword);
        let least = LONGEST >> (self.octaves - random.below(self.octaves));
        let bytes = random.between(least, 2 * least - 1) / PAGE * PAGE;
        let bytes = bytes.min(self.partition);
        let partition = random.below(PARTITIONS);
        let offset = random.below((self.partition - bytes) / PAGE + 1) * PAGE;
        List {
            partition,
            offset,
            bytes,
        }
    }

    /// The pages of the mapping file that the search for a keyword looks at.
    fn search(&self, keyword: u64) -> Vec<Step> {
        let mut random = Random::part(self.seed.rotate_left(32), keyword);
        let target = random.below(self.mapping / PAGE);
        let (mut low, mut high) = (0, self.mapping / PAGE);
        let mut steps = Vec::new();
        while low < high {
            let middle = low + (high - low) / 2;
            steps.push(Step::read(middle * PAGE, PAGE, LOOK_NS));
            match middle.cmp(&target) {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Greater => high = middle,
                core::cmp::Ordering::Equal => break,
            }
        }
        steps
    }
}

impl Search {
    /// The reads of lists that are gone through together.
    fn merge(&self, lists: &[List]) -> Vec<Read> {
        let shortest = lists.iter().map(|list| list.bytes).min().unwrap_or(0);
        let mut reads = Vec::new();
        for (number, list) in (1..).zip(lists) {
            // Documents are as dense at the end of a list as at its beginning.
            let (bytes, pace) = match self.stops_early {
                true => (shortest, shortest),
                false => (list.bytes, list.bytes),
            };
            for (at, part) in crate::workload::run(0, bytes, READ) {
                let document = (at << 20) / pace.max(1);
                let step = Step::read(list.offset + at, part, self.read_ns);
                reads.push((document, (number, step)));
            }
        }
        reads.sort_by_key(|(document, (number, _))| (*document, *number));
        reads.into_iter().map(|(_, read)| read).collect()
    }
}

impl Draw for Search {
    fn files(&self) -> Vec<Bytes> {
        let mut files = vec![Bytes(self.mapping)];
        files.extend([Bytes(self.partition); PARTITIONS as usize]);
        files
    }

    fn files_of(&self, request: u64) -> Vec<usize> {
        let keywords = self.keywords(request);
        let lists = keywords.iter().map(|keyword| self.list(*keyword).partition);
        core::iter::once(0)
            .chain(lists.map(|partition| 1 + partition as usize))
            .collect()
    }

    fn reads(&self, request: u64) -> Vec<Read> {
        let keywords = self.keywords(request);
        let searches = keywords.iter().flat_map(|keyword| self.search(*keyword));
        let mut reads: Vec<Read> = searches.map(|step| (0, step)).collect();
        let lists: Vec<List> = keywords.iter().map(|keyword| self.list(*keyword)).collect();
        reads.extend(self.merge(&lists));
        begins(reads, self.start_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: Search = Search {
        read_ns: 1,
        start_ns: 1,
        stops_early: false,
        octaves: 6,
        mapping: 522_000_000,
        partition: 2_312_499_200,
        seed: 3,
    };

    #[test]
    fn a_query_has_two_or_three_keywords_and_a_list_a_mebibyte() {
        let keywords: u64 = (0..10_000)
            .map(|query| SEARCH.keywords(query).len() as u64)
            .sum();
        assert!(keywords.abs_diff(24_000) < 300, "{keywords}");
        let lists: u64 = (0..10_000).map(|keyword| SEARCH.list(keyword).bytes).sum();
        assert!((lists / 10_000).abs_diff(1_008 << 10) < 40 << 10, "{lists}");
        let longest = (0..10_000).map(|keyword| SEARCH.list(keyword).bytes).max();
        assert!(longest < Some(4 << 20));
    }

    #[test]
    fn lists_have_the_octaves_below_4_mib() {
        for octaves in 1..=10 {
            let search = Search { octaves, ..SEARCH };
            let lists = (0..10_000).map(|keyword| search.list(keyword).bytes);
            let (least, most) = lists.fold((u64::MAX, 0), |(least, most), bytes| {
                (least.min(bytes), most.max(bytes))
            });
            let shortest = (4 << 20) >> octaves;
            assert!((shortest..2 * shortest).contains(&least), "{least}");
            assert!((3 << 20..4 << 20).contains(&most), "{most}");
        }
    }

    #[test]
    fn a_binary_search_looks_at_the_pages_it_halves() {
        for keyword in 1..200 {
            let steps = SEARCH.search(keyword);
            assert!(steps.len() <= 17, "{}", steps.len());
            assert_eq!(steps[0].offset.0, SEARCH.mapping / PAGE / 2 * PAGE);
        }
    }

    #[test]
    fn lists_are_gone_through_together_and_to_their_ends() {
        let workload = crate::workload::parse("index-search(requests=100)").unwrap();
        let owners = (0..workload.readers().len()).filter(|r| workload.owner(*r) == *r);
        for owner in owners {
            let reads: Vec<Step> = workload
                .steps(owner)
                .filter(|step| step.on.is_some())
                .collect();
            let lists = reads.iter().filter_map(|step| step.on).max().unwrap() - owner;
            // Every list begins in the first reads, and one of at least four reads ends no earlier
            // than half-way.
            let first: Vec<_> = reads[..lists].iter().map(|step| step.on).collect();
            let all: Vec<_> = (1..=lists).map(|list| Some(owner + list)).collect();
            assert_eq!(first, all);
            for list in all {
                let at = |(at, step): (usize, &Step)| (step.on == list).then_some(at);
                let of_list: Vec<usize> = reads.iter().enumerate().filter_map(at).collect();
                let last = of_list.last().copied();
                assert!(
                    of_list.len() < 4 || last >= Some(reads.len() / 2),
                    "{of_list:?}"
                );
            }
        }
        let early = crate::workload::parse("index-search(requests=100,stops_early=1)").unwrap();
        let bytes = |workload: &dyn Workload| -> u64 {
            let all = (0..workload.readers().len()).flat_map(|r| workload.steps(r));
            all.map(|step| step.bytes.0).sum()
        };
        assert!(bytes(&*early) < bytes(&*workload) / 2);
    }
}
