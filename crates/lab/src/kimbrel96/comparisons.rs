//! K11 to K13: every method on every trace and array, against each other.

use super::super::Answer;
use super::super::lab::{CSCOPE_3_EVEN, Lab};
use super::methods::{
    AGGRESSIVE, DEMAND, FORESTALL, FORESTALL_FREE, HORIZON, REVERSE, TRACES, arrays, better,
    compared, grid,
};
use super::numbers::{judged, rounded, service_ms, slower_percent};

/// The beginning of every note of a comparison.
pub(super) const STOOD_IN: &str = "nine of ten traces are stand-ins";

/// The most that forestall may be slower (K12).
const FORESTALL_PERCENT: f64 = 2.0;
/// The most that reverse aggressive may be slower and faster (K13).
const REVERSE_PERCENT: [f64; 2] = [3.6, -10.7];
/// The trace whose compute times come in bursts.
const BURSTY: &str = "cscope3";

/// The largest of a method's time over demand's.
pub(super) fn k11(lab: &mut Lab) -> Answer {
    let mut worst = (0.0, String::new());
    for trace in TRACES {
        for disks in arrays(lab).iter().copied() {
            let demand = lab.run(trace, DEMAND, disks).elapsed.0.max(1) as f64;
            for method in [HORIZON, AGGRESSIVE, REVERSE, FORESTALL] {
                let ratio = compared(lab, method, trace, disks).elapsed.0 as f64 / demand;
                if ratio > worst.0 {
                    worst = (ratio, format!("{method} on {trace}, {}", array(disks)));
                }
            }
        }
    }
    let note = format!(
        "{STOOD_IN}; the largest elapsed time of a prefetching method over optimal demand \
         fetching's, 4 methods on 10 traces and {} arrays: of {}",
        arrays(lab).len(),
        worst.1
    );
    judged(worst.0 < 1.0, vec![rounded(worst.0, 3)], note)
}

/// By how much per cent forestall is slower than the better of the two, at most and at least, and where above
/// the limit.
fn forestall(lab: &mut Lab, policy: &str) -> (f64, f64, Vec<(&'static str, u16, f64)>) {
    let (mut worst, mut best) = (f64::MIN, f64::MAX);
    let mut above = Vec::new();
    for trace in TRACES {
        for disks in arrays(lab).iter().copied() {
            let better = better(lab, trace, disks);
            let slower = slower_percent(&lab.run(trace, policy, disks), &better);
            worst = f64::max(worst, slower);
            best = f64::min(best, slower);
            if slower > FORESTALL_PERCENT {
                above.push((trace, disks, slower));
            }
        }
    }
    (worst, best, above)
}

/// One place where forestall is too slow: with F' = F, and the time of its accesses.
fn explained(lab: &mut Lab, (trace, disks, slower): (&'static str, u16, f64)) -> String {
    let plain = lab.run(trace, "forestall(slow_factor=1)", disks);
    let better = better(lab, trace, disks);
    let run = lab.run(trace, FORESTALL, disks);
    format!(
        "{trace} on {} {slower:.1} ({:.1}; {:.1} ms; {} and {})",
        array(disks),
        slower_percent(&plain, &better),
        service_ms(&run),
        run.fetches(),
        plain.fetches(),
    )
}

/// By how much per cent forestall is slower than the better of the two, at most.
pub(super) fn k12(lab: &mut Lab) -> Answer {
    let (worst, best, above) = forestall(lab, FORESTALL);
    let (free_worst, free_best, free_above) = forestall(lab, FORESTALL_FREE);
    let count = above.len();
    let reasons: Vec<String> = above.into_iter().map(|one| explained(lab, one)).collect();
    let reason = match count {
        0 => String::new(),
        _ => format!(
            ". Above {FORESTALL_PERCENT} are {count} places: {} (in brackets: with F' = F; a disk's time for an \
             access, from 5 ms on F' = 4 F; fetches with F' = 4 F and with F' = F, half a millisecond of \
             processor each)",
            reasons.join(", ")
        ),
    };
    let free = match free_above.as_slice() {
        [] => "nowhere".to_owned(),
        above => {
            let most = above.iter().copied();
            let most = most.reduce(|most, next| if next.2 > most.2 { next } else { most });
            let at = most.map_or_else(String::new, |(trace, disks, _)| {
                format!(", most on {trace}, {}", array(disks))
            });
            format!("at {} places{at}", above.len())
        }
    };
    let note = format!(
        "{STOOD_IN}; per cent slower than the better one, most and least over {} traces and {} \
         arrays, all in Table 6's batches (the paper: 2 to -5.8). Forestall's batches here do not wait for \
         the fetches of its horizon rule; by the published rule, a batch for a free disk only \
         ({FORESTALL_FREE}), it is {free_worst:.1} and {free_best:.1}, above {FORESTALL_PERCENT} {free}{reason}",
        TRACES.len(),
        arrays(lab).len(),
    );
    let measured = vec![rounded(worst, 1), rounded(best, 1)];
    judged(worst <= FORESTALL_PERCENT, measured, note)
}

/// By how much per cent reverse aggressive is slower and faster than the better of the two.
pub(super) fn k13(lab: &mut Lab) -> Answer {
    let (mut worst, mut best) = ((f64::MIN, String::new()), (f64::MAX, String::new()));
    let mut bursty = Vec::new();
    for trace in TRACES {
        for disks in arrays(lab).iter().copied() {
            let better = better(lab, trace, disks);
            let slower = slower_percent(&compared(lab, REVERSE, trace, disks), &better);
            if trace == BURSTY {
                bursty.push(slower);
                continue;
            }
            let at = || format!("{trace} on {}", array(disks));
            if slower > worst.0 {
                worst = (slower, at());
            }
            if slower < best.0 {
                best = (slower, at());
            }
        }
    }
    let shown = |percents: &[f64]| {
        let all: Vec<String> = percents.iter().map(|p| format!("{p:.1}")).collect();
        all.join(", ")
    };
    let even = [1, 2].map(|disks| {
        let better = better(lab, CSCOPE_3_EVEN, disks);
        slower_percent(&compared(lab, REVERSE, CSCOPE_3_EVEN, disks), &better)
    });
    let note = format!(
        "{STOOD_IN}; per cent slower (most: {}) and faster (most: {}, as less than 0), the \
         parameters the best of {} for each trace and array. cscope3 is left out, as the paper's \
         sentence is about the remaining traces: there it is {} % slower on the first three arrays; with \
         every compute time the mean, without its bursts, {} % on 1 and 2 disks",
        worst.1,
        best.1,
        grid(lab).len(),
        shown(bursty.get(..3).unwrap_or_default()),
        shown(&even)
    );
    let holds = worst.0 <= REVERSE_PERCENT[0] && best.0 >= REVERSE_PERCENT[1];
    judged(holds, vec![rounded(worst.0, 1), rounded(best.0, 1)], note)
}

pub(super) fn array(disks: u16) -> String {
    match disks {
        1 => "1 disk".to_owned(),
        _ => format!("{disks} disks"),
    }
}
