//! The devices on the screen of `top`: queues, and costs with their origin.
//!
//! ```text
//! DEVICE  QUEUED  FLIGHT    SWITCH        RATE  SERVERS    DEPTH  FROM
//! 8:1         12       2   12.0 ms  220.0 MB/s        1  2.64 MB  1,204 requests
//! 8:17         0       0   8.00 ms   80.0 MB/s        ? 640.0 kB  system
//! ```
//!
//! The costs are the engine's [estimate](crate::estimate). The lines fit 80 columns up to 9,999 requests
//! of a device whose name has eight letters, as `emulated`.

use ratatui::style::{Style, Stylize};
use ratatui::text::Line;

use crate::estimate::Estimate;
use crate::mount::report::QueueReport;

/// Devices that are shown, so that files stay in view on a terminal of 24 lines.
const SHOWN_MAX: usize = 6;

/// A line for each device below a line of names.
pub(super) fn lines<'a>(queues: &[QueueReport]) -> Vec<Line<'a>> {
    if queues.is_empty() {
        return vec![Line::from("no file has been opened yet: no device is known").dim()];
    }
    let shown = || queues.iter().take(SHOWN_MAX);
    let names = shown().map(|queue| queue.device.len());
    let wide = names.max().unwrap_or(0).max("DEVICE".len());
    let row = |[name, queued, flight, switch, rate, servers, depth, from]: [&str; 8]| {
        format!(
            "{name:wide$}  {queued:>6}  {flight:>6} {switch:>9}  {rate:>10}  {servers:>7} \
             {depth:>8}  {from}"
        )
    };
    let head = [
        "DEVICE", "QUEUED", "FLIGHT", "SWITCH", "RATE", "SERVERS", "DEPTH", "FROM",
    ];
    let mut lines = vec![Line::from(row(head)).style(Style::new().reversed())];
    let of = |queue: &QueueReport| {
        let (queued, flight) = (queue.queued.to_string(), queue.in_flight.to_string());
        let estimate = queue.estimate.as_ref();
        let none = || ["-"; 3].map(str::to_owned);
        let [switch, rate, depth] = estimate.map_or_else(none, Estimate::costs);
        let servers = estimate.map_or("?".into(), Estimate::servers_or_unknown);
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
    use crate::estimate::Basis;

    fn queue(servers: Option<u32>, basis: Basis, requests: u64) -> QueueReport {
        QueueReport {
            device: "emulated".into(),
            queued: 12,
            in_flight: 2,
            estimate: Some(Estimate {
                switching_ns: 12_000_000,
                rate_bytes_per_second: 220_000_000,
                servers,
                depth_bytes: 2_640_000,
                basis,
                requests,
                switches: requests / 2,
            }),
        }
    }

    #[test]
    fn each_device_is_a_line_of_80_columns_and_unknown_servers_are_a_question_mark() {
        let old = serde_json::json!({ "device": "259:12", "queued": 0, "in_flight": 0 });
        let queues = [
            queue(Some(1), Basis::Requests, 9_999),
            queue(None, Basis::System, 0),
            serde_json::from_value(old).unwrap(),
        ];
        let lines: Vec<_> = lines(&queues).iter().map(Line::to_string).collect();
        snapbox::assert_data_eq!(
            lines.join("\n"),
            snapbox::str![[r#"
DEVICE    QUEUED  FLIGHT    SWITCH        RATE  SERVERS    DEPTH  FROM
emulated      12       2   12.0 ms  220.0 MB/s        1  2.64 MB  9,999 requests
emulated      12       2   12.0 ms  220.0 MB/s        ?  2.64 MB  system
259:12         0       0         -           -        ?        -  -
"#]]
        );
        assert!(lines.iter().all(|line| line.len() <= 80));
    }

    #[test]
    fn many_devices_leave_room_for_files() {
        let lines = lines(&vec![queue(None, Basis::Told, 0); 50]);
        assert_eq!(lines.len(), 2 + SHOWN_MAX);
        assert_eq!(lines.last().unwrap().to_string(), "and 44 more");
    }
}
