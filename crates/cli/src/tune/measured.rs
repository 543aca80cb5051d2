//! The rate of each setting on the real device: settings in turns, files opened anew under each and read cold.
//!
//! ```text
//! turn 1   128 KiB: 1, 10, 64 readers | 256 KiB: .. | .. | 8 MiB bfq
//! turn 2   the same from the end, at other places of the files
//! ```
//!
//! A run begins when the device has answered what the one before asked for: readers that stop leave up to a window each under
//! way, with 64 readers and 8 MiB six seconds of a disk. Pages come out of the page cache before each run. The
//! result of a setting is the median of its turns.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Setting;
use super::advice::{Cell, Grid};
use super::devices::Devices;
use super::trying::{Trying, values};
use crate::failure::Failure;
use crate::resident::RESIDENT_MAX;
use crate::trial::cold;
use crate::trial::files::Chosen;
use crate::trial::readers;
use crate::trial::side::Kernel;

/// Turns of a setting. The difference between the two says how much runs differ.
pub const TURNS: u32 = 2;

/// The shortest useful run: a disk of 8 ms needs half of it for one window of 1 MiB of each of 20 readers.
pub const RUN_MIN: Duration = Duration::from_secs(1);

/// The plan of the measurement.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The path, for messages.
    pub path: &'a Path,
    /// The files that are read.
    pub chosen: &'a Chosen,
    /// The devices below them.
    pub devices: &'a Devices,
    /// The settings.
    pub settings: Vec<Setting>,
    /// The numbers of readers.
    pub readers: Vec<u32>,
    /// Time of all runs together.
    pub time: Duration,
}

impl Plan<'_> {
    /// The number of runs.
    #[must_use]
    pub fn runs(&self) -> u32 {
        let cells = self.settings.len() * self.readers.len();
        TURNS.saturating_mul(u32::try_from(cells).unwrap_or(u32::MAX))
    }

    /// Checks that there is time for all runs, and that they can be cold.
    ///
    /// # Errors
    /// There is not, or they cannot.
    pub fn check(&self) -> Result<(), Failure> {
        let least = (RUN_MIN * self.runs()).as_secs();
        if self.time.as_secs() < least {
            return Err(Failure::Usage(format!(
                "--measure {}: {} settings with {} numbers of readers in {TURNS} turns take at least {least} seconds; \
                 fewer --readers take less",
                self.time.as_secs(),
                self.settings.len(),
                self.readers.len()
            )));
        }
        cold::drop_pages(self.chosen, &self.chosen.divide(1, 0, 1))?;
        match cold::resident_percent(self.chosen) {
            resident if resident > RESIDENT_MAX => Err(Failure::broken(
                self.path,
                format!(
                    "{resident} % of it stays in memory without a reader, so that no run would be cold"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Runs all, and puts the settings back.
    ///
    /// # Errors
    /// A file that cannot be read, a setting that is refused or was changed by another program, or a signal.
    pub fn run(
        &self,
        trying: &mut Trying,
        is_stopped: &(dyn Fn() -> bool + Sync),
        step: &dyn Fn(),
    ) -> Result<Grid, Failure> {
        let until = Instant::now() + self.time;
        let mut left = self.runs();
        let mut rates = vec![vec![Vec::new(); self.readers.len()]; self.settings.len()];
        for turn in 0..TURNS {
            let mut order: Vec<usize> = (0..self.settings.len()).collect();
            if !turn.is_multiple_of(2) {
                order.reverse();
            }
            for at in order {
                trying.set(&values(self.devices, &self.settings[at]))?;
                for (readers, rates) in self.readers.iter().zip(&mut rates[at]) {
                    // Readers that wait for their last window end late: the runs behind are shorter.
                    let each = until.saturating_duration_since(Instant::now()) / left.max(1);
                    let each = each.max(RUN_MIN / 2);
                    left -= 1;
                    rates.push(self.one(*readers, turn, each, is_stopped)?);
                    step();
                }
            }
        }
        trying.pause()?;
        Ok(self.grid(&rates))
    }

    fn one(
        &self,
        readers: u32,
        turn: u32,
        each: Duration,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Cell, Failure> {
        let parts = self.chosen.divide(readers, turn, TURNS);
        self.devices.wait_until_idle(is_stopped);
        cold::drop_pages(self.chosen, &parts)?;
        let kernel = Kernel {
            folder: self.chosen.folder.clone(),
        };
        let until = Instant::now() + each;
        let is_over = || Instant::now() >= until || is_stopped();
        let amounts = readers::amounts(&|name| kernel.open(name), &parts, &is_over)?;
        if is_stopped() {
            return Err(Failure::Run(
                "ended by a signal; the settings are as they were before".to_owned(),
            ));
        }
        Ok(Cell {
            rate: amounts.rate(),
            slowest: Some(amounts.slowest_over_mean()),
        })
    }

    /// Medians, and how far turns of one cell are apart in the middle of all cells.
    fn grid(&self, runs: &[Vec<Vec<Cell>>]) -> Grid {
        let cells: Vec<Vec<Cell>> = runs
            .iter()
            .map(|row| row.iter().map(|cell| middle(cell)).collect())
            .collect();
        let mut spreads: Vec<f64> = runs.iter().flatten().map(|cell| spread(cell)).collect();
        spreads.sort_by(f64::total_cmp);
        let noise = spreads.get(spreads.len() / 2).copied().unwrap_or_default();
        Grid {
            settings: self.settings.clone(),
            readers: self.readers.clone(),
            cells,
            noise,
        }
    }
}

/// The middle of the runs of a cell.
fn middle(runs: &[Cell]) -> Cell {
    let middle = |of: &dyn Fn(&Cell) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        match values.len() {
            0 => 0.0,
            len => f64::midpoint(values[(len - 1) / 2], values[len / 2]),
        }
    };
    Cell {
        rate: middle(&|cell| cell.rate),
        slowest: Some(middle(&|cell| cell.slowest.unwrap_or_default())),
    }
}

/// The difference of the best and the worst run, as a part of the best.
fn spread(runs: &[Cell]) -> f64 {
    let rates = runs.iter().map(|cell| cell.rate);
    let (least, most) = rates.fold((f64::INFINITY, 0.0_f64), |(a, b), rate| {
        (a.min(rate), b.max(rate))
    });
    if most > 0.0 {
        (most - least) / most
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(rate: f64) -> Cell {
        Cell {
            rate,
            slowest: Some(0.5),
        }
    }

    #[test]
    fn the_noise_is_the_difference_of_turns_in_the_middle() {
        assert_eq!(spread(&[cell(50.0), cell(40.0)]), 0.2);
        assert_eq!(spread(&[]), 0.0);
        assert_eq!(middle(&[cell(50.0), cell(40.0)]), cell(45.0));
        assert_eq!(middle(&[]).rate, 0.0);
    }
}
