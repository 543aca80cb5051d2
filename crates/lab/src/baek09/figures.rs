//! Figures 8, 9 and 10, as tables and charts. The paper's own are pictures, so only numbers from
//! its text stand beside them.

use super::super::array::ArrayReport;
use super::super::lab::Lab;
use super::super::plot::{Line, plotted};
use super::super::{Exhibit, Shown, Table};
use super::scenes::{MSP_SASEQP, MSP_SEQP, SASEQP, SEQP, Scheme, direct, iozone, web};
use super::server::{MUSIC_KB, PREFETCH_KB, SIZES_KB};
use super::streams::{PANELS, PREFETCHES, STRIPS};

pub(super) const FIGURE_8: Exhibit = Exhibit {
    id: "figure-8",
    title: "Figure 8: IOzone, concurrent sequential reads",
    note: "MB/s over the number of streams. The paper: with one stream MSP+SASEQP128 is 2.4 times SASEQP128 (a), \
           SEQP512 1.56 times SEQP128; with 64 SASEQP gains 12, 69, 108 and 82 % in (a), (b), (d), (e).",
    draw: figure_8,
};
pub(super) const FIGURE_9: Exhibit = Exhibit {
    id: "figure-9",
    title: "Figure 9: aligned direct reads of one or more strips",
    note: "MB/s over the strips of a request, strips of 128 KB. The paper has two RAID drivers, here is one. One \
           strip of 256 KB has more than two of 128, with many threads.",
    draw: figure_9,
};
pub(super) const FIGURE_10: Exhibit = Exhibit {
    id: "figure-10",
    title: "Figure 10: FileBench, web server",
    note: "32 threads, 8 GB of files. (a) to (c): MB/s over the prefetch size with strips of 128 and 64 KB, and over \
           the strip with windows of 128 KB. (d) to (f): strips of 128 KB, windows of 64 KB, by the mean size of files.",
    draw: figure_10,
};

const STREAMS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
const SCHEMES: [&str; 4] = [SEQP, SASEQP, MSP_SEQP, MSP_SASEQP];
/// Thresholds of Figure 8f; the paper has 38.
const THRESHOLDS: [u64; 5] = [38, 30, 20, 10, 5];
/// Strips of Figure 10c.
const STRIPS_KB: [u64; 4] = [32, 64, 128, 256];

/// The quantity taken from a run.
type Measure = fn(&ArrayReport) -> f64;

/// A line of a scheme over the number of streams.
fn over_streams(lab: &mut Lab, name: String, scheme: &Scheme) -> Line {
    let point = |streams| (streams, iozone(lab, scheme, streams).rate());
    (name, STREAMS.map(point).to_vec())
}

fn figure_8(lab: &mut Lab, shown: &mut Shown) {
    for (panel, (prefetch, strip)) in ["a", "b", "d", "e"].into_iter().zip(PANELS) {
        let line = |preset: &'static str| {
            let scheme = Scheme::new(preset, prefetch, strip);
            over_streams(lab, format!("{preset}{prefetch}"), &scheme)
        };
        let lines = SCHEMES.map(line).to_vec();
        let title = format!("8{panel}: windows of {prefetch} KB, strips of {strip} KB");
        plotted(shown, &title, "streams", "MB/s", lines);
    }
    let line = |prefetch| {
        let scheme = Scheme::new(SEQP, prefetch, 128);
        over_streams(lab, format!("seqp{prefetch}"), &scheme)
    };
    let lines = PREFETCHES.map(line).to_vec();
    plotted(
        shown,
        "8c: SEQP, strips of 128 KB",
        "streams",
        "MB/s",
        lines,
    );
    let line = |threshold| {
        let shape = Some(format!("stripe(threshold={threshold})"));
        let scheme = Scheme {
            shape,
            ..Scheme::new(MSP_SEQP, 128, 128)
        };
        over_streams(lab, format!("threshold {threshold}"), &scheme)
    };
    let lines = THRESHOLDS.map(line).to_vec();
    let title = "8f: MSP+SEQP128, strips of 128 KB, by threshold";
    plotted(shown, title, "streams", "MB/s", lines);
}

fn figure_9(lab: &mut Lab, shown: &mut Shown) {
    let mut lines = Vec::new();
    for threads in [256, 64, 1] {
        let point = |strips| (strips, direct(lab, threads, strips, 128));
        lines.push((format!("{threads} threads"), STRIPS.map(point).to_vec()));
    }
    plotted(
        shown,
        "9: strips of 128 KB",
        "strips a request",
        "MB/s",
        lines,
    );
    let twice = [256, 64, 1].map(|threads| {
        let rate = direct(lab, threads, 1, 256);
        vec![threads.to_string(), format!("{rate:.1}")]
    });
    let head = ["threads", "MB/s"].map(str::to_owned).to_vec();
    let title = "9: one strip of 256 KB a request";
    shown.tables.push(Table::new(title, head, twice.to_vec()));
}

/// The quantities of a web server, over a parameter, of both schemes.
fn served(
    over: &[u64],
    mut run: impl FnMut(&'static str, u64) -> ArrayReport,
    measure: Measure,
) -> Vec<Line> {
    let line = |preset: &'static str| {
        let points = over.iter().map(|at| (*at, measure(&run(preset, *at))));
        (preset.to_owned(), points.collect())
    };
    [SEQP, SASEQP].map(line).to_vec()
}

fn figure_10(lab: &mut Lab, shown: &mut Shown) {
    let rate = ArrayReport::rate;
    for (panel, strip) in [("a", 128), ("b", 64)] {
        let run = |preset, prefetch| web(lab, &Scheme::new(preset, prefetch, strip), MUSIC_KB);
        let lines = served(&PREFETCHES, run, rate);
        let title = format!("10{panel}: strips of {strip} KB");
        plotted(shown, &title, "prefetch, KB", "MB/s", lines);
    }
    let run = |preset, strip| web(lab, &Scheme::new(preset, 128, strip), MUSIC_KB);
    let lines = served(&STRIPS_KB, run, rate);
    plotted(shown, "10c: windows of 128 KB", "strip, KB", "MB/s", lines);
    let panels: [(&str, &str, Measure); 3] = [
        ("10d", "files a second", ArrayReport::closed_per_second),
        ("10e", "MB/s", rate),
        ("10f", "ms a file", ArrayReport::open_ms),
    ];
    for (panel, measured, measure) in panels {
        let run = |preset, size| web(lab, &Scheme::new(preset, PREFETCH_KB, 128), size);
        let lines = served(&SIZES_KB, run, measure);
        plotted(shown, panel, "mean file, KB", measured, lines);
    }
}
