//! The table of small files in Markdown, as the documents have it: a line for each program and pass.
//!
//! Called by the command line; `--format json` prints the [`SmallTable`] itself, with every run.
//!
//! ```text
//! | program | source | FUSE | mount | `--unchanging` | disk: MB | switches |
//! | tail, cold | 1.86 s (1.83 to 1.88) | 1.01 | 0.74 | 0.72 | 13, 13 | 203, 201 |
//! ```
//!
//! The work of the disk is that of the source and of the mount, or of the watch.

use std::fmt;

use super::program::Program;
use super::{DiskWork, Pass, Row, Side, SmallTable};

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Source => "source",
            Self::Passthrough => "FUSE",
            Self::Forerun => "mount",
            Self::Unchanging => "`--unchanging`",
            Self::Watch => "watch",
        })
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        })
    }
}

impl fmt::Display for SmallTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (disks, files) = (&self.bed.disks, &self.bed.files);
        let kind = self.bed.file_system.kind.name();
        let runs = self.rows.iter().map(|row| row.runs_seconds.len()).max();
        writeln!(
            f,
            "{kind} on {} x {}, files of {} bytes in {} folders, {} MiB for forerun. Source: median of {} runs, least \
             and most; others: their medians to that one.\n",
            disks.count,
            disks.device,
            files.sizes(),
            files.folders.max(1),
            self.memory_bytes >> 20,
            runs.unwrap_or(0),
        )?;
        let sides = self.sides();
        let has_disk = self.rows.iter().any(|row| row.disk.is_some());
        let mut head: Vec<String> = ["files", "program"].map(String::from).to_vec();
        head.extend(sides.iter().map(Side::to_string));
        if has_disk {
            head.extend(["disk: MB", "switches"].map(String::from));
        }
        line(f, &head)?;
        line(f, &vec!["---".to_owned(); head.len()])?;
        let blocks = self.rows.chunk_by(|one, other| block(one) == block(other));
        for rows in blocks {
            line(f, &cells(rows, &sides, has_disk))?;
        }
        Ok(())
    }
}

impl SmallTable {
    /// The candidates, in the order in which they are shown.
    fn sides(&self) -> Vec<Side> {
        let mut sides = Vec::new();
        for row in &self.rows {
            if !sides.contains(&row.side) {
                sides.push(row.side);
            }
        }
        sides
    }
}

/// Rows with the same are one line.
fn block(row: &Row) -> (u64, Program, Pass) {
    (row.files, row.program, row.pass)
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String]) -> fmt::Result {
    writeln!(f, "| {} |", cells.join(" | "))
}

/// The cells of a block.
fn cells(rows: &[Row], sides: &[Side], has_disk: bool) -> Vec<String> {
    let of = |side: Side| rows.iter().find(|row| row.side == side);
    let mut cells = Vec::new();
    if let Some(first) = rows.first() {
        cells.extend([
            first.files.to_string(),
            format!("{}, {}", first.program, first.pass),
        ]);
    }
    cells.extend(sides.iter().map(|side| match of(*side) {
        Some(row) if *side == Side::Source => time(row),
        Some(row) => format!("{:.2}", row.to_source),
        None => String::new(),
    }));
    if has_disk {
        let works = [Side::Source, Side::Forerun, Side::Watch];
        let works = works.map(|side| of(side).and_then(|row| row.disk));
        let both = |part: fn(DiskWork) -> f64| {
            let parts = works
                .iter()
                .flatten()
                .map(|work| format!("{:.0}", part(*work)));
            parts.collect::<Vec<_>>().join(", ")
        };
        cells.extend([both(|work| work.bytes / 1e6), both(|work| work.switches)]);
    }
    cells
}

/// The median of the source with its least and most; of `open` for one file.
fn time(row: &Row) -> String {
    let (factor, digits, unit) = match row.program {
        Program::Open => (1e6, 1, "us"),
        _ => (1.0, 2, "s"),
    };
    let runs = || row.runs_seconds.iter().copied();
    let (least, most) = (
        runs().fold(f64::INFINITY, f64::min),
        runs().fold(0.0, f64::max),
    );
    let [time, least, most] = [row.seconds, least, most].map(|time| time * factor);
    format!("{time:.digits$} {unit} ({least:.digits$} to {most:.digits$})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    fn row(program: Program, side: Side, seconds: f64, to_source: f64) -> Row {
        Row {
            files: 200,
            program,
            pass: Pass::Cold,
            side,
            seconds,
            runs_seconds: vec![seconds * 0.5, seconds, seconds * 2.0],
            to_source,
            to_passthrough: 1.0,
            disk: None,
        }
    }

    fn printed(text: &str, rows: Vec<Row>) -> String {
        let bed = bed::parse(text).unwrap();
        let memory_bytes = 256 << 20;
        SmallTable {
            bed,
            memory_bytes,
            rows,
        }
        .to_string()
    }

    #[test]
    fn a_table_names_the_bed_and_has_a_line_for_each_program_and_pass() {
        let rows = vec![
            row(Program::Tar, Side::Source, 1.5, 1.0),
            row(Program::Tar, Side::Forerun, 0.6, 0.4),
            row(Program::Open, Side::Source, 0.000_021_04, 1.0),
            row(Program::Open, Side::Forerun, 0.000_042, 2.0),
        ];
        let text = printed(include_str!("../../beds/small_local.toml"), rows);
        let expected = "\n\n| files | program | source | mount |\n| --- | --- | --- | --- |\n\
            | 200 | tar, cold | 1.50 s (0.75 to 3.00) | 0.40 |\n\
            | 200 | open, cold | 21.0 us (10.5 to 42.1) | 2.00 |\n";
        assert!(text.ends_with(expected), "{text}");
        assert!(text.contains("local, files of 3000 to 60000 bytes in 40 folders, 256 MiB"));
        assert!(text.contains("median of 3 runs"));
    }

    #[test]
    fn the_work_of_an_emulated_disk_stands_behind() {
        let mut rows = vec![
            row(Program::Tail, Side::Source, 1.86, 1.0),
            row(Program::Tail, Side::Forerun, 1.4, 0.75),
        ];
        for (row, switches) in rows.iter_mut().zip([203.0, 150.0]) {
            row.disk = Some(DiskWork {
                requests: 1.0,
                switches,
                bytes: 13.4e6,
                busy_seconds: 1.0,
                late_ns: 0.0,
            });
        }
        let text = printed(include_str!("../../beds/parts.toml"), rows);
        let expected = "| 200 | tail, cold | 1.86 s (0.93 to 3.72) | 0.75 | 13, 13 | 203, 150 |\n";
        assert!(text.ends_with(expected), "{text}");
        assert!(text.contains("| disk: MB | switches |\n"), "{text}");
    }
}
