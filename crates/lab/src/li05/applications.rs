//! P1, P2, P7, P9: index search and media clips; P11: bookkeeping.
//!
//! Stand-ins take the place of both applications' lost inputs.

use super::super::Answer;
use super::super::lab::Lab;
use super::super::numbers::{answer, best, by_level, judged, least, rounded};
use super::scenes::{
    ACCESS_HISTORY, APPLICATION_LEVELS, CLIPS, CLIPS_MEMORY, COLDEST, COLDEST_PLUS, Conditions,
    DEFAULT, HIGH_APPLICATION, KERNELS, LONGEST, MEMORY, PC_ACCESS_HISTORY, SEARCH, TWO_RAND, from,
    made_at, ratios, run,
};

const MOST: u64 = 1000;

pub(super) fn p1(lab: &mut Lab) -> Answer {
    let rates =
        APPLICATION_LEVELS.map(|level| run(lab, SEARCH, ACCESS_HISTORY, level, DEFAULT).rate());
    let last = rates[APPLICATION_LEVELS.len() - 1];
    let levels = by_level(&rates, &APPLICATION_LEVELS);
    let note = format!("MB/s by requests at a time: {levels}");
    answer(vec![rounded(last / best(&rates).max(1e-9), 2)], note)
}

pub(super) fn p2(lab: &mut Lab) -> Answer {
    let mut thrashed = |kernel| run(lab, SEARCH, kernel, MOST, DEFAULT).thrashed_per_request();
    let all = [
        ACCESS_HISTORY,
        PC_ACCESS_HISTORY,
        LONGEST,
        COLDEST,
        COLDEST_PLUS,
    ]
    .map(&mut thrashed);
    let [history, apart, longest, coldest, plus] = all;
    let holds = history > apart && apart > longest.max(coldest) && longest.min(coldest) > plus;
    let note = "pages a request: AccessHistory, PC-AccessHistory, Longest, Coldest, Coldest+. The paper: 258, 238, 217, 207, 200";
    judged(holds, all.map(|pages| rounded(pages, 0)).to_vec(), note)
}

pub(super) fn p7(lab: &mut Lab) -> Answer {
    let high = from(&APPLICATION_LEVELS, HIGH_APPLICATION);
    let all = ratios(lab, SEARCH, (COLDEST_PLUS, ACCESS_HISTORY), &high, DEFAULT);
    let note = by_level(&all, &high);
    answer(all.iter().map(|n| rounded(*n, 2)).collect(), note)
}

pub(super) fn p9(lab: &mut Lab) -> Answer {
    let conditions = Conditions {
        memory: CLIPS_MEMORY,
        ..DEFAULT
    };
    let (mut measured, mut levels) = (Vec::new(), Vec::new());
    for kernel in &KERNELS[1..] {
        let all = ratios(
            lab,
            CLIPS,
            (*kernel, ACCESS_HISTORY),
            &APPLICATION_LEVELS,
            conditions,
        );
        measured.push(rounded(least(&all), 3));
        let by_level = by_level(&all, &APPLICATION_LEVELS);
        levels.push(format!("{}: {by_level}", kernel.name));
    }
    let holds = measured.iter().all(|ratio| *ratio > 1.0);
    let note = format!(
        "the least over AccessHistory by requests at a time. {}",
        levels.join("; ")
    );
    judged(holds, measured, note)
}

pub(super) fn p11(lab: &mut Lab) -> Answer {
    let (mut of_cache, mut of_machine, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let levels = made_at(lab, &[1, 500]);
    for kernel in KERNELS {
        let mut parts = Vec::new();
        let loads = levels.iter().map(|level| (TWO_RAND, *level));
        for (benchmark, level) in loads.chain([(SEARCH, MOST)]) {
            let (kept, cache) = run(lab, benchmark, kernel, level, DEFAULT).bookkeeping;
            let percent = |of: u64| 100.0 * kept.0 as f64 / of.max(1) as f64;
            parts.push(percent(cache.0));
            of_machine.push(percent(MEMORY.0));
        }
        let searched = parts.pop().unwrap_or_default();
        let levels = by_level(&parts, &levels);
        lines.push(format!(
            "{}: {levels}; {searched:.2} in index search at {MOST}",
            kernel.name
        ));
        of_cache.extend(parts.into_iter().chain([searched]));
    }
    let note = format!(
        "per cent of the page cache that holds no page after two minutes, the least and the most of five kernels under Two-Rand and \
         index search: the table of pages, streams, requests and an eviction history for 40 % of the pages. Of the machine's \
         512 MB, of which handlers take most at high concurrency, it is {:.2} to {:.2}. {}",
        least(&of_machine),
        best(&of_machine),
        lines.join(". ")
    );
    let range = [least(&of_cache), best(&of_cache)];
    answer(range.map(|percent| rounded(percent, 3)).to_vec(), note)
}
