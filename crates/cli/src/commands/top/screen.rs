//! The screen of `top`: a report and its rates as cells, in the terminal or as text.
//!
//! ```text
//! forerun  /data on /fast   up 12 min   rates over 1.00 s
//! read     76.1 MB/s   hits 97.9 %   late 1.9 %   misses 0.2 %
//! fetched  78.0 MB/s   requests 95.2/s   windows 29.5/s
//! ahead    unread 1.45 MB   wasted 0 B   closed unread 0 B   cancelled 0 B   failed 0 B
//! memory   most so far 268.4 MB   waits 0   thrashed 0
//! files    open 2   in passthrough 0   ever 0   mode auto
//!
//! DEVICE QUEUED FLIGHT   SWITCH        RATE SERVERS    DEPTH  FROM
//! 8:1        12      2  12.0 ms  220.0 MB/s      1?  2.64 MB  1,204 requests, ? told
//!
//! READ/S   AT    SIZE      WINDOW   AHEAD    WAIT  PROCESS   FILE
//! 7.61 MB  43 %  100.0 MB  4.19 MB  6.29 MB  1     4711 tar  logs/a
//!          81 %            1.05 MB  2.10 MB                  (another stream of it)
//! ```
//!
//! The lines of the [devices] and of the [files] are their own. A line that does not fit goes on
//! below; in a terminal of less than twenty lines it ends in `…`. The last line of a terminal
//! names the keys.

use std::path::PathBuf;

use forerun_core::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::rates::{Rates, count};
use super::view::{HELP, View};
use super::{devices, files, watched};
use crate::mount::fs::passthrough::Mode;
use crate::mount::report::Report;
use crate::quantity::{rough_duration, rough_size};

/// Where the values of the first lines begin.
const INDENT: usize = 9;

/// In a terminal of fewer lines none is spent on the rest of another.
const FOLDING_ROWS: u16 = 20;

/// Draws a screen; in a terminal with the number of mounts, and as the user wants it.
pub(super) fn draw(
    report: &Report,
    rates: &Rates,
    shown: Option<(usize, &View)>,
    area: Rect,
    into: &mut Buffer,
) {
    let usual = View::default();
    let view = shown.map_or(&usual, |(_, view)| view);
    if view.is_help {
        for (line, row) in HELP.lines().zip(area.rows()) {
            render(Line::from(line), row, into);
        }
        return;
    }
    let head = match &report.watch {
        Some(watch) => watched::head(report, watch, rates),
        None => lines(report, rates),
    };
    let head: Vec<Line<'_>> = match area.height < FOLDING_ROWS {
        true => head,
        false => head
            .into_iter()
            .flat_map(|line| folded(line, area.width.into()))
            .collect(),
    };
    let left = report.watch.as_ref().map(watched::not_steered);
    let left = left.unwrap_or_default();
    let devices = devices::lines(&report.queues, &report.passthrough);
    let height = |lines: usize| Constraint::Length(u16::try_from(lines + 1).unwrap_or(u16::MAX));
    let parts = [
        height(head.len()),
        height(devices.len()),
        Constraint::Fill(1),
        Constraint::Length(u16::try_from(left.len()).unwrap_or(u16::MAX)),
        Constraint::Length(shown.is_some().into()),
    ];
    let [top, middle, files_area, below, foot] = Layout::vertical(parts).areas(area);
    let rows = top.rows().take(head.len());
    let rows = rows
        .chain(middle.rows().take(devices.len()))
        .chain(below.rows());
    for (line, row) in head.into_iter().chain(devices).chain(left).zip(rows) {
        render(line, row, into);
    }
    files::table(report, rates, view, files_area).render(files_area, into);
    if let Some((mounts, view)) = shown {
        render(keys(mounts, view, report.open_files.len()), foot, into);
    }
}

