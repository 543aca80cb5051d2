//! W2 to W7: one stream with random reads in between, and interleaved streams.

use forerun_core::Bytes;

use super::super::Answer;
use super::super::drive::DriveReport;
use super::super::lab::Lab;
use super::super::numbers::{answer, rounded, shown};
use super::scenes::{BOTH, Bench, LEGACY, ON_DEMAND};

/// Streams of W4.
const STREAMS: [u64; 4] = [1, 2, 3, 10];
const MANY: u64 = 10;
/// The last figure of W4.
const LEGACY_AT_10: f64 = 0.81;

/// One assumption changed.
type Change = fn(Bench) -> Bench;

/// The changes of the notes, one at a time.
const CHANGES: [(&str, Change); 5] = [
    ("4 us of processor a read", |bench| Bench {
        think_ns: 4_000,
        ..bench
    }),
    ("files at the outer edge", |bench| Bench {
        location: Bytes(0),
        ..bench
    }),
    ("files at three quarters", |bench| Bench {
        location: Bytes(120_000_000_000),
        ..bench
    }),
    ("requests up to 1 MB", |bench| Bench {
        request: Bytes(1 << 20),
        ..bench
    }),
    ("all of the streams read", |bench| Bench {
        is_whole: true,
        ..bench
    }),
];

/// The same numbers with one assumption changed, a change after the other; nothing where notes have no runs: a condition
/// that was changed from outside would stand in the place of each.
fn otherwise(
    lab: &mut Lab,
    changes: &[(&str, Change)],
    numbers: impl Fn(&mut Lab, Change) -> Vec<f64>,
) -> String {
    if !lab.has_notes() {
        return String::new();
    }
    let one =
        |(name, change): &(&str, Change)| format!("{name}: {}", shown(&numbers(lab, *change)));
    let all: Vec<String> = changes.iter().map(one).collect();
    all.join("; ")
}

fn rate(run: &DriveReport) -> f64 {
    rounded(run.rate(), 2)
}

fn mixed(lab: &mut Lab, random_mb: u64, change: Change) -> Vec<f64> {
    let one = |preset| rate(&change(Bench::new(preset)).intermixed(lab, random_mb));
    BOTH.map(one).to_vec()
}

pub(super) fn w2(lab: &mut Lab) -> Answer {
    intermixed(lab, 1)
}

pub(super) fn w3(lab: &mut Lab) -> Answer {
    intermixed(lab, 10)
}

fn intermixed(lab: &mut Lab, random_mb: u64) -> Answer {
    let measured = mixed(lab, random_mb, |bench| bench);
    let others = otherwise(lab, &CHANGES[..4], |lab, change| {
        mixed(lab, random_mb, change)
    });
    let size = |lab: &mut Lab, preset| Bench::new(preset).intermixed(lab, random_mb).request_kb();
    let (legacy, on_demand) = (size(lab, LEGACY), size(lab, ON_DEMAND));
    let note = format!(
        "on-demand is {:.1} % ahead (the paper: {}); requests of {legacy:.0} and {on_demand:.0} KB. {others}",
        (measured[1] / measured[0].max(1e-9) - 1.0) * 100.0,
        if random_mb == 1 { "28.9" } else { "25.4" },
    );
    answer(measured, note)
}

fn rates(lab: &mut Lab, preset: &'static str, streams: &[u64], change: Change) -> Vec<f64> {
    let bench = change(Bench::new(preset));
    let one = |streams: &u64| rate(&bench.interleaved(lab, *streams));
    streams.iter().map(one).collect()
}

fn by_turns(bench: Bench) -> Bench {
    Bench {
        is_by_turns: true,
        ..bench
    }
}

