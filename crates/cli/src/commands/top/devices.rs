//! The devices on the screen of `top`: queues, and costs with their origin.
//!
//! ```text
//! DEVICE QUEUED FLIGHT   SWITCH       RATE SERVERS    DEPTH  FROM
//! 8:1        12      2  12.0 ms 220.0 MB/s       1  2.64 MB  1,204 requests
//! 8:17        0      0  8.00 ms  80.0 MB/s       ? 640.0 kB  system
//! 8:33        0      1 8.00 ms? 174.2 MB/s      1? 1.39 MB   9,999 requests, ? system
//! ```
//!
//! The costs are the engine's [estimate](crate::estimate): a question mark means that this figure
//! is still the prior of the last word, and a dash that too few requests completed. The lines fit 80 columns up to 9,999 requests that measured
//! all of them, of a device whose name has eight letters, as `emulated`.

use ratatui::style::{Style, Stylize};
use ratatui::text::Line;

use crate::estimate::Estimate;
use crate::mount::report::{PassthroughReport, QueueReport};

/// Devices that are shown, so that files stay in view on a terminal of 24 lines.
const SHOWN_MAX: usize = 6;

/// A line for each device below a line of names.
pub(super) fn lines<'a>(queues: &[QueueReport], passed: &PassthroughReport) -> Vec<Line<'a>> {
    if queues.is_empty() {
        let why = match passed.opens {
            0 => "no file has been opened yet: no device is known",
            _ => "the kernel reads all files by itself (passthrough): the engine has no device",
        };
        return vec![Line::from(why).dim()];
    }
    let shown = || queues.iter().take(SHOWN_MAX);
    let names = shown().map(|queue| queue.device.len());
    let wide = names.max().unwrap_or(0).max("DEVICE".len());
    let row = |[name, queued, flight, switch, rate, servers, depth, from]: [&str; 8]| {
        format!(
            "{name:wide$} {queued:>6} {flight:>6} {switch:>8} {rate:>11} {servers:>7} {depth:>8}  {from}"
        )
    };
    let head = [
        "DEVICE", "QUEUED", "FLIGHT", "SWITCH", "RATE", "SERVERS", "DEPTH", "FROM",
    ];
    let mut lines = vec![Line::from(row(head)).style(Style::new().reversed())];
    let of = |queue: &QueueReport| {
        let (queued, flight) = (queue.queued.to_string(), queue.in_flight.to_string());
        let estimate = queue.estimate.as_ref();
        let none = || ["-"; 4].map(str::to_owned);
        let [switch, rate, servers, depth] = estimate.map_or_else(none, Estimate::costs);
        let from = estimate.map_or("-".into(), Estimate::basis);
        let name = &queue.device;
        Line::from(row([
            name, &queued, &flight, &switch, &rate, &servers, &depth, &from,
        ]))
    };
    lines.extend(shown().map(of));
    if queues.len() > SHOWN_MAX {
        let more = queues.len() - SHOWN_MAX;
        lines.push(Line::from(format!("and {more} more")).dim());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::measure::Confidence;
    use forerun_core::{Nanos, Profile};

    use crate::estimate::Basis;

    fn queue(servers: Option<u32>, basis: Basis, requests: u64) -> QueueReport {
        let disk = Profile::constant(Nanos(12_000_000), 220_000_000).unwrap();
        let measured = match servers {
            Some(servers) => disk.with_servers(servers).unwrap(),
            None => disk,
        };
        let mut confidence = Confidence::default();
        confidence.samples = requests;
        confidence.switches = requests / 2;
        confidence.saw_servers = servers == Some(4);
        QueueReport {
            device: "emulated".into(),
            queued: 12,
            in_flight: 2,
            estimate: Some(Estimate::new(&measured, confidence, basis)),
        }
    }

    #[test]
    fn each_device_is_a_line_and_says_where_each_figure_comes_from() {
        let old = serde_json::json!({ "device": "259:12", "queued": 0, "in_flight": 0 });
        let queues = [
            queue(Some(4), Basis::Told, 9_999),
            queue(Some(4), Basis::Told, 0),
            queue(Some(1), Basis::System, 1),
            queue(Some(1), Basis::System, 32),
            queue(None, Basis::System, 0),
            serde_json::from_value(old).unwrap(),
        ];
        let lines: Vec<_> = lines(&queues, &PassthroughReport::default())
            .iter()
            .map(Line::to_string)
            .collect();
        snapbox::assert_data_eq!(
            lines.join("\n"),
            snapbox::str![[r#"
DEVICE   QUEUED FLIGHT   SWITCH        RATE SERVERS    DEPTH  FROM
emulated     12      2  12.0 ms  220.0 MB/s       4  2.64 MB  9,999 requests
emulated     12      2        -           -       -        -  requests, ? told
emulated     12      2        -           -       -        -  system
emulated     12      2  12.0 ms  220.0 MB/s      1?  2.64 MB  32 requests, ? system
emulated     12      2  12.0 ms  220.0 MB/s       ?  2.64 MB  system
259:12        0      0        -           -       -        -  -
"#]]
        );
        let told = lines.iter().filter(|line| !line.contains(", ? "));
        assert!(told.clone().count() == 5 && told.into_iter().all(|line| line.len() <= 80));
    }

    #[test]
    fn without_a_device_the_reason_is_told() {
        let line = |opens| {
            let passed = PassthroughReport {
                opens,
                ..PassthroughReport::default()
            };
            lines(&[], &passed)[0].to_string()
        };
        assert_eq!(line(0), "no file has been opened yet: no device is known");
        assert_eq!(
            line(1),
            "the kernel reads all files by itself (passthrough): the engine has no device"
        );
    }

    #[test]
    fn many_devices_leave_room_for_files() {
        let queues = vec![queue(None, Basis::Told, 0); 50];
        let lines = lines(&queues, &PassthroughReport::default());
        assert_eq!(lines.len(), 2 + SHOWN_MAX);
        assert_eq!(lines.last().unwrap().to_string(), "and 44 more");
    }
}
