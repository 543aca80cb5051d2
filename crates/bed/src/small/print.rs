//! The table of small files as text: a block for each program and pass, a line for each candidate.
//!
//! Called by the command line; `--format json` prints the [`SmallTable`] itself.

use std::fmt;

use super::program::Program;
use super::{Pass, Row, Side, SmallTable};

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Source => "source",
            Self::Passthrough => "passthrough",
            Self::Forerun => "forerun",
            Self::Unchanging => "forerun --unchanging",
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
        writeln!(
            f,
            "{kind} on {} x {}, files of {} bytes in {} folders, {} MiB for forerun\n",
            disks.count,
            disks.device,
            files.sizes(),
            files.folders.max(1),
            self.memory_bytes >> 20
        )?;
        writeln!(
            f,
            "{:>6}  {:8} {:5} {:21}{:>9} {:>17} {:>9} {:>14}",
            "files", "program", "pass", "side", "time", "of runs", "x source", "x passthrough"
        )?;
        let mut before = None;
        for row in &self.rows {
            let block = (row.files, row.program, row.pass);
            if before.replace(block).is_some_and(|other| other != block) {
                writeln!(f)?;
            }
            writeln!(f, "{}", line(row))?;
        }
        writeln!(
            f,
            "\ntime: median of the runs; s, of `open` us a file. x source, x passthrough: to that \
             side's median.\ncold: the file system was mounted anew before. warm: from the cold \
             pass's cache."
        )
    }
}

fn line(row: &Row) -> String {
    let (factor, digits) = match row.program {
        Program::Open => (1e6, 1),
        _ => (1.0, 3),
    };
    let least = row
        .runs_seconds
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let most = row.runs_seconds.iter().copied().fold(0.0, f64::max);
    format!(
        "{:>6}  {:8} {:5} {:21}{:>9.digits$} {:>17} {:>9.2} {:>14.2}",
        row.files,
        row.program,
        row.pass,
        row.side,
        row.seconds * factor,
        format!("{:.digits$}..{:.digits$}", least * factor, most * factor),
        row.to_source,
        row.to_passthrough
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn a_table_names_the_bed_and_has_a_line_for_each_row() {
        let row = Row {
            files: 20_000,
            program: Program::Tar,
            pass: Pass::Cold,
            side: Side::Unchanging,
            seconds: 1.5,
            runs_seconds: vec![1.25, 1.5, 2.0],
            to_source: 1.2,
            to_passthrough: 0.4,
        };
        let open = Row {
            program: Program::Open,
            pass: Pass::Warm,
            seconds: 0.000_021_04,
            ..row.clone()
        };
        let table = SmallTable {
            bed: bed::parse(include_str!("../../beds/small_local.toml")).unwrap(),
            memory_bytes: 256 << 20,
            rows: vec![row, open],
        };
        let text = table.to_string();
        let expected = " 20000  tar      cold  forerun --unchanging     1.500      1.250..2.000      \
                        1.20           0.40\n\n 20000  open     warm  forerun --unchanging      21.0 ";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("local, files of 3000 to 60000 bytes in 40 folders, 256 MiB"));
    }
}
