//! Figures of documents that the simulator gives: those in brackets in the table of readers, which the README and
//! `docs/RESULTS.md` have, and the advice that `docs/REPORT.md` prints.
//!
//! A row is a preset, or `forerun` with options, and a column a number of readers; `(76.6)` is a rate that is simulated
//! here. `FORERUN_BLESS=1` writes these anew. All else in a cell was measured in real time and stays as it is.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;

use super::documents::{compare_table, document, table_at};

const PAGES: [&str; 2] = ["../README.md", "RESULTS.md"];

/// The beginning of the table's head.
const HEAD: &str = "| preset | 1 reader |";

/// The disk, the files and the memory that both pages name.
const BENCH: &str = "bench --clock virtual --format csv --emulate switching=8ms,rate=80MB/s \
                     --file-bytes 100MB --read-bytes 64KiB";

/// A row's options and a column's readers.
type Run = (String, u32);

/// MB/s in all, as the tables print it.
fn simulated((options, readers): &Run) -> String {
    let memory = match options.contains("--memory") {
        true => "",
        false => "--memory 256MiB",
    };
    let line = format!("{BENCH} {memory} --readers {readers} --preset {options}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_forerun"));
    let output = command.args(line.split_whitespace()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let column = names
        .iter()
        .position(|name| *name == "throughput_bytes_per_second");
    let rate: f64 = row[column.unwrap()].parse().unwrap();
    format!("{:.1}", rate / 1e6)
}

/// A table with each figure in brackets replaced.
fn replaced(table: &str, mut figure: impl FnMut(Run) -> String) -> String {
    let mut readers = Vec::new();
    let lines = table.lines().map(|line| {
        let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
        if line.starts_with(HEAD) {
            let number = |cell: &String| cell.split_whitespace().next()?.parse::<u32>().ok();
            readers = cells.iter().map(number).collect();
        }
        let options = line.split('`').nth(1).unwrap_or_default().to_owned();
        for (cell, readers) in cells.iter_mut().zip(&readers) {
            if let (Some(readers), Some(begin), Some(end)) =
                (readers, cell.find('('), cell.find(')'))
            {
                cell.replace_range(begin + 1..end, &figure((options.clone(), *readers)));
            }
        }
        cells.join("|") + "\n"
    });
    lines.collect()
}

fn table_of(page: &str) -> String {
    let (_, text) = document(page);
    text[table_at(&text, HEAD)].to_owned()
}

#[test]
fn rates_in_brackets_are_those_of_the_program() {
    let mut runs = Vec::new();
    for page in PAGES {
        let table = table_of(page);
        assert!(table.matches('(').count() >= 9, "{page}: {table}");
        replaced(&table, |run| {
            runs.push(run);
            String::new()
        });
    }
    // Those of many readers take nearly all of the time: half of them to each processor of a small machine.
    runs.sort_by(|one, other| other.1.cmp(&one.1).then(one.cmp(other)));
    runs.dedup();
    let halves = [0, 1].map(|first| runs.iter().skip(first).step_by(2));
    let rates: BTreeMap<Run, String> = thread::scope(|scope| {
        let of = |run: &Run| (run.clone(), simulated(run));
        let threads = halves.map(|half| scope.spawn(move || half.map(of).collect::<Vec<_>>()));
        let rates = threads.into_iter().flat_map(|half| half.join().unwrap());
        rates.collect()
    });
    for page in PAGES {
        let table = replaced(&table_of(page), |run| rates[&run].clone());
        compare_table(page, HEAD, &table);
    }
}

/// The fence behind the one that asks for it.
#[test]
fn the_printed_advice_is_that_of_the_program() {
    let (_, text) = document("REPORT.md");
    let fence = |kind: &str| format!("\n```{kind}\n");
    let asked = "forerun advise video.csv --device seagate_146gb_10k";
    let (_, rest) = text
        .split_once(&format!("{}{asked}\n```\n", fence("sh")))
        .unwrap();
    let (_, rest) = rest.split_once(&fence("text")).unwrap();
    let (printed, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forerun"));
        let words = line.split(' ').skip(1);
        let output = command.args(words).current_dir(&folder).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    output("forerun trace sample video -o video.csv");
    assert_eq!(printed, output(asked), "docs/REPORT.md, {asked}");
}
