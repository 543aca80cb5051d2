//! B6, B7 and B9: the web server.

use super::super::Answer;
use super::super::array::Host;
use super::super::lab::Lab;
use super::super::numbers::{answer, best, judged, least, rounded};
use super::scenes::{SASEQP, SEQP, Scheme, times, web};
use super::streams::elsewhere;

/// Prefetch sizes of B6 and B7.
const AT_128: [u64; 4] = [64, 128, 256, 512];
const AT_64: [u64; 5] = [32, 64, 128, 256, 512];
/// Mean size of the files: music.
pub(super) const MUSIC_KB: u64 = 4096;
/// Mean sizes of Figures 10d to 10f.
pub(super) const SIZES_KB: [u64; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
/// Prefetch size of Figures 10d to 10f.
pub(super) const PREFETCH_KB: u64 = 64;
/// Strips below which a file is said to be too short for SASEQP, strips from which on it is long, and the part
/// of the gain there that is still little.
const FEW_STRIPS: u64 = 4;
const MANY_STRIPS: u64 = 16;
const LITTLE: f64 = 1.0 / 3.0;

fn ratios(lab: &mut Lab, host: Host, strip: u64, prefetches: &[u64]) -> Vec<f64> {
    let ratio = |prefetch: &u64| {
        let mut run = |preset| {
            let scheme = Scheme::new(preset, *prefetch, strip).on(host);
            web(lab, &scheme, MUSIC_KB)
        };
        let (seqp, saseqp) = (run(SEQP), run(SASEQP));
        rounded(times(saseqp, seqp), 2)
    };
    prefetches.iter().map(ratio).collect()
}

pub(super) fn b6(lab: &mut Lab) -> Answer {
    let measured = ratios(lab, Host::default(), 128, &AT_128);
    let others = elsewhere(lab, |lab, host| ratios(lab, host, 128, &AT_128));
    let note = format!(
        "where the sizes match, as published. Windows of half a strip: SASEQP makes one access of a strip, its halves \
         asked for one after the other while the disk waits, and SEQP up to three; three to one is the most there can \
         be, and the published 3.1 is above it. Longer windows: see B3; {others}"
    );
    answer(measured, note)
}

pub(super) fn b7(lab: &mut Lab) -> Answer {
    let measured = ratios(lab, Host::default(), 64, &AT_64);
    let others = elsewhere(lab, |lab, host| ratios(lab, host, 64, &AT_64));
    let note = format!(
        "as B6. Windows of 512 KB hold eight strips of 64, two of them on most disks and there in one run, where \
         SASEQP512 reads one. That this puts it below 1 is not established: it stays below 1 by each change that \
         follows; {others}"
    );
    answer(measured, note)
}

pub(super) fn b9(lab: &mut Lab) -> Answer {
    let mut gains = Vec::new();
    for size in SIZES_KB {
        let mut run = |preset| web(lab, &Scheme::new(preset, PREFETCH_KB, 128), size);
        let (seqp, saseqp) = (run(SEQP), run(SASEQP));
        gains.push(rounded(times(saseqp, seqp), 2));
    }
    let gain_at = |is_in: &dyn Fn(u64) -> bool| -> Vec<f64> {
        let all = SIZES_KB.iter().zip(&gains);
        let all = all.filter(|(size, _)| is_in(**size));
        all.map(|(_, gain)| *gain - 1.0).collect()
    };
    let few = gain_at(&|size| size < FEW_STRIPS * 128);
    let many = gain_at(&|size| size >= MANY_STRIPS * 128);
    let holds = best(&few) <= LITTLE * least(&many);
    let note = format!(
        "SASEQP over SEQP, files of 64 KB to 4 MB on average: half a strip, 1, 2, 4, 8, 16 and 32 strips. Sizes have a \
         gamma distribution, so of a mean of 256 KB a ninth of the files, with a third of the bytes, is longer than four \
         strips; SASEQP's gain is one access for the two halves of a strip, which a file of one strip has already. The \
         most below 4 strips is {:.2} of the least at 16 and more",
        best(&few) / least(&many).max(1e-9)
    );
    judged(holds, gains, note)
}