/// A line of pairs as [`line()`] makes it, in as many lines as its pairs need.
fn folded(line: Line<'_>, width: usize) -> Vec<Line<'_>> {
    let mut spans = line.spans.into_iter();
    let mut lines = vec![Line::from_iter(spans.by_ref().take(2))];
    while let (Some(name), Some(value)) = (spans.next(), spans.next()) {
        let fits = |last: &Line<'_>| last.width() + name.width() + value.width() <= width;
        match lines.last_mut() {
            Some(last) if fits(last) => last.spans.extend([name, value]),
            _ => {
                let name = name.content.trim_start().to_owned();
                let indent = Span::from(" ".repeat(INDENT));
                lines.push(Line::from(vec![indent, Span::from(name).dim(), value]));
            }
        }
    }
    lines
}

/// A line, with a sign where it was cut.
fn render(line: Line<'_>, row: Rect, into: &mut Buffer) {
    let is_cut = line.width() > usize::from(row.width);
    line.render(row, into);
    if is_cut && row.width > 0 && row.height > 0 {
        into[(row.right() - 1, row.y)].set_symbol("…");
    }
}

fn keys<'a>(mounts: usize, view: &View, files: usize) -> Line<'a> {
    let next = match mounts {
        1 => String::new(),
        _ => format!("   Tab next of {mounts}"),
    };
    let from = match view.skipped.min(files.saturating_sub(1)) {
        0 => String::new(),
        skipped => format!("   from file {} of {files}", skipped + 1),
    };
    let sorted = view.order.name();
    let keys = format!("q quits   ? explains   s sorts: by {sorted}{next}{from}");
    let silence = view.silence.as_ref();
    let silence = silence.map(|text| Span::from(format!("{text}   ")).bold());
    Line::from_iter(silence.into_iter().chain([Span::from(keys).dim()]))
}

/// A line for each daemon.
pub(super) fn list(mounts: &[(PathBuf, Report)]) -> String {
    let wide = |of: fn(&Report) -> &str| {
        let widths = mounts.iter().map(|(_, report)| of(report).chars().count());
        widths.max().unwrap_or(0)
    };
    let (point, source) = (wide(|r| &r.mountpoint).max(10), wide(|r| &r.source).max(6));
    let head = format!(
        "{:point$}  {:source$}  {:>9}  OPEN  UP\n",
        "MOUNTPOINT", "SOURCE", "READ"
    );
    let line = |(_, report): &(PathBuf, Report)| {
        let read = rough_size(count(report, "reads") as f64 * report.block_bytes as f64);
        let up = rough_duration(Nanos(report.elapsed_ns));
        let open = report.open_files.len();
        let clean = |text: &str| text.replace(char::is_control, "?");
        let (at, of) = (clean(&report.mountpoint), clean(&report.source));
        format!("{at:point$}  {of:source$}  {read:>9}  {open:>4}  {up}\n")
    };
    head + &mounts.iter().map(line).collect::<String>()
}

/// A screen as text, without spaces at the ends of lines.
pub(super) fn as_text(report: &Report, rates: &Rates, (columns, rows): (u16, u16)) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut cells = Buffer::empty(area);
    draw(report, rates, None, area, &mut cells);
    let row = |y: u16| {
        let row: String = (0..columns).map(|x| cells[(x, y)].symbol()).collect();
        format!("{}\n", row.trim_end())
    };
    let text: String = (0..rows).map(row).collect();
    format!("{}\n", text.trim_end())
}

fn lines<'a>(report: &Report, rates: &Rates) -> Vec<Line<'a>> {
    let block = report.block_bytes as f64;
    let reads = rates.of("reads").max(f64::MIN_POSITIVE);
    let share = |name: &str| format!("{:.1} %", rates.of(name) / reads * 100.0);
    let bytes = |name: &str| rough_size(count(report, name) as f64 * block);
    let plain = |name: &str| count(report, name).to_string();
    let memory = [
        (
            "most so far",
            rough_size(count(report, "memory_peak_bytes") as f64),
        ),
        ("waits", plain("memory_waits")),
        ("thrashed", plain("thrashed")),
        ("refused", plain("refused_prefetches")),
    ];
    let mut fetched = vec![
        ("requests", format!("{:.1}/s", rates.of("requests"))),
        ("windows", format!("{:.1}/s", rates.of("windows"))),
    ];
    if report.device.is_some() {
        let busy = format!("{:.0} %", rates.device_busy * 100.0);
        fetched.push(("device busy", busy));
    }
    let title = format!("{} on {}", report.source, report.mountpoint);
    let mut lines = vec![
        line(
            "forerun",
            title,
            &[
                ("up", rough_duration(Nanos(report.elapsed_ns))),
                ("rates over", rough_duration(rates.over)),
            ],
        ),
        line(
            "read",
            format!("{}/s", rough_size(rates.of("reads") * block)),
            &[
                ("hits", share("hits")),
                ("late", share("late_hits")),
                ("misses", share("misses")),
                ("readers wait", format!("{:.1}", rates.of("stall_ns") / 1e9)),
            ],
        ),
        line(
            "fetched",
            format!("{}/s", rough_size(rates.of("request_bytes"))),
            &fetched,
        ),
        line(
            "ahead",
            String::new(),
            &[
                ("unread", bytes("resident_unused")),
                ("wasted", bytes("evicted_unused")),
                ("closed unread", bytes("files_ahead_unread")),
                ("cancelled", bytes("cancelled")),
                ("failed", bytes("failed")),
            ],
        ),
        line("memory", String::new(), &memory),
        open_files(report),
    ];
    lines.extend(records(report));
    lines
}

