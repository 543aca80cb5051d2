//! The runs of the paper, by its own names: scheme, largest prefetch and strip in KB, readers.

use forerun_core::{Bytes, Nanos};

use super::super::array::{ArrayReport, ArrayRun, Host, RUN, SAMPLE};
use super::super::lab::Lab;

/// Processor time of a read of 4 KiB: two copies (cache of the RAID driver, page cache) at some 2 GB/s each and
/// a system call, on the Xeon of 3 GHz. An assumption: with 3 or 5 us one stream is as fast.
const THINK_NS: u64 = 4_000;

/// The files of IOzone, and of the web server, together.
const TOTAL: u64 = 8 << 30;

/// Repetitions where runs differ by where threads begin; the paper has ten.
const SEEDS: u64 = 10;
const SEEDS_OF_SAMPLE: u64 = 3;

/// A load on the array: scheme, prefetch and strip.
#[derive(Clone, Debug)]
pub(super) struct Scheme {
    pub(super) preset: &'static str,
    pub(super) shape: Option<String>,
    pub(super) prefetch_kb: u64,
    pub(super) strip_kb: u64,
    pub(super) host: Host,
}

pub(super) const SEQP: &str = "seqp";
pub(super) const SASEQP: &str = "saseqp";
pub(super) const MSP_SEQP: &str = "msp+seqp";
pub(super) const MSP_SASEQP: &str = "msp+saseqp";

impl Scheme {
    pub(super) fn new(preset: &'static str, prefetch_kb: u64, strip_kb: u64) -> Self {
        Self {
            preset,
            shape: None,
            prefetch_kb,
            strip_kb,
            host: Host::default(),
        }
    }

    pub(super) fn on(self, host: Host) -> Self {
        Self { host, ..self }
    }

    /// The longest window: so far ahead a kernel needs to know where data lie.
    fn window_kb(&self) -> u64 {
        match self.preset {
            SASEQP | MSP_SASEQP => self.prefetch_kb.min(self.strip_kb),
            _ => self.prefetch_kb,
        }
    }

    fn run(&self, lab: &Lab, workload: String) -> ArrayRun {
        ArrayRun {
            workload,
            preset: self.preset,
            shape: self.shape.clone(),
            prefetch: Bytes(self.prefetch_kb << 10),
            strip: Bytes(self.strip_kb << 10),
            host: self.host,
            is_aligned: false,
            time: if lab.is_sample { SAMPLE } else { RUN },
        }
    }
}

/// IOzone: a given number of streams over 8 GB.
pub(super) fn iozone(lab: &mut Lab, scheme: &Scheme, streams: u64) -> ArrayReport {
    // MSP works on the array's blocks: its stripes hold the pointers too, while it is at work.
    let metadata = match scheme.preset {
        MSP_SEQP | MSP_SASEQP if streams == 1 => 2,
        _ => 1,
    };
    let ahead = scheme.window_kb() << 10;
    let workload = format!(
        "iozone(total_bytes={TOTAL},streams={streams},think_ns={THINK_NS},metadata={metadata},\
         ahead_bytes={ahead})"
    );
    let run = scheme.run(lab, workload);
    // A single stream is still at its beginning after a sample's time.
    let time = if streams == 1 { RUN } else { run.time };
    lab.array(ArrayRun { time, ..run })
}

/// IOzone with one stream and no blocks of pointers.
pub(super) fn bare(lab: &mut Lab, scheme: &Scheme) -> ArrayReport {
    let workload = format!("iozone(total_bytes={TOTAL},think_ns={THINK_NS},metadata=0)");
    let run = scheme.run(lab, workload);
    lab.array(ArrayRun { time: RUN, ..run })
}

/// The web server of section 5.4: 32 threads, 8 GB of files of this mean size.
pub(super) fn web(lab: &mut Lab, scheme: &Scheme, mean_kb: u64) -> ArrayReport {
    let mean = mean_kb << 10;
    // More than there is time for.
    let opens = (4 << 30) / mean + 1_000;
    let workload = format!(
        "web-server(files={},mean_bytes={mean},threads=32,opens={opens},think_ns={THINK_NS})",
        TOTAL / mean
    );
    lab.array(scheme.run(lab, workload))
}

/// Direct reads of a given number of strips by a given number of threads, aligned: MB/s, the mean
/// over where they begin.
pub(super) fn direct(lab: &mut Lab, threads: u64, strips: u64, strip_kb: u64) -> f64 {
    let bytes = strips * (strip_kb << 10);
    let requests = TOTAL / threads / bytes;
    let seeds = if lab.is_sample {
        SEEDS_OF_SAMPLE
    } else {
        SEEDS
    };
    // Up to 128 MiB are in flight when the time is over, and not counted: a tenth of what is read in a run of one length.
    let time = if threads > 1 { Nanos(2 * RUN.0) } else { RUN };
    let rates = (1..=seeds).map(|seed| {
        let workload = format!(
            "direct-reads(threads={threads},request_bytes={bytes},requests={requests},seed={seed})"
        );
        let run = Scheme::new("none", strip_kb, strip_kb).run(lab, workload);
        let run = ArrayRun {
            is_aligned: true,
            time,
            ..run
        };
        lab.array(run).rate()
    });
    rates.sum::<f64>() / seeds as f64
}

/// How many times the bandwidth of the other it is; 0 as long as there is none.
pub(super) fn times(one: ArrayReport, other: ArrayReport) -> f64 {
    one.rate() / other.rate().max(1e-9)
}
