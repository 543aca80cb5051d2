//! One setting of all: the best for every number of readers at once, and the simplest of those that are equal.
//!
//! A constant cannot follow the load, so the advised setting is the one whose worst case is best: the largest value of
//!
//! ```text
//! score(setting) = min over numbers of readers of  rate(setting, readers) / best rate(readers)
//! ```
//!
//! Settings whose score is within the noise of the best are equal; of these the present one is advised, else one
//! that leaves the scheduler as it is, else the smaller read-ahead, which wastes less on readers that do not go on.

use super::Setting;

/// The result of a setting with a number of readers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Bytes per second.
    pub rate: f64,
    /// The slowest reader's share over the mean one's, where it was measured.
    pub slowest: Option<f64>,
}

/// Results of all settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// The settings; the present one is among them.
    pub settings: Vec<Setting>,
    /// The numbers of readers.
    pub readers: Vec<u32>,
    /// For each setting, for each number of readers.
    pub cells: Vec<Vec<Cell>>,
    /// The part by which two results of one setting differ.
    pub noise: f64,
}

impl Grid {
    /// The best rate with this number of readers, by its place, and the setting's place.
    #[must_use]
    pub fn best(&self, readers: usize) -> (usize, f64) {
        let rates = self.cells.iter().map(|row| row[readers].rate).enumerate();
        rates.fold(
            (0, 0.0),
            |best, cell| if cell.1 > best.1 { cell } else { best },
        )
    }

    /// The worst case of a setting, against the best of each number of readers.
    #[must_use]
    pub fn score(&self, setting: usize) -> f64 {
        let share = |readers| match self.best(readers) {
            (_, best) if best > 0.0 => self.cells[setting][readers].rate / best,
            _ => 1.0,
        };
        (0..self.readers.len()).map(share).fold(1.0, f64::min)
    }

    /// The place of the advised setting.
    #[must_use]
    pub fn advised(&self, present: &Setting) -> usize {
        let scores: Vec<f64> = (0..self.settings.len()).map(|at| self.score(at)).collect();
        let best = scores.iter().copied().fold(0.0, f64::max);
        let is_equal = |at: &usize| scores[*at] >= best * (1.0 - self.noise);
        let order = |at: &usize| {
            let setting = &self.settings[*at];
            let changes_scheduler = setting.scheduler != present.scheduler;
            (
                setting != present,
                changes_scheduler,
                setting.read_ahead_kib,
            )
        };
        (0..self.settings.len())
            .filter(is_equal)
            .min_by_key(order)
            .unwrap_or(0)
    }

    /// The place of the present setting.
    #[must_use]
    pub fn place_of(&self, setting: &Setting) -> Option<usize> {
        self.settings.iter().position(|other| other == setting)
    }
}

/// Settings to compare: the usual values, and the present one, with each of these schedulers.
#[must_use]
pub fn settings(present: &Setting, schedulers: &[String]) -> Vec<Setting> {
    let mut values = super::ladder();
    values.push(present.read_ahead_kib);
    values.sort_unstable();
    values.dedup();
    let with = |scheduler: Option<String>| {
        let setting = move |kib: &u64| Setting {
            read_ahead_kib: *kib,
            scheduler: scheduler.clone(),
        };
        values.iter().map(setting).collect::<Vec<_>>()
    };
    match schedulers {
        [] => with(present.scheduler.clone()),
        names => names
            .iter()
            .flat_map(|name| with(Some(name.clone())))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(kib: u64, scheduler: &str) -> Setting {
        Setting {
            read_ahead_kib: kib,
            scheduler: Some(scheduler.to_owned()),
        }
    }

    fn grid(rows: &[(u64, &str, &[f64])]) -> Grid {
        let cell = |rate: &f64| Cell {
            rate: *rate,
            slowest: None,
        };
        Grid {
            settings: rows
                .iter()
                .map(|(kib, name, _)| setting(*kib, name))
                .collect(),
            readers: vec![1, 10, 64],
            cells: rows
                .iter()
                .map(|(.., rates)| rates.iter().map(cell).collect())
                .collect(),
            noise: 0.05,
        }
    }

    /// MB/s of the disk of 8 ms and 80 MB/s with 256 MiB.
    #[test]
    fn the_setting_with_the_best_worst_case_is_advised() {
        let grid = grid(&[
            (128, "none", &[78.0, 23.0, 22.0]),
            (1024, "none", &[78.0, 59.0, 46.0]),
            (4096, "none", &[78.0, 71.0, 20.0]),
        ]);
        assert_eq!(grid.best(1), (2, 71.0));
        assert_eq!(grid.advised(&setting(128, "none")), 1);
        assert_eq!(grid.place_of(&setting(4096, "none")), Some(2));
        let score = grid.score(0);
        assert!((score - 23.0 / 71.0).abs() < 1e-9, "{score}");
    }

    #[test]
    fn of_equal_settings_the_present_one_stays_or_the_simplest_comes() {
        let rows: &[(u64, &str, &[f64])] = &[
            (128, "none", &[50.0, 50.0, 50.0]),
            (512, "none", &[79.0, 70.0, 70.0]),
            (1024, "none", &[80.0, 72.0, 71.0]),
            (128, "bfq", &[80.0, 73.0, 72.0]),
        ];
        assert_eq!(grid(rows).advised(&setting(1024, "none")), 2);
        assert_eq!(grid(rows).advised(&setting(128, "none")), 1);
        assert_eq!(grid(rows).advised(&setting(128, "bfq")), 3);
    }

    #[test]
    fn settings_are_the_usual_values_and_the_present_one_with_each_scheduler() {
        let kib = |settings: &[Setting]| {
            settings
                .iter()
                .map(|s| s.read_ahead_kib)
                .collect::<Vec<_>>()
        };
        let plain = settings(&setting(100, "none"), &[]);
        assert_eq!(kib(&plain), [100, 128, 256, 512, 1024, 2048, 4096, 8192]);
        let all = settings(&setting(128, "none"), &["none".into(), "bfq".into()]);
        assert_eq!((all.len(), &all[7]), (14, &setting(128, "bfq")));
    }

    #[test]
    fn a_grid_of_zeros_leaves_things_as_they_are() {
        let grid = grid(&[(128, "none", &[0.0; 3]), (1024, "none", &[0.0; 3])]);
        assert_eq!(grid.advised(&setting(1024, "none")), 1);
    }
}