/// How far the record of reads is, and the end of a record or a journal that ended early.
fn records<'a>(report: &Report) -> Vec<Line<'a>> {
    let clean = |text: &str| text.replace(char::is_control, "?");
    let ended = |error: &str| ("ended", clean(error));
    let mut lines = Vec::new();
    if let Some(record) = &report.record {
        let mut parts = vec![
            ("reads", record.reads.to_string()),
            ("left out", record.left_out.to_string()),
        ];
        parts.extend(record.error.as_deref().map(ended));
        lines.push(line("record", String::new(), &parts));
    }
    if let Some(error) = &report.journal_error {
        lines.push(line("journal", String::new(), &[ended(error)]));
    }
    lines
}

/// How many files are open, and how many of them the kernel reads from the source.
fn open_files<'a>(report: &Report) -> Line<'a> {
    let passed = &report.passthrough;
    let mode = match (passed.possible, passed.mode) {
        (true, mode) | (_, mode @ Mode::Never) => mode.name().to_owned(),
        (false, mode) => format!("{}, not possible here", mode.name()),
    };
    line(
        "files",
        String::new(),
        &[
            ("open", report.open_files.len().to_string()),
            ("in passthrough", passed.open_files.to_string()),
            ("ever", passed.opens.to_string()),
            ("mode", mode),
        ],
    )
}

