//! Sample traces: made from a fixed seed, the same on every machine.
//!
//! Problem: an example over a trace can be run only by those who have the trace, and published ones are large and not
//! ours to hand out.
//!
//! Mechanism: a generator writes each sample as the lines of a published format. Example: `video` is 24 films of
//! 16 MiB, each read by one viewer in pieces of 128 KiB at 1.5 MB/s, with a jitter of a fifth of the time of a piece.

use std::fmt::Write;

use crate::random::Random;

/// A sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its name.
    pub name: &'static str,
    /// Makes its lines.
    pub text: fn() -> String,
}

/// The samples.
pub const LIST: [Sample; 3] = [
    Sample {
        name: "web",
        text: web,
    },
    Sample {
        name: "video",
        text: video,
    },
    Sample {
        name: "figure1",
        text: figure1,
    },
];

const SEED: u64 = 1;

/// Requests of `web`.
const REQUESTS: u64 = 6000;

/// In the format of the Storage Performance Council: a device of hot blocks, one that is read in runs, one at random.
fn web() -> String {
    let mut random = Random::new(SEED);
    let (mut text, mut micros, mut run) = (String::new(), 0u64, (0, 0));
    for _ in 0..REQUESTS {
        micros += 2_000 + random.below(16_000);
        let (device, block) = match random.below(4) {
            0 | 1 => {
                // The smallest of four random places is often a small one.
                let place = (0..4).map(|_| random.below(4_000)).min();
                (0, place.unwrap_or(0))
            }
            2 => {
                if run.1 == 0 {
                    run = (random.below(40) * 2_000, 8 + random.below(120));
                }
                run = (run.0 + 1, run.1 - 1);
                (1, run.0)
            }
            _ => (2, random.below(60_000)),
        };
        let op = if random.below(20) == 0 { 'w' } else { 'r' };
        let (sector, seconds) = (block * 16, micros as f64 / 1e6);
        let _ = writeln!(text, "{device},{sector},8192,{op},{seconds:.6}");
    }
    text
}

/// Viewers of `video`, reads of each, bytes of a read, and time between two at 1.5 MB/s.
const VIEWERS: u64 = 24;
const READS: u64 = 128;
const READ_BYTES: u64 = 128 << 10;
const PERIOD_US: u64 = 87_381;

/// Columns with a header.
fn video() -> String {
    let mut random = Random::new(SEED);
    let mut requests = Vec::new();
    for viewer in 0..VIEWERS {
        let begin = random.below(PERIOD_US * 8);
        for read in 0..READS {
            let jitter = random.below(PERIOD_US / 5);
            requests.push((begin + read * PERIOD_US + jitter, viewer, read * READ_BYTES));
        }
    }
    requests.sort_unstable();
    let mut text = "time_us,device,offset_bytes,bytes,op\n".to_owned();
    for (time, viewer, offset) in requests {
        let _ = writeln!(text, "{time},film-{viewer:02},{offset},{READ_BYTES},r");
    }
    text
}

/// Block and disk of each reference.
fn figure1() -> String {
    "0 0\n1 1\n2 0\n3 1\n4 0\n5 0\n".to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Records, Summary, read};
    use super::*;

    fn records(text: String, format: Option<&str>) -> Records {
        let format = format.map(|name| super::super::format::parse(name).unwrap());
        let bytes = Box::new(std::io::Cursor::new(text.into_bytes()));
        read("sample", bytes, format, &Options::default()).unwrap()
    }

    #[test]
    fn samples_are_read_by_their_own_formats_and_are_small() {
        for (sample, format, devices, reads) in [
            (LIST[0], None, 3, 5_746),
            (LIST[1], None, VIEWERS, VIEWERS * READS),
            (LIST[2], Some("plain"), 2, 6),
        ] {
            let text = (sample.text)();
            assert!(text.len() < 300_000, "{}: {}", sample.name, text.len());
            assert_eq!(text, (sample.text)(), "{}", sample.name);
            let memory = forerun_core::Bytes(8 << 20);
            let summary = Summary::of(records(text, format), 8192, memory).unwrap();
            assert_eq!(summary.reads, reads, "{}", sample.name);
            assert_eq!(summary.devices, devices, "{}", sample.name);
        }
    }
}
