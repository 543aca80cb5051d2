//! The plot of a soak, as SVG: resident memory and unread prefetched memory, and open files below.
//!
//! Called by the command line with `--plot`. Lines have a point for each sample; axes begin at 0.

use super::Report;
use super::sample::Sample;

const LEFT: f64 = 60.0;
const WIDTH: f64 = 600.0;
/// Top and height of the two panels.
const MEMORY: (f64, f64) = (40.0, 180.0);
const FILES: (f64, f64) = (260.0, 90.0);

/// The text of the plot.
#[must_use]
pub fn svg(report: &Report) -> String {
    let samples = &report.samples;
    let seconds = samples.last().map_or(1.0, |sample| sample.seconds).max(1.0);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let most_mib = mib(report.memory_bytes) * 1.25;
    let most_files = report.readers as f64 * 1.25;
    let line = |panel, most: f64, colour, of: &dyn Fn(&Sample) -> f64| {
        line(samples, seconds, panel, most, colour, of)
    };
    let limit = y(MEMORY, mib(report.memory_bytes) / most_mib);
    let parts = [
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"390\" \
         viewBox=\"0 0 700 390\">"
            .to_owned(),
        "<rect width=\"700\" height=\"390\" fill=\"white\"/>".to_owned(),
        axes(MEMORY),
        axes(FILES),
        format!(
            "<path d=\"M{LEFT} {limit:.1}h{WIDTH}\" stroke=\"#aaa\" stroke-dasharray=\"4 3\"/>"
        ),
        line(MEMORY, most_mib, "#06c", &|s| mib(s.resident_bytes)),
        line(MEMORY, most_mib, "#c33", &|s| {
            mib(s.ledger.resident_unused_bytes)
        }),
        line(FILES, most_files, "#393", &|s| s.ledger.open_files as f64),
        text(
            8.0,
            limit + 4.0,
            &format!("{:.0} MiB", mib(report.memory_bytes)),
        ),
        text(8.0, y(FILES, 0.8) + 4.0, &report.readers.to_string()),
        text(
            LEFT,
            20.0,
            "Resident memory (blue), prefetched and unread (red), --memory (dashed)",
        ),
        text(LEFT, 252.0, "Open files"),
        text(LEFT - 4.0, 372.0, "0 s"),
        text(LEFT + WIDTH - 20.0, 372.0, &format!("{seconds:.0} s")),
        "</svg>".to_owned(),
    ];
    parts.join("\n") + "\n"
}

fn y((top, height): (f64, f64), part: f64) -> f64 {
    top + height * (1.0 - part.clamp(0.0, 1.0))
}

fn axes((top, height): (f64, f64)) -> String {
    format!("<path d=\"M{LEFT} {top}v{height}h{WIDTH}\" fill=\"none\" stroke=\"#888\"/>")
}

fn text(x: f64, y: f64, words: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"sans-serif\" font-size=\"12\">{words}</text>"
    )
}

fn line(
    samples: &[Sample],
    seconds: f64,
    panel: (f64, f64),
    most: f64,
    colour: &str,
    of: &dyn Fn(&Sample) -> f64,
) -> String {
    let point = |sample: &Sample| {
        let x = LEFT + sample.seconds / seconds * WIDTH;
        format!("{x:.1},{:.1}", y(panel, of(sample) / most))
    };
    let points: Vec<String> = samples.iter().map(point).collect();
    format!(
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>",
        points.join(" ")
    )
}
