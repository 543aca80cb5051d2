//! A watch on the screen of `top`: what it has beside a mount.
//!
//! ```text
//! forerun  ext4 8:0 at /data   up 12 min   rates over 1.00 s   seeing readahead
//! missed   76.1 MB/s   events 40/s   lost 0   streams 10   state steers
//! steered  97.9 %   limits set 20/s   92 us each   spared 0   descriptor held 0.4 ms at most
//! memory   pages lost 0   windows 20.1/s
//!
//! NOT STEERED   SHARE     BYTES PROCESS                CAUSE
//!               2.1 %   1.60 MB     812 nfsd           threads of the kernel (nfsd, ksmbd, loop)
//! ```
//!
//! Shares are of the bytes that the kernel fetched because they were missing, since the watch began.

use forerun_core::Nanos;
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;

use super::rates::Rates;
use super::screen::line;
use crate::mount::report::{Report, WatchReport};
use crate::quantity::{rough_duration, rough_size};

/// Causes that are shown, so that streams stay in view.
const SHOWN_MAX: usize = 4;

/// The lines at the head of the screen.
pub(super) fn head<'a>(report: &Report, watch: &WatchReport, rates: &Rates) -> Vec<Line<'a>> {
    let state = match (watch.is_dry, watch.is_paused) {
        (_, true) => "paused",
        (true, _) => "dry run: sets nothing",
        _ => "steers",
    };
    let left: u64 = watch.not_steered.iter().map(|of| of.bytes).sum();
    let steered = watch.missed_bytes.saturating_sub(left);
    let each = watch.setting_ns / watch.limits_set.max(1);
    vec![
        line(
            "forerun",
            format!("{} at {}", report.source, watch.paths.join(" ")),
            &[
                ("up", rough_duration(Nanos(report.elapsed_ns))),
                ("rates over", rough_duration(rates.over)),
                ("seeing", watch.seeing.clone()),
            ],
        ),
        line(
            "missed",
            format!("{}/s", rough_size(rates.of("missed_bytes"))),
            &[
                ("events", format!("{:.1}/s", rates.of("events"))),
                ("lost", watch.events_lost.to_string()),
                ("streams", watch.streams.to_string()),
                ("state", state.to_owned()),
            ],
        ),
        line(
            "steered",
            percent(steered, watch.missed_bytes),
            &[
                ("limits set", format!("{:.1}/s", rates.of("limits_set"))),
                ("each", rough_duration(Nanos(each))),
                ("spared", watch.limits_spared.to_string()),
                (
                    "descriptor held at most",
                    rough_duration(Nanos(watch.held_most_ns)),
                ),
            ],
        ),
        line(
            "memory",
            String::new(),
            &[
                ("pages lost", watch.pages_lost.to_string()),
                ("windows", format!("{:.1}/s", rates.of("windows"))),
                ("scheduler", scheduler(watch).to_owned()),
            ],
        ),
    ]
}

/// Whether a scheduler is changed for a while.
fn scheduler(watch: &WatchReport) -> &'static str {
    match watch.file_systems.iter().any(|of| of.is_fair) {
        true => "bfq, for many readers",
        false => "as set",
    }
}

/// What could not be steered, the most first; no line where all is.
pub(super) fn not_steered<'a>(watch: &WatchReport) -> Vec<Line<'a>> {
    if watch.not_steered.is_empty() {
        return Vec::new();
    }
    let row = |[name, share, bytes, process, cause]: [&str; 5]| {
        format!("{name:11} {share:>7} {bytes:>9} {process:22} {cause}")
    };
    let head = ["NOT STEERED", "SHARE", "BYTES", "PROCESS", "CAUSE"];
    let mut lines = vec![Line::from(row(head)).style(Style::new().reversed())];
    let shown = watch.not_steered.iter().take(SHOWN_MAX);
    lines.extend(shown.map(|of| {
        let process = match of.process {
            0 => "others".to_owned(),
            number => format!("{number:>7} {}", of.program.replace(char::is_control, "?")),
        };
        let share = percent(of.bytes, watch.missed_bytes);
        let bytes = rough_size(of.bytes as f64);
        Line::from(row(["", &share, &bytes, &process, &of.cause]))
    }));
    if watch.not_steered.len() > SHOWN_MAX {
        let more = watch.not_steered.len() - SHOWN_MAX;
        lines.push(Line::from(format!("and {more} more")).dim());
    }
    lines
}

fn percent(part: u64, of: u64) -> String {
    match of {
        0 => "-".to_owned(),
        of => format!("{:.1} %", part as f64 * 100.0 / of as f64),
    }
}
