//! `forerun simulate`: presets over a trace or a workload, on modelled disks, in virtual time.
//!
//! ```text
//! args -> input (references, or the engine's workload) -> grid of runs -> threads -> rows
//! ```
//!
//! The grid is presets by disks by cache sizes; runs share nothing but the input, so as many go
//! at once as there are threads, and the rows come in the order of the grid. A run is
//! `forerun-sim`'s; errors of the input are found before the first one.

mod cell;
mod disk;
mod input;
mod row;
mod run;
mod validate;

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::args::Simulate;
use crate::failure::Failure;
use crate::progress;
use cell::Cell;
use disk::Disk;
use input::Input;
use row::Row;
use run::Run;

/// Runs the command.
///
/// # Errors
/// A trace, a device or numbers that cannot be used.
pub fn run(args: &Simulate, out: &mut dyn Write) -> Result<(), Failure> {
    if args.validate.is_some() {
        return validate::run(args, out);
    }
    let disk = Disk::new(args)?;
    let input = Input::new(args, &disk)?;
    let cells = cell::grid(args, &input, &disk)?;
    let requests = input.requests();
    progress::begin_again(&input.bar, requests.saturating_mul(cells.len() as u64));
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((at, cell)) = take(&next, &cells) {
            let (input, disk) = (&input, &disk);
            let row = Run {
                cell,
                args,
                input,
                disk,
            };
            let row = row.row();
            if !input.is_read_by(cell) {
                input.bar.inc(requests);
            }
            match rows.lock() {
                Ok(mut rows) => rows.push((at, row)),
                Err(_) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..(args.threads as usize).min(cells.len()) {
            scope.spawn(work);
        }
        work();
    });
    input.bar.finish_and_clear();
    let mut rows = rows.into_inner().unwrap_or_default();
    rows.sort_by_key(|(at, _)| *at);
    let rows = rows.into_iter().map(|(_, row)| row);
    let mut rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
    row::compare(&mut rows);
    row::print(&rows, args.format, out)
}

/// The next run that no thread has taken yet.
fn take<'a>(next: &AtomicUsize, cells: &'a [Cell]) -> Option<(usize, &'a Cell)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    cells.get(at).map(|cell| (at, cell))
}
