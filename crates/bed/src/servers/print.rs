//! The table of a server as text: a block for each number of clients, a line for each candidate.
//!
//! Called by the command line; `--format json` prints the [`ServerTable`] itself.

use std::fmt;

use super::{Server, ServerTable};
use crate::compare::print::{optional, rows, spread};

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
        rows(
            f,
            "clients",
            &self.rows,
            |row| (row.clients, &row.figures.side),
            [
                ("1/s", 8, |row| format!("{:.1}", row.per_second)),
                ("of runs", 15, |row| spread(&row.runs_per_second)),
                ("x first", 7, |row| format!("{:.2}", row.figures.to_default)),
                ("x best", 7, |row| format!("{:.2}", row.figures.to_best)),
                ("p50 ms", 7, |row| format!("{:.0}", row.p50_ms)),
                ("p99 ms", 7, |row| format!("{:.0}", row.p99_ms)),
                ("slowest", 7, |row| {
                    format!("{:.2}", row.figures.slowest_per_mean)
                }),
                ("MB/s", 6, |row| {
                    optional(row.disk_mb_per_second, |rate| format!("{rate:.1}"))
                }),
                ("KiB/req", 8, |row| row.figures.request_kib()),
                ("switch", 7, |row| row.figures.switch()),
                ("late", 6, |row| row.figures.late()),
                ("RSS", 6, |row| row.figures.resident()),
            ],
        )?;
        writeln!(
            f,
            "\n1/s: requests or queries a second, median of the runs. x first, x best: to the first and to \
             the best\nkernel setting. slowest: client with the fewest over the mean. MB/s, KiB/req, switch: \
             at the disks.\nlate: us the disks were late on average. RSS: MiB of forerun mount at most."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;
    use crate::compare::Figures;
    use crate::servers::Row;

    #[test]
    fn a_table_names_the_server_and_has_a_line_for_each_row() {
        let figures = Figures {
            side: "kernel none 128".into(),
            slowest_per_mean: 0.75,
            to_default: 1.0,
            to_best: 0.5,
            switches_per_request: Some(0.9),
            request_bytes: Some(65_536.0),
            late_ns: Some(34_000.0),
            resident_max_bytes: None,
        };
        let row = Row {
            clients: 64,
            per_second: 41.26,
            runs_per_second: vec![40.0, 41.26, 42.0],
            figures,
            p50_ms: 900.0,
            p99_ms: 2_100.4,
            disk_mb_per_second: Some(6.2),
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
        let expected = "     64  kernel none 128              41.3      40.0..42.0    1.00    0.50     900    \
                        2100    0.75    6.2       64     90%     34      -\n\n    256 ";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("10000 media clips, 6080 MB, 256 MiB of memory, 3 runs of 20 s"));
        assert!(text.contains("scheduler bfq: not in this kernel"));
    }
}
