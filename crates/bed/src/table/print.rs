//! The table as text.
//!
//! Called by the command line; `--format json` prints the [`Table`] itself.

use std::fmt;

use super::Table;
use crate::compare::print::{optional, rows, spread};

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
        rows(
            f,
            "readers",
            &self.rows,
            |row| (row.readers, &row.figures.side),
            [
                ("MB/s", 7, |row| format!("{:.1}", row.mb_per_second)),
                ("of runs", 13, |row| spread(&row.runs_mb_per_second)),
                ("x first", 7, |row| format!("{:.2}", row.figures.to_default)),
                ("x best", 7, |row| format!("{:.2}", row.figures.to_best)),
                ("slowest", 7, |row| {
                    format!("{:.2}", row.figures.slowest_per_mean)
                }),
                ("KiB/req", 8, |row| row.figures.request_kib()),
                ("switch", 7, |row| row.figures.switch()),
                ("late", 6, |row| row.figures.late()),
                ("RSS", 6, |row| row.figures.resident()),
                ("CPU", 6, |row| {
                    optional(row.processor, |share| format!("{:.1}%", share * 100.0))
                }),
            ],
        )?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;
    use crate::compare::Figures;
    use crate::table::Row;

    #[test]
    fn a_table_names_bed_memory_and_every_row() {
        let figures = Figures {
            side: "kernel none 128".into(),
            slowest_per_mean: 0.97,
            to_default: 1.0,
            to_best: 0.4,
            switches_per_request: Some(0.5),
            request_bytes: Some(131_072.0),
            late_ns: Some(34_000.0),
            resident_max_bytes: None,
        };
        let row = Row {
            readers: 10,
            mb_per_second: 22.8,
            runs_mb_per_second: vec![22.7, 22.8, 22.9],
            processor: None,
            figures: figures.clone(),
        };
        let of_local_disk = Row {
            readers: 64,
            processor: Some(0.013),
            figures: Figures {
                switches_per_request: None,
                request_bytes: None,
                late_ns: None,
                resident_max_bytes: Some(41 << 20),
                ..figures
            },
            ..row.clone()
        };
        let table = Table {
            bed: bed::parse(include_str!("../../beds/disk.toml")).unwrap(),
            memory_bytes: 256 << 20,
            is_memory_limited: false,
            read_bytes: 131_072,
            run_seconds: 10.0,
            rows: vec![row, of_local_disk],
        };
        let text = table.to_string();
        let expected = "\n\
            readers  side                        MB/s       of runs x first  x best slowest  KiB/req  switch   late    RSS    CPU\n     \
            10  kernel none 128             22.8    22.7..22.9    1.00    0.40    0.97      128     50%     34      -      -\n\
            \n     \
            64  kernel none 128             22.8    22.7..22.9    1.00    0.40    0.97        -       -      -     41   1.3%\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("64 files of 100 MB, reads of 128 KiB, 10 s a run"));
        assert!(text.contains("NO LIMIT"));
    }
}
