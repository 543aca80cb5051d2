//! The table as text: one block for each number of readers, one line a candidate.
//!
//! Called by the command line; `--format json` prints the [`Table`] itself.

use std::fmt;

use super::{Row, Table};

/// The memory-limit clause of the heading.
fn memory(table: &Table) -> String {
    let memory = table.memory_bytes >> 20;
    if table.is_memory_limited {
        format!("{memory} MiB of memory")
    } else {
        format!("{memory} MiB for forerun, NO LIMIT for the kernel: no memory cgroup here")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (disks, files) = (&self.bed.disks, &self.bed.files);
        let kind = self.bed.file_system.kind.name();
        writeln!(f, "{kind} on {} x {}", disks.count, disks.device)?;
        writeln!(
            f,
            "{} files of {} MB, reads of {} KiB, {} s a run, {}",
            files.count,
            files.file_bytes / 1_000_000,
            self.read_bytes >> 10,
            self.run_seconds,
            memory(self)
        )?;
        writeln!(
            f,
            "\n{:>7}  {:24}{:>7} {:>13} {:>7} {:>7} {:>7} {:>8} {:>7} {:>6} {:>6} {:>6}",
            "readers",
            "side",
            "MB/s",
            "of runs",
            "x first",
            "x best",
            "slowest",
            "KiB/req",
            "switch",
            "late",
            "RSS",
            "CPU"
        )?;
        let mut readers = None;
        for row in &self.rows {
            if readers
                .replace(row.readers)
                .is_some_and(|before| before != row.readers)
            {
                writeln!(f)?;
            }
            writeln!(f, "{}", line(row))?;
        }
        writeln!(
            f,
            "\nMB/s: median of the runs, 10^6 bytes. x first, x best: to the first and to the best \
             kernel\nsetting. slowest: reader over mean. KiB/req, switch: mean request at the disks, \
             and share of them\nthat switch. late: us the disks were late on average. RSS: MiB of \
             forerun at most. CPU:\nits processor time, of one processor. Before each run the file system was mounted anew, so nothing \
             was cached."
        )
    }
}

fn line(row: &Row) -> String {
    let least = row
        .runs_mb_per_second
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let most = row.runs_mb_per_second.iter().copied().fold(0.0, f64::max);
    let resident = row
        .resident_max_bytes
        .map_or_else(|| "-".into(), |b| (b >> 20).to_string());
    format!(
        "{:>7}  {:24}{:>7.1} {:>13} {:>7.2} {:>7.2} {:>7.2} {:>8.0} {:>6.0}% {:>6.0} {:>6} {:>6}",
        row.readers,
        row.side,
        row.mb_per_second,
        format!("{least:.1}..{most:.1}"),
        row.to_default,
        row.to_best,
        row.slowest_per_mean,
        row.request_bytes / 1024.0,
        row.switches_per_request * 100.0,
        row.late_ns / 1_000.0,
        resident,
        row.processor
            .map_or_else(|| "-".into(), |share| format!("{:.1}%", share * 100.0))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn a_table_names_bed_memory_and_every_row() {
        let row = Row {
            readers: 10,
            side: "kernel none 128".into(),
            mb_per_second: 22.8,
            runs_mb_per_second: vec![22.7, 22.8, 22.9],
            slowest_per_mean: 0.97,
            to_default: 1.0,
            to_best: 0.4,
            switches_per_request: 0.5,
            request_bytes: 131_072.0,
            late_ns: 34_000.0,
            resident_max_bytes: None,
            processor: None,
        };
        let table = Table {
            bed: bed::parse(include_str!("../../beds/disk.toml")).unwrap(),
            memory_bytes: 256 << 20,
            is_memory_limited: false,
            read_bytes: 131_072,
            run_seconds: 10.0,
            rows: vec![row.clone(), Row { readers: 64, ..row }],
        };
        let text = table.to_string();
        let expected = "     10  kernel none 128            22.8    22.7..22.9    1.00    0.40    \
                        0.97      128     50%     34      -      -\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("64 files of 100 MB, reads of 128 KiB, 10 s a run"));
        assert!(text.contains("NO LIMIT"));
    }
}
