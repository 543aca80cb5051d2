//! The table of a server as text: a block for each number of clients, a line for each candidate.
//!
//! Called by the command line; `--format json` prints the [`ServerTable`] itself.

use std::fmt;

use super::{Row, Server, ServerTable};

impl fmt::Display for ServerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disks = &self.bed.disks;
        let (kind, served) = (
            self.bed.file_system.kind.name(),
            self.served_bytes / 1_000_000,
        );
        let what = match &self.server {
            Server::Media => format!("nginx, {} media clips", self.bed.files.count),
            Server::Search { documents, .. } => format!("Xapian, {documents} documents"),
        };
        let memory = self.memory_bytes >> 20;
        let limit = match self.is_memory_limited {
            true => format!("{memory} MiB of memory"),
            false => format!("{memory} MiB, NOT LIMITED: no memory cgroup here"),
        };
        writeln!(f, "{kind} on {} x {}", disks.count, disks.device)?;
        let (seconds, runs) = (self.run_seconds, self.runs);
        writeln!(
            f,
            "{what}, {served} MB, {limit}, {runs} runs of {seconds} s"
        )?;
        for name in &self.absent_schedulers {
            writeln!(f, "scheduler {name}: not in this kernel")?;
        }
        writeln!(
            f,
            "\n{:>7}  {:18}{:>8} {:>15} {:>7} {:>6} {:>7} {:>7} {:>7} {:>6} {:>7} {:>6} {:>5} {:>4}",
            "clients",
            "side",
            "1/s",
            "of runs",
            "x first",
            "x best",
            "p50 ms",
            "p99 ms",
            "slowest",
            "MB/s",
            "KiB/req",
            "switch",
            "late",
            "RSS"
        )?;
        let mut before = None;
        for row in &self.rows {
            if before
                .replace(row.clients)
                .is_some_and(|other| other != row.clients)
            {
                writeln!(f)?;
            }
            writeln!(f, "{}", line(row))?;
        }
        writeln!(
            f,
            "\n1/s: requests or queries a second, median of the runs. x first, x best: to the first and to \
             the best\nkernel setting. slowest: client with the fewest over the mean. MB/s, KiB/req, switch: \
             at the disks.\nlate: us the disks were late on average. RSS: MiB of forerun mount at most."
        )
    }
}

fn line(row: &Row) -> String {
    let runs = row.runs_per_second.iter().copied();
    let least = runs.clone().fold(f64::INFINITY, f64::min);
    let most = runs.fold(0.0, f64::max);
    let resident = row
        .resident_max_bytes
        .map_or_else(|| "-".into(), |bytes| (bytes >> 20).to_string());
    format!(
        "{:>7}  {:18}{:>8.1} {:>15} {:>7.2} {:>6.2} {:>7.0} {:>7.0} {:>7.2} {:>6.1} {:>7.0} {:>5.0}% {:>5.0} {:>4}",
        row.clients,
        row.side,
        row.per_second,
        format!("{least:.1}..{most:.1}"),
        row.to_default,
        row.to_best,
        row.p50_ms,
        row.p99_ms,
        row.slowest_per_mean,
        row.disk_mb_per_second,
        row.request_bytes / 1024.0,
        row.switches_per_request * 100.0,
        row.late_ns / 1_000.0,
        resident
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn a_table_names_the_server_and_has_a_line_for_each_row() {
        let row = Row {
            clients: 64,
            side: "kernel none 128".into(),
            per_second: 41.26,
            runs_per_second: vec![40.0, 41.26, 42.0],
            to_default: 1.0,
            to_best: 0.5,
            p50_ms: 900.0,
            p99_ms: 2_100.4,
            slowest_per_mean: 0.75,
            disk_mb_per_second: 6.2,
            request_bytes: 65_536.0,
            switches_per_request: 0.9,
            late_ns: 34_000.0,
            resident_max_bytes: None,
        };
        let table = ServerTable {
            server: Server::Media,
            bed: bed::parse(include_str!("../../beds/media.toml")).unwrap(),
            served_bytes: 6_080_000_000,
            memory_bytes: 256 << 20,
            is_memory_limited: true,
            run_seconds: 20.0,
            runs: 3,
            absent_schedulers: vec!["bfq".into()],
            rows: vec![
                row.clone(),
                Row {
                    clients: 256,
                    ..row
                },
            ],
        };
        let text = table.to_string();
        let expected = "     64  kernel none 128       41.3      40.0..42.0    1.00   0.50     900    \
                        2100    0.75    6.2      64    90%    34    -\n\n    256 ";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("10000 media clips, 6080 MB, 256 MiB of memory, 3 runs of 20 s"));
        assert!(text.contains("scheduler bfq: not in this kernel"));
    }
}