pub(super) fn line<'a>(
    name: &'static str,
    value: String,
    more: &[(&'static str, String)],
) -> Line<'a> {
    let mut spans = vec![
        Span::from(format!("{name:<INDENT$}")).bold(),
        Span::from(value),
    ];
    for (index, (name, value)) in more.iter().enumerate() {
        let gap = if index == 0 && spans[1].content.is_empty() {
            ""
        } else {
            "   "
        };
        spans.push(Span::from(format!("{gap}{name} ")).dim());
        spans.push(Span::from(value.clone()));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::super::view::Order;
    use super::*;
    use crate::estimate::{Basis, Estimate, Origins};
    use crate::mount::report::{
        DeviceReport, NotSteeredReport, OpenFileReport, PassthroughReport, QueueReport,
        RecordReport, StreamReport, WatchReport,
    };

    fn report() -> Report {
        let counters = serde_json::json!({
            "reads": 1000, "hits": 970, "late_hits": 20, "misses": 10, "stall_ns": 500_000_000,
            "requests": 8, "request_bytes": 4_096_000, "memory_peak_bytes": 268_435_456,
            "evicted_unused": 3, "files_ahead_unread": 2, "cancelled": 7,
        });
        let stream = |at_bytes, ahead_bytes, waiting| StreamReport {
            begin_bytes: 0,
            at_bytes,
            ahead_bytes,
            window_at_bytes: at_bytes,
            window_bytes: 4_194_304,
            window_async_bytes: 2_097_152,
            waiting,
        };
        let file = |path: &str, read_bytes, streams| OpenFileReport {
            path: path.into(),
            number: 1,
            process: 4711,
            program: "tar".into(),
            file_bytes: 100_000_000,
            requests: 1,
            read_bytes,
            at_bytes: read_bytes,
            passthrough: false,
            streams,
        };
        let streams = vec![
            stream(1_000_000, 0, 0),
            stream(81_000_000, 2_097_152, 0),
            stream(43_000_000, 6_291_456, 2),
        ];
        Report {
            source: "/data".into(),
            mountpoint: "/fast".into(),
            elapsed_ns: 2_000_000_000,
            block_bytes: 4096,
            counters: counters.as_object().unwrap().clone(),
            known_files: 3,
            journal_error: None,
            record: None,
            watch: None,
            passthrough: PassthroughReport {
                possible: true,
                opens: 5,
                ..PassthroughReport::default()
            },
            open_files: vec![
                file("slow", 1_000_000, vec![]),
                file("logs/\u{1b}[2J", 43_000_000, streams),
            ],
            device: Some(DeviceReport {
                requests: 8,
                bytes: 4_096_000,
                busy_ns: 1_980_000_000,
            }),
            queues: vec![QueueReport {
                device: "emulated".into(),
                queued: 12,
                in_flight: 2,
                estimate: Some(Estimate {
                    switching_ns: 12_000_000,
                    rate_bytes_per_second: 220_000_000,
                    servers: Some(1),
                    depth_bytes: 2_640_000,
                    basis: Basis::Requests,
                    requests: 1_204,
                    switches: 300,
                    from: Some(Origins {
                        switching: Basis::Requests,
                        rate: Basis::Requests,
                        servers: Some(Basis::Told),
                    }),
                }),
            }],
        }
    }

    #[test]
    fn a_report_becomes_a_screen() {
        let report = report();
        let text = as_text(&report, &Rates::since_start(&report), (100, 15));
        snapbox::assert_data_eq!(
            text,
            snapbox::str![[r#"
forerun  /data on /fast   up 2.00 s   rates over 2.00 s
read     2.05 MB/s   hits 97.0 %   late 2.0 %   misses 1.0 %   readers wait 0.2
fetched  2.05 MB/s   requests 4.0/s   windows 0.0/s   device busy 99 %
ahead    unread 0 B   wasted 12.3 kB   closed unread 8.19 kB   cancelled 28.7 kB   failed 0 B
memory   most so far 268.4 MB   waits 0   thrashed 0   refused 0
files    open 2   in passthrough 0   ever 5   mode auto

DEVICE   QUEUED FLIGHT   SWITCH        RATE SERVERS    DEPTH  FROM
emulated     12      2  12.0 ms  220.0 MB/s      1?  2.64 MB  1,204 requests, ? told

READ/S    AT    SIZE      WINDOW   AHEAD    WAIT PROCESS                FILE
21.5 MB   43 %  100.0 MB  4.19 MB  6.29 MB  2    4711 tar               logs/?[2J
          81 %            4.19 MB  2.10 MB  0
500.0 kB  1 %   100.0 MB  -        -        -    4711 tar               slow

"#]]
        );
    }

    #[test]
    fn a_record_or_a_journal_that_ended_has_a_line_with_its_cause() {
        let mut report = report();
        report.record = Some(RecordReport {
            reads: 12,
            left_out: 3,
            error: Some("No space left on device".into()),
        });
        report.journal_error = Some("input/output\u{1b}error".into());
        let text = as_text(&report, &Rates::since_start(&report), (100, 20));
        let lines: Vec<&str> = text.lines().skip(6).take(2).collect();
        let wanted = [
            "record   reads 12   left out 3   ended No space left on device",
            "journal  ended input/output?error",
        ];
        assert_eq!(lines, wanted, "{text}");
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_says_where_lines_are_cut() {
        let report = report();
        let text = as_text(&report, &Rates::since_start(&report), (60, 14));
        for line in text.lines() {
            assert!(line.chars().count() <= 60, "{line}");
        }
        assert!(
            text.contains("logs/?[2J") && !text.contains("WINDOW"),
            "{text}"
        );
        assert!(text.lines().nth(1).unwrap().ends_with('…'), "{text}");
    }

    #[test]
    fn at_eighty_columns_nothing_is_cut_and_keys_are_named() {
        let mut report = report();
        report.counters["stall_ns"] = 250_000_000_000_u64.into();
        let rates = Rates::since_start(&report);
        let area = Rect::new(0, 0, 80, 24);
        let shown = |view: View| {
            let mut cells = Buffer::empty(area);
            draw(&report, &rates, Some((12, &view)), area, &mut cells);
            let row = |y: u16| (0..80).map(move |x| (x, y));
            let row = |y: u16| row(y).map(|at| cells[at].symbol()).collect::<String>();
            (0..24)
                .map(|y| row(y).trim_end().to_owned() + "\n")
                .collect::<String>()
        };
        let text = shown(View::default());
        let head: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        assert!(head.len() == 8 && !head.concat().contains('…'), "{text}");
        for words in [
            "\n         readers wait 125.0\n",
            "\n         failed 0 B\n",
            "\nq quits   ? explains   s sorts: by rate   Tab next of 12\n",
        ] {
            assert!(text.contains(words), "{words}{text}");
        }
        let view = View {
            order: Order::Name,
            skipped: 1,
            ..View::default()
        };
        let text = shown(view.clone());
        assert!(text.contains("slow") && !text.contains("logs/"), "{text}");
        assert!(
            text.contains("by name   Tab next of 12   from file 2 of 2"),
            "{text}"
        );
        let silence = Some("no answer for 12 s".to_owned());
        let text = shown(View {
            silence,
            ..view.clone()
        });
        assert!(text.contains("\nno answer for 12 s   q quits "), "{text}");
        let help = shown(View {
            is_help: true,
            ..view
        });
        assert!(help.starts_with("q, Esc") && !help.contains('…'), "{help}");
    }

    #[test]
    fn a_watch_has_what_it_steers_and_what_it_cannot() {
        let not = |process: u32, program: &str, cause: &str, bytes| NotSteeredReport {
            cause: cause.into(),
            process,
            program: program.into(),
            bytes,
        };
        let watch = WatchReport {
            paths: vec!["/data".into()],
            seeing: "readahead".into(),
            events: 80,
            streams: 2,
            missed_bytes: 100_000_000,
            limits_set: 10,
            setting_ns: 920_000,
            held_most_ns: 400_000,
            not_steered: vec![
                not(
                    812,
                    "nfsd",
                    "threads of the kernel (nfsd, ksmbd, loop)",
                    2_000_000,
                ),
                not(0, "", "closed meanwhile", 100_000),
            ],
            ..WatchReport::default()
        };
        let report = Report {
            source: "ext4 8:0".into(),
            mountpoint: "/data".into(),
            watch: Some(watch),
            ..report()
        };
        let text = as_text(&report, &Rates::since_start(&report), (120, 15));
        snapbox::assert_data_eq!(
            text,
            snapbox::str![[r#"
forerun  ext4 8:0 at /data   up 2.00 s   rates over 2.00 s   seeing readahead
missed   50.0 MB/s   events 40.0/s   lost 0   streams 2   state steers
steered  97.9 %   limits set 5.0/s   each 92.0 us   spared 0   descriptor held at most 400.0 us
memory   pages lost 0   windows 0.0/s   scheduler as set

DEVICE   QUEUED FLIGHT   SWITCH        RATE SERVERS    DEPTH  FROM
emulated     12      2  12.0 ms  220.0 MB/s      1?  2.64 MB  1,204 requests, ? told

READ/S    AT    SIZE      WINDOW   AHEAD    WAIT PROCESS                FILE
21.5 MB   43 %  100.0 MB  4.19 MB  6.29 MB  2    4711 tar               logs/?[2J
          81 %            4.19 MB  2.10 MB  0
500.0 kB  1 %   100.0 MB  -        -        -    4711 tar               slow
NOT STEERED   SHARE     BYTES PROCESS                CAUSE
              2.0 %   2.00 MB     812 nfsd           threads of the kernel (nfsd, ksmbd, loop)
              0.1 %  100.0 kB others                 closed meanwhile

"#]]
        );
        let mut paused = report;
        if let Some(watch) = &mut paused.watch {
            (watch.is_paused, watch.not_steered) = (true, Vec::new());
        }
        let text = as_text(&paused, &Rates::since_start(&paused), (120, 15));
        assert!(
            text.contains("state paused") && !text.contains("NOT STEERED"),
            "{text}"
        );
    }

    #[test]
    fn several_mounts_are_a_line_each() {
        let mut other = report();
        other.mountpoint = "/a/long/mount/point".into();
        let text = list(&[("a".into(), report()), ("b".into(), other)]);
        snapbox::assert_data_eq!(
            text,
            snapbox::str![[r#"
MOUNTPOINT           SOURCE       READ  OPEN  UP
/fast                /data     4.10 MB     2  2.00 s
/a/long/mount/point  /data     4.10 MB     2  2.00 s

"#]]
        );
    }
}