pub(super) fn w4(lab: &mut Lab) -> Answer {
    let measured = rates(lab, LEGACY, &STREAMS, |bench| bench);
    if !lab.has_notes() {
        return answer(measured, "each read is of a stream drawn at random");
    }
    let others = otherwise(lab, &CHANGES, |lab, change| {
        rates(lab, LEGACY, &STREAMS, change)
    });
    let turns = rates(lab, LEGACY, &STREAMS, by_turns);
    let far = rates(lab, LEGACY, &STREAMS, |bench| Bench {
        apart: 1_000_000_000,
        ..bench
    });
    let turns_on_demand = rates(lab, ON_DEMAND, &STREAMS, by_turns);
    let run = Bench::new(LEGACY).interleaved(lab, MANY);
    let ms = run.busy.0 as f64 / 1e6 / run.requests.max(1) as f64;
    let note = format!(
        "each read is of a stream drawn at random. By turns legacy reads {} MB/s and on-demand {}: two reads of one \
         stream never follow each other, so neither opens a window, and on-demand is not the one that \"is not \
         affected\". At 10 streams a request of {:.1} KB takes {ms:.2} ms here, a seek and half a turn; 0.81 MB/s need \
         {:.2}. With the streams 1 GB apart, not 100 MB, {}: so long are the seeks that would give it. The controller's 0.1 ms of a read have no source of their own; \
         the drive's manual (Hitachi Deskstar T7K250 specification 1.8, 2006, section 4.5.5.2) has 54.6 s for 4,096 reads of a sector \
         at random places, 105 % of the sum of its parts, so that controller and mean seek take 8.52 ms, where the model has 8.6. {others}",
        shown(&turns),
        shown(&turns_on_demand),
        run.request_kb(),
        ms * run.rate() / LEGACY_AT_10,
        shown(&far),
    );
    answer(measured, note)
}

pub(super) fn w5(lab: &mut Lab) -> Answer {
    let ends = [1, MANY];
    let measured = rates(lab, ON_DEMAND, &ends, |bench| bench);
    let others = otherwise(lab, &CHANGES, |lab, change| {
        rates(lab, ON_DEMAND, &ends, change)
    });
    let note = format!(
        "a request that continues the one before comes a little too late for the head, and costs a turn: so 512 KiB \
         a request give one stream half of the drive's rate. Ten streams of which 10 MB each are read pay for single \
         reads until two of one stream follow each other, and for the ramp. {others}"
    );
    answer(measured, note)
}

pub(super) fn w6(lab: &mut Lab) -> Answer {
    let on = |lab: &mut Lab, change: Change| {
        let one = |preset| rate(&change(Bench::new(preset).reading_on()).interleaved(lab, MANY));
        BOTH.map(one).to_vec()
    };
    let measured = on(lab, |bench| bench);
    let others = otherwise(lab, &CHANGES, on);
    let segments: [(&str, Change); 2] = [
        ("for 256 KiB", |bench| Bench {
            reading_on: Bytes(256 << 10),
            ..bench
        }),
        ("for 512", |bench| Bench {
            reading_on: Bytes(512 << 10),
            ..bench
        }),
    ];
    let segments = otherwise(lab, &segments, on);
    let fit = "how far the drive reads on is not published, and 128 KiB were chosen of 128, 256 and 512 by these two figures";
    let fit = [fit, &segments].into_iter().filter(|part| !part.is_empty());
    let fit: Vec<&str> = fit.collect();
    let note = format!(
        "the drive has 16 segments for 10 streams and reads on while nothing else is asked of it, so that legacy hangs \
         on the time between two reads. {others}"
    );
    answer(measured, note).fitted(fit.join("; "))
}

fn delays(lab: &mut Lab, change: Change) -> Vec<f64> {
    let mut numbers = Vec::new();
    for preset in BOTH {
        let bench = change(Bench::new(preset));
        numbers.extend([1, MANY].map(|n| rounded(bench.interleaved(lab, n).delay_s(), 2)));
    }
    numbers
}

pub(super) fn w7(lab: &mut Lab) -> Answer {
    let measured = delays(lab, |bench| bench);
    let others = otherwise(lab, &CHANGES[1..], delays);
    let without = otherwise(lab, &CHANGES[..1], delays);
    let mut fit = "the processor time of a read, 26 us, is the difference of these figures to the run times of Figure 13: 100 MB at \
         28.32 MB/s less 2.89 s, and at 24.95 less 3.36, are 0.64 and 0.65 s"
        .to_owned();
    if !without.is_empty() {
        fit += &format!(". With a system call's and a copy's, {without}");
    }
    answer(measured, format!("seconds for each 100 MB. {others}")).fitted(fit)
}
