//! Figures 10, 11, 13, 14 and 15, as tables and charts. The paper's own are pictures: beside them stands the
//! text's.

use super::super::drive::{DriveReport, Fetched};
use super::super::lab::Lab;
use super::super::plot::{Line, plotted};
use super::super::{Chart, Exhibit, Shown, Table};
use super::scenes::{BOTH, Bench, MEMORY, name};
use super::thrashing::series;

pub(super) const FIGURE_10: Exhibit = Exhibit {
    id: "figure-10",
    title: "Figure 10: random reads in between a stream",
    note: "MB/s over the MB of random reads beside 100 MB of sequential ones, the drive's readahead off. The paper: \
           17.18 and 22.15 with 1 MB, 5.10 and 6.39 with 10.",
    draw: figure_10,
};
pub(super) const FIGURE_11: Exhibit = Exhibit {
    id: "figure-11",
    title: "Figure 11: requests for the first 1,600 pages, random reads in between",
    note: "Size of each request of the stream over where it begins, both in pages, 10 MB of random reads beside \
           100 MB. Legacy closes its windows at each random read and begins its ramp again; on-demand goes on. \
           Windows of 256 pages are two requests.",
    draw: figure_11,
};
pub(super) const FIGURE_13: Exhibit = Exhibit {
    id: "figure-13",
    title: "Figure 13: interleaved streams",
    note: "MB/s over the number of streams. The paper, the drive's readahead off: legacy 24.95, 7.05, 3.15 with 1, 2, 3 \
           streams, 0.81 with 10; on-demand 28.32 and 21.78 with 1 and 10. On, with 10: 12.29 and 35.30.",
    draw: figure_13,
};
pub(super) const FIGURE_14: Exhibit = Exhibit {
    id: "figure-14",
    title: "Figure 14: time the application waits",
    note: "Seconds for each 100 MB over the number of streams, the drive's readahead off. The paper: legacy 3.36 and \
           122.35 with 1 and 10 streams, on-demand 2.89 and 3.44.",
    draw: figure_14,
};
pub(super) const FIGURE_15: Exhibit = Exhibit {
    id: "figure-15",
    title: "Figure 15: network clients, one more each second",
    note: "Each ten seconds, over their end in seconds, on a machine of 128 MB. The paper: blocks are lost from 20 s on, legacy \
           overloads the disk at 50 s and reaches 5 MB/s, on-demand goes up to 15; requests of 5 and 40 KB.",
    draw: figure_15,
};

/// A line of each kernel over 1 to 10 of something.
fn to_ten(mut measure: impl FnMut(&'static str, u64) -> f64) -> Vec<Line> {
    let line = |preset: &'static str| {
        let points = (1..=10).map(|at| (at, measure(preset, at)));
        (name(preset), points.collect())
    };
    BOTH.map(line).to_vec()
}

fn figure_10(lab: &mut Lab, shown: &mut Shown) {
    let lines = to_ten(|preset, mb| Bench::new(preset).intermixed(lab, mb).rate());
    plotted(shown, "10b", "MB of random reads", "MB/s", lines);
}

/// Pages of the stream that Figure 11 shows.
const PAGES: u32 = 1600;

/// The requests of the stream, up to there.
fn requests(lab: &Lab, preset: &'static str) -> Vec<Fetched> {
    let bench = Bench::new(preset);
    let run = bench.run(bench.intermixed_with(10, 1));
    // A run that is refused shows nothing; the claims say why.
    let fetches = run.fetches(&lab.with).unwrap_or_default().into_iter();
    fetches.filter(|one| one.first < PAGES).collect()
}

fn figure_11(lab: &mut Lab, shown: &mut Shown) {
    let mut lines = Vec::new();
    for preset in BOTH {
        let requests = requests(lab, preset);
        let rows = requests.iter().map(|one| {
            let cells = [one.at, one.first, one.count];
            cells.map(|cell| cell.to_string()).to_vec()
        });
        let head = ["page read", "first page", "pages"].map(str::to_owned);
        let title = format!("{}: {} requests", name(preset), requests.len());
        let table = Table::new(&title, head.to_vec(), rows.collect());
        shown.tables.push(table);
        let point = |one: &Fetched| (f64::from(one.first + 1), f64::from(one.count));
        lines.push((name(preset), requests.iter().map(point).collect()));
    }
    shown.charts.push(Chart::Lines {
        title: "11".to_owned(),
        measured: "pages of a request".to_owned(),
        over: "its first page, from 1 on".to_owned(),
        lines,
    });
}

fn figure_13(lab: &mut Lab, shown: &mut Shown) {
    for (panel, is_on) in [("13a: the drive's readahead off", false), ("13b: on", true)] {
        let lines = to_ten(|preset, streams| {
            let bench = Bench::new(preset);
            let bench = if is_on { bench.reading_on() } else { bench };
            bench.interleaved(lab, streams).rate()
        });
        plotted(shown, panel, "streams", "MB/s", lines);
    }
}

fn figure_14(lab: &mut Lab, shown: &mut Shown) {
    let lines = to_ten(|preset, streams| Bench::new(preset).interleaved(lab, streams).delay_s());
    plotted(shown, "14", "streams", "s for 100 MB", lines);
}

/// The quantity taken from ten seconds.
type Measure = fn(&DriveReport) -> f64;

fn figure_15(lab: &mut Lab, shown: &mut Shown) {
    let panels: [(&str, &str, Measure); 3] = [
        ("15: network throughput", "MB/s", DriveReport::rate),
        ("15: mean size of a request", "KB", DriveReport::request_kb),
        ("15: the disk works", "% of the time", |run| {
            run.utilisation() * 100.0
        }),
    ];
    for (title, measured, measure) in panels {
        let line = |preset: &'static str| {
            let points = series(lab, preset, MEMORY);
            let points = points.iter().map(|(at, run)| (*at, measure(run)));
            (name(preset), points.collect())
        };
        let lines = BOTH.map(line).to_vec();
        plotted(shown, title, "s", measured, lines);
    }
}
