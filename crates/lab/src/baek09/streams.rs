//! B3, B4, B5, B8 and B10: sequential readers, and reads past the page cache.

use super::super::Answer;
use super::super::array::Host;
use super::super::lab::Lab;
use super::super::numbers::{answer, judged, rounded, shown};
use super::scenes::{self, MSP_SASEQP, SASEQP, SEQP, Scheme, direct, iozone, times};

/// Prefetch and strip of Figures 8a, 8b, 8d, 8e.
pub(super) const PANELS: [(u64, u64); 4] = [(128, 128), (512, 128), (128, 256), (512, 256)];
/// Prefetch sizes of Figure 8c.
pub(super) const PREFETCHES: [u64; 6] = [32, 64, 128, 256, 512, 1024];
const MANY: u64 = 64;

/// Other hosts, for notes.
pub(super) const OTHERS: [(Host, &str); 4] = [
    (Host::Unmerged, "with no request merged"),
    (Host::Elevator, "by an elevator that never waits"),
    (Host::Fcfs, "in the order of arrival"),
    (
        Host::NoReadingOn,
        "on drives that do not read on by themselves",
    ),
];

/// The hosts of the notes.
fn others(lab: &Lab) -> &'static [(Host, &'static str)] {
    if lab.has_notes() { &OTHERS } else { &[] }
}

/// The same ratios on the other hosts.
pub(super) fn elsewhere(
    lab: &mut Lab,
    mut ratios: impl FnMut(&mut Lab, Host) -> Vec<f64>,
) -> String {
    let others = others(lab).iter();
    let all: Vec<String> = others
        .map(|(host, name)| format!("{name} {}", shown(&ratios(lab, *host))))
        .collect();
    all.join("; ")
}

fn many(lab: &mut Lab, host: Host) -> Vec<f64> {
    let ratio = |(prefetch, strip)| {
        let mut rate = |preset| {
            let scheme = Scheme::new(preset, prefetch, strip).on(host);
            iozone(lab, &scheme, MANY)
        };
        let (seqp, saseqp) = (rate(SEQP), rate(SASEQP));
        rounded(times(saseqp, seqp), 2)
    };
    PANELS.map(ratio).to_vec()
}

pub(super) fn b3(lab: &mut Lab) -> Answer {
    let measured = many(lab, Host::default());
    let others = elsewhere(lab, many);
    let switched = |lab: &mut Lab, preset| {
        let run = iozone(lab, &Scheme::new(preset, 512, 128), MANY);
        run.bytes.0 as f64 / 1024.0 / run.switches.max(1) as f64
    };
    let (seqp, saseqp) = (switched(lab, SEQP), switched(lab, SASEQP));
    let note = format!(
        "windows of 512 KB gain for SEQP here, and lose in the paper. Two of them are on the way for each \
         reader (the next one is asked for when the reader comes to the first block of the one before, which \
         is not there yet), so two strips of one disk lie in its queue, one right behind the other, and are read in \
         one go: {seqp:.0} KiB from one switch to the next against {saseqp:.0} of SASEQP512. The paper's numbers \
         need each strip to cost an access of its own, though the queue holds the next. {others}. The authors' \
         RAID driver, with a cache of its own, is not described"
    );
    answer(measured, note)
}

fn one(lab: &mut Lab, preset: &'static str, prefetch: u64) -> super::super::array::ArrayReport {
    iozone(lab, &Scheme::new(preset, prefetch, 128), 1)
}

pub(super) fn b4(lab: &mut Lab) -> Answer {
    let (both, alone) = (one(lab, MSP_SASEQP, 128), one(lab, SASEQP, 128));
    let bare = |lab: &mut Lab, preset| scenes::bare(lab, &Scheme::new(preset, 128, 128));
    let without = times(bare(lab, MSP_SASEQP), bare(lab, SASEQP));
    let note = format!(
        "{:.0} and {:.0} MB/s. SASEQP has one strip on the way while it reads another: one disk works at a time. With MSP all disks \
         read as fast as they can, and its stripes hold the blocks of pointers too: without pointers {without:.2}",
        both.rate(),
        alone.rate()
    );
    answer(vec![rounded(times(both, alone), 2)], note)
}

pub(super) fn b5(lab: &mut Lab) -> Answer {
    let (long, short) = (one(lab, SEQP, 512), one(lab, SEQP, 128));
    let bare =
        |lab: &mut Lab, prefetch| scenes::bare(lab, &Scheme::new(SEQP, prefetch, 128)).rate();
    let (bare_long, bare_short) = (bare(lab, 512), bare(lab, 128));
    let note = format!(
        "{:.0} and {:.0} MB/s. A reader stops at each block of pointers, which its windows do not hold: without these \
         {bare_long:.0} and {bare_short:.0}. Both hang on how far a drive reads on by itself, which is reported and \
         not published (128 KiB)",
        long.rate(),
        short.rate()
    );
    answer(vec![rounded(times(long, short), 2)], note)
}

pub(super) fn b8(lab: &mut Lab) -> Answer {
    let rates = |lab: &mut Lab, host: Host| {
        let rate = |prefetch| {
            let scheme = Scheme::new(SEQP, prefetch, 128).on(host);
            rounded(iozone(lab, &scheme, MANY).rate(), 0)
        };
        PREFETCHES.map(rate).to_vec()
    };
    let measured = rates(lab, Host::default());
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let holds = measured[2] >= best(&measured);
    let whole = |rates: Vec<f64>| {
        let all: Vec<String> = rates.iter().map(f64::to_string).collect();
        all.join(", ")
    };
    let others: Vec<String> = others(lab)
        .iter()
        .map(|(host, name)| format!("{name} {}", whole(rates(lab, *host))))
        .collect();
    let note = format!(
        "MB/s with prefetch sizes of 32 to 1024 KB. Longer windows are read in longer runs, see B3; {}",
        others.join("; ")
    );
    judged(holds, measured, note)
}

/// Threads and strips a request of Figure 9.
pub(super) const STRIPS: [u64; 3] = [1, 2, 4];

pub(super) fn b10(lab: &mut Lab) -> Answer {
    let mut rates = |threads| STRIPS.map(|strips| rounded(direct(lab, threads, strips, 128), 1));
    let (many, single) = (rates(256), rates(1));
    let most = many.iter().copied().fold(0.0, f64::max);
    let least = many.iter().copied().fold(f64::MAX, f64::min);
    let is_rising = single.windows(2).all(|pair| pair[0] < pair[1]);
    let twice = direct(lab, 256, 1, 256);
    let note = format!(
        "MB/s with 256 threads, then with one; strips of 256 KB, one a request, 256 threads: {twice:.1}"
    );
    judged(
        most <= least * 1.05 && is_rising,
        [many, single].concat(),
        note,
    )
}
