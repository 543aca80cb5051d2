//! Differences between the methods of papers as they were written and ours, one entry a rule.
//!
//! Printed by `forerun list NAME`, and as the table of `docs/DIFFERENCES.md`, which a test compares with these entries.
//! An effect is a result of the command beside it.

/// A rule that ours have otherwise.
#[derive(Debug)]
pub struct Difference {
    /// Where those are: `presets`, or families of methods.
    pub families: &'static [&'static str],
    /// Methods and presets that have it.
    pub methods: &'static [&'static str],
    /// The paper, and where it has the rule.
    pub source: &'static str,
    /// The paper's rule.
    pub rule: &'static str,
    /// Ours.
    pub ours: &'static str,
    /// Its effect.
    pub effect: &'static str,
    /// The command that shows it.
    pub command: &'static str,
}

impl Difference {
    /// A row of the table of `docs/DIFFERENCES.md`.
    #[must_use]
    pub fn row(&self) -> String {
        let methods: Vec<String> = self
            .methods
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        format!(
            "| {} | {} | {} | {} | {}: `{}` |",
            methods.join(", "),
            self.source,
            self.rule,
            self.ours,
            self.effect,
            self.command
        )
    }
}

/// Those of a method of a family, or of a preset.
pub fn of(family: &str, name: &str) -> impl Iterator<Item = &'static Difference> {
    let has =
        move |one: &&Difference| one.families.contains(&family) && one.methods.contains(&name);
    LIST.iter().filter(has)
}

/// The differences. One entry a rule.
pub static LIST: &[Difference] = &[
    Difference {
        families: &["presets"],
        methods: &["forerun", "once", "mount", "growing"],
        source: "Li et al. 2004, section 2",
        rule: "A window is the competitive depth, however long a stream has been.",
        ours: "It grows to a quarter of the bytes consumed while the reader waits.",
        effect: "52.9 MB/s become 76.6",
        command: "forerun bench --emulate switching=8ms,rate=80MB/s --clock virtual --readers 10 --file-bytes 100MB --memory 256MiB --preset cp,forerun",
    },
    Difference {
        families: &["presets"],
        methods: &[
            "cp",
            "ap",
            "access-history",
            "pc-access-history",
            "pc-longest",
            "pc-coldest",
            "pc-coldest+",
            "pc-optimal",
        ],
        source: "Li et al. 2004, section 3.2; Li and Shen 2005, section 4",
        rule: "Streams are found by the readahead of Linux 2.6.3 and 2.6.10.",
        ours: "The presets have on-demand readahead of Linux 2.6.23; `reproduce` puts the kernel's in its place.",
        effect: "C4 is 2.15 by Linux 2.6.3's readahead and 2.43 by ours, which is the same command with `--with detect=ondemand`",
        command: "forerun-lab reproduce li04 --only C4",
    },
    Difference {
        families: &["presets"],
        methods: &["cp", "ap"],
        source: "Li et al. 2004, section 2",
        rule: "A stream begins with 16 pages, which are doubled.",
        ours: "The first window follows the size of the read (Wu 2010, section 4.3): 32 pages for reads of 16. `reproduce` has the paper's.",
        effect: "10 readers of 1 MB get 19.0 MB/s by the paper's beginning and 27.4 by ours, which is the same command without `--detect`",
        command: "forerun bench --emulate switching=8ms,rate=80MB/s --clock virtual --readers 10 --file-bytes 1MB --memory 256MiB --preset cp \
             --detect 'linux-2.6.3(slow_start=1)'",
    },
    Difference {
        families: &["reclaim"],
        methods: &["fifo", "longest", "coldest", "coldest-cpu", "furthest"],
        source: "Li and Shen 2005, sections 3.1 and 3.3",
        rule: "A page taken from the prefetch cache goes to the ordinary cache, pages of ended owners go first only beyond the \
               allocation, and the eviction history has an entry for each of 40 % of the pages.",
        ours: "It is evicted at once, they go first always, and the history has 8 %. The presets `pc-..` have the paper's rules.",
        effect: "PC-AccessHistory over AccessHistory in Two-Rand, the third pair of P5, is at least 0.73 by ours and 1.11 by the paper's, which is the same command with the seed alone",
        command: "forerun-lab reproduce li05 --only P5 --with seed=1 --with reclaims=0 --with ended-first=1 --with history=8",
    },
    Difference {
        families: &["reclaim"],
        methods: &["fifo", "longest", "coldest", "coldest-cpu", "furthest"],
        source: "Li and Shen 2005, section 3.2",
        rule: "The part moves on in its direction, or back if the miss rate rose. Step, margin and epoch are not given; the first direction is drawn.",
        ours: "It stays at 25 %; the presets `pc-..` have steps of 2 %, 10 % and 1 s. The first step is up, an epoch without a miss moves nothing, an end turns it back.",
        effect: "P4 is 1.54, 1.52 by steps of 2 %, 1.55, 1.50 by 1 % and 1.53, 1.36 by 5 % (seed 1)",
        command: "forerun-lab reproduce li05 --only P4 --with seed=1 --with step=1",
    },
    Difference {
        families: &["presets", "shape"],
        methods: &["stripe", "both", "msp+seqp", "msp+saseqp"],
        source: "Baek and Park 2009, section 4",
        rule: "The counter of sequential strips is kept at each block of the array that is read.",
        ours: "It is kept at the strips of windows, and a window of the file is widened.",
        effect: "MSP has the blocks of pointers in its stripes only in the paper; B4 is 2.65, and 2.25 on files without pointers (in its note)",
        command: "forerun-lab reproduce baek09 --only B2,B4",
    },
    Difference {
        families: &["hinted"],
        methods: &["forestall"],
        source: "Kimbrel et al. 1996, section 5",
        rule: "A disk that is free gets a batch.",
        ours: "A disk that is busy with a fetch of the horizon rule gets one, too.",
        effect: "by the published rule forestall is up to 18.2 % slower than the better of fixed horizon and aggressive, and 4.8 % by ours",
        command: "forerun-lab reproduce kimbrel96 --only K12",
    },
    Difference {
        families: &["presets", "detect"],
        methods: &["forerun", "once", "mount", "ondemand"],
        source: "Wu 2010, section 4.3",
        rule: "A stream whose reads lie between those of others is found by two reads in a row.",
        ours: "With `context` and `patterns` its second read is enough where the first one ended, and its first window has no ramp.",
        effect: "8 streams in strict turn take 13.7 s with Linux's rule and 2.5 s with ours",
        command: "forerun simulate --workload 'interleaved(streams=8,opening_reads=1)' --preset linux-2.6.24,forerun",
    },
    Difference {
        families: &["presets", "detect"],
        methods: &["forerun", "once", "mount", "ondemand"],
        source: "Wu 2010, section 4.3",
        rule: "The next window is twice as long, or four times.",
        ours: "With `patterns` it is twice that on a store that has several servers for the stream: in several requests it takes no longer.",
        effect: "10 MB of `forerun-bed store --objects a=1x10MB` take 0.17 s by Linux's rule and 0.13 s by ours, which is the same command without `--detect`",
        command: "forerun read s3://bed/a/000000 --anonymous --preset forerun --read-bytes 64KiB --stats --detect ondemand",
    },
];
