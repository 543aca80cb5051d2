//! C9 to C11: index search and media clips. Stand-ins take the place of their lost inputs.

use super::super::Answer;
use super::super::lab::Lab;
use super::super::numbers::{answer, best, by_level, rounded};
use super::scenes::{AP, CLIPS, CP, Disk, LEVELS, LINUX, MOST, SEARCH, Version, ratios, run};

pub(super) fn c9(lab: &mut Lab, version: Version) -> Answer {
    let competitive = ratios(lab, SEARCH, (CP, LINUX), (Disk::Anticipatory, version));
    let aggressive = ratios(lab, SEARCH, (AP, LINUX), (Disk::Anticipatory, version));
    let note = format!(
        "the best of CP over Linux and of AP over Linux, by requests at a time. CP: {}; AP: {}. How long lists are and how many \
         keywords a query has is assumed",
        by_level(&competitive, &LEVELS),
        by_level(&aggressive, &LEVELS)
    );
    answer(
        vec![
            rounded(best(&competitive), 2),
            rounded(best(&aggressive), 2),
        ],
        note,
    )
}

pub(super) fn c10(lab: &mut Lab, version: Version) -> Answer {
    let all = ratios(lab, CLIPS, (CP, LINUX), (Disk::Anticipatory, version));
    let at = |level: u64| {
        LEVELS
            .iter()
            .position(|one| *one == level)
            .map_or(0.0, |at| all[at])
    };
    let note = format!("by requests at a time: {}", by_level(&all, &LEVELS));
    answer(vec![rounded(at(2), 2), rounded(at(MOST), 2)], note)
}

pub(super) fn c11(lab: &mut Lab, version: Version) -> Answer {
    let mut cuts = Vec::new();
    for level in LEVELS {
        let mut response =
            |kernel| run(lab, SEARCH, kernel, (Disk::Anticipatory, version), level).response_ms();
        let (linux, competitive) = (response(LINUX), response(CP));
        cuts.push(100.0 * (1.0 - competitive / linux.max(1e-9)));
    }
    let mean = cuts.iter().sum::<f64>() / cuts.len() as f64;
    let note = format!(
        "the mean over the numbers of requests at a time: {}",
        by_level(&cuts, &LEVELS)
    );
    answer(vec![rounded(mean, 1)], note)
}
