//! The advice in words and as JSON, with the udev rule and the commands that carry it out.
//!
//! ```text
//! device     8.00 ms a switch, 80.0 MB/s, 1 request at once
//! simulated  a row a setting, a column a number of readers
//! advised    read-ahead 1024 KiB, with its reasons in numbers
//! ```

use forerun_surface::undo::record::{Change, Restored, in_words};
use std::fmt::Write;
use std::path::Path;

use forerun_core::Bytes;
use serde_json::{Value, json};

use super::advice::Grid;
use super::applied::Applied;
use super::costs::Costs;
use super::devices::{Devices, Leaf};
use super::trying::values;
use super::{Setting, simulated};
use crate::args::ListFormat;
use crate::failure::Failure;
use crate::quantity::{rough_duration, rough_size};

/// A slowest reader with less than this part of the mean one's bytes is shown.
const SLOW: f64 = 0.9;

/// The scheduler that gives a disk to one program for a while.
const FAIR: &str = "bfq";

/// Everything that is said.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Report<'a> {
    pub path: &'a Path,
    pub file_system: Option<&'a str>,
    pub devices: &'a Devices,
    pub costs: &'a Costs,
    pub memory: Bytes,
    pub present: &'a Setting,
    pub advised: &'a Setting,
    pub simulated: &'a Grid,
    pub measured: Option<&'a Grid>,
    pub applied: &'a [Applied],
}

impl Report<'_> {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.facts();
        text += "\nSimulated: Linux readahead with each value on such a device, all readers together\n\n";
        text += &self.table(self.simulated);
        if let Some(measured) = self.measured {
            text += "\nMeasured: the files read cold with each setting, in turns\n\n";
            text += &self.table(measured);
            let noise = measured.noise * 100.0;
            let _ = writeln!(
                text,
                "\nTwo turns of one setting differ by {noise:.0} % in the middle: settings that are closer count as equal.\n\
                 Values whose windows of all readers do not fit the memory are not tried."
            );
        }
        text + "\n" + &self.advice()
    }

    fn facts(&self) -> String {
        let mut text = String::new();
        let names: Vec<_> = self.devices.leaves.iter().map(leaf_in_words).collect();
        let file_system = self.file_system.unwrap_or("block device");
        let bdi = &self.devices.bdi;
        let _ = writeln!(
            text,
            "{}: {file_system}, bdi {bdi}, on {}\n",
            self.path.display(),
            names.join(", ")
        );
        let _ = writeln!(text, "present    {}", in_words_of(self.present));
        let schedulers = self.devices.schedulers();
        if !schedulers.is_empty() {
            let _ = writeln!(
                text,
                "           schedulers there are: {}",
                schedulers.join(", ")
            );
        }
        let (switching, rate) = (
            rough_duration(self.costs.switching),
            rough_size(self.costs.rate as f64),
        );
        let requests = match self.costs.servers {
            1 => "1 request at once".to_owned(),
            servers => format!("{servers} requests at once"),
        };
        let from = self.costs.from.display();
        let _ = writeln!(
            text,
            "device     {switching} a switch, {rate}/s, {requests} ({from})"
        );
        let _ = writeln!(
            text,
            "memory     {} for cache",
            rough_size(self.memory.0 as f64)
        );
        text
    }

    fn table(&self, grid: &Grid) -> String {
        let mut text = format!("{:<22}", "");
        for readers in &grid.readers {
            let _ = write!(text, "{:>12}{:7}", readers_in_words(*readers), "");
        }
        text.truncate(text.trim_end().len());
        text += "\n";
        for (setting, cells) in grid.settings.iter().zip(&grid.cells) {
            let name = match (&setting.scheduler, self.has_schedulers(grid)) {
                (Some(scheduler), true) => format!("{} KiB, {scheduler}", setting.read_ahead_kib),
                _ => format!("{} KiB", setting.read_ahead_kib),
            };
            let _ = write!(text, "{name:<22}");
            for cell in cells {
                let rate = format!("{}/s", rough_size(cell.rate));
                let slow = cell
                    .slowest
                    .filter(|slowest| *slowest < SLOW && grid.readers != [1]);
                let slow = slow
                    .map(|slowest| format!(" ({slowest:.2})"))
                    .unwrap_or_default();
                let _ = write!(text, "{rate:>12}{slow:<7}");
            }
            let mark = match (setting == self.present, setting == self.advised) {
                (true, true) => "present, advised",
                (true, false) => "present",
                (false, true) => "advised",
                (false, false) => "",
            };
            text += mark;
            text.truncate(text.trim_end().len());
            text += "\n";
        }
        let is_slow =
            |cell: &super::advice::Cell| cell.slowest.is_some_and(|slowest| slowest < SLOW);
        if grid.cells.iter().flatten().any(is_slow) {
            text += "\nIn brackets the slowest reader over the mean one, where it is below 0.9.\n";
        }
        text
    }

    fn has_schedulers(&self, grid: &Grid) -> bool {
        grid.settings
            .iter()
            .any(|setting| setting.scheduler != self.present.scheduler)
    }

    fn advice(&self) -> String {
        let mut text = String::new();
        let mut line = |title: &str, words: &str| {
            let _ = writeln!(text, "{title:<10} {words}");
        };
        let is_as_it_is = self.advised == self.present;
        match is_as_it_is {
            true => line(
                "advised",
                &format!("{}: as it is", in_words_of(self.advised)),
            ),
            false => line("advised", &in_words_of(self.advised)),
        }
        for words in self.reasons() {
            line("", &words);
        }
        line("gain", &self.gain());
        if self.measured.is_none()
            && self.costs.servers == 1
            && self.devices.schedulers().iter().any(|s| s == FAIR)
        {
            line(
                "scheduler",
                "not simulated: on a disk with many readers bfq may be better; --measure tries it",
            );
        }
        if self.applied.is_empty() && !is_as_it_is {
            for (title, rules) in [
                ("udev rule", self.udev_rules()),
                ("command", self.commands()),
            ] {
                rules
                    .iter()
                    .enumerate()
                    .for_each(|(at, rule)| line(if at == 0 { title } else { "" }, rule));
            }
        }
        for Applied { knob, from, to } in self.applied {
            line(
                "applied",
                &format!("{}: {from} -> {to}", knob.path().display()),
            );
        }
        if !self.applied.is_empty() {
            line(
                "",
                "until the system is started again; forerun tune --undo puts it back",
            );
        }
        text
    }

    /// Depth, memory and readers, in numbers.
    fn reasons(&self) -> Vec<String> {
        let (switching, rate) = (
            rough_duration(self.costs.switching),
            rough_size(self.costs.rate as f64),
        );
        let depth = rough_size(self.costs.depth().0 as f64);
        let mut reasons = vec![format!(
            "a switch costs as much time as {depth} of transfer ({switching} x {rate}/s)"
        )];
        let most = self.simulated.readers.iter().copied().max().unwrap_or(1);
        let windows = simulated::windows(self.advised.read_ahead_kib, most).0;
        let (windows, memory) = (rough_size(windows as f64), rough_size(self.memory.0 as f64));
        let readers = readers_in_words(most);
        reasons.push(format!(
            "two windows of each of {readers} take {windows} of {memory}"
        ));
        let score = self.score(self.advised);
        reasons.push(format!(
            "at least {:.0} % of the best constant setting with {}",
            score * 100.0,
            self.numbers()
        ));
        reasons
    }

    fn numbers(&self) -> String {
        let numbers: Vec<_> = self.grid().readers.iter().map(u32::to_string).collect();
        match &numbers[..] {
            [only] if only == "1" => "1 reader".to_owned(),
            [rest @ .., last] if !rest.is_empty() => {
                format!("each of {} and {last} readers", rest.join(", "))
            }
            _ => format!("{} readers", numbers.join("")),
        }
    }

    /// The table that the advice is from.
    fn grid(&self) -> &Grid {
        self.measured.unwrap_or(self.simulated)
    }

    fn score(&self, setting: &Setting) -> f64 {
        self.grid()
            .place_of(setting)
            .map_or(0.0, |at| self.grid().score(at))
    }

    /// Over the present setting, for each number of readers.
    fn gains(&self) -> Vec<(u32, f64, f64)> {
        let grid = self.grid();
        let row = |setting| grid.place_of(setting).map(|at| &grid.cells[at]);
        let (Some(present), Some(advised)) = (row(self.present), row(self.advised)) else {
            return Vec::new();
        };
        let pairs = present.iter().zip(advised).map(|(p, a)| (p.rate, a.rate));
        grid.readers
            .iter()
            .zip(pairs)
            .map(|(readers, (p, a))| (*readers, p, a))
            .collect()
    }

    fn gain(&self) -> String {
        let how = if self.measured.is_some() {
            "measured"
        } else {
            "simulated"
        };
        let part = |(readers, present, advised): &(u32, f64, f64)| {
            format!(
                "{:.2} times with {}",
                advised / present.max(1.0),
                readers_in_words(*readers)
            )
        };
        let parts: Vec<_> = self.gains().iter().map(part).collect();
        format!("{how}: {}", parts.join(", "))
    }

    /// The values that differ from the present ones.
    fn changes(&self) -> Vec<(forerun_surface::undo::knob::Knob, String)> {
        let mut changes = values(self.devices, self.advised);
        let present = values(self.devices, self.present);
        changes.retain(|value| !present.contains(value));
        changes
    }

    /// Rules of udev, the read-ahead by its bdi.
    fn udev_rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        if self.advised.read_ahead_kib != self.present.read_ahead_kib {
            rules.push(format!(
                r#"ACTION=="add|change", SUBSYSTEM=="bdi", KERNEL=="{}", ATTR{{read_ahead_kb}}="{}""#,
                self.devices.bdi, self.advised.read_ahead_kib
            ));
        }
        if self.advised.scheduler != self.present.scheduler {
            let scheduler = self.advised.scheduler.as_deref().unwrap_or_default();
            let choosing = self
                .devices
                .leaves
                .iter()
                .filter(|leaf| leaf.scheduler.is_some());
            rules.extend(choosing.map(|leaf| {
                format!(
                    r#"ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{}", ATTR{{queue/scheduler}}="{scheduler}""#,
                    leaf.name.replace('/', "!")
                )
            }));
        }
        rules
    }

    fn commands(&self) -> Vec<String> {
        let command = |(knob, value): (forerun_surface::undo::knob::Knob, String)| {
            format!("echo {value} > {}", knob.path().display())
        };
        self.changes().into_iter().map(command).collect()
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let gain = |(readers, present, advised): (u32, f64, f64)| {
            json!({
                "readers": readers,
                "present_bytes_per_second": present.round(),
                "advised_bytes_per_second": advised.round(),
                "gain": advised / present.max(1.0),
            })
        };
        let applied = |Applied { knob, from, to }: &Applied| json!({"path": knob.path(), "from": from, "to": to});
        json!({
            "path": self.path,
            "file_system": self.file_system,
            "bdi": self.devices.bdi,
            "devices": self.devices.leaves.iter().map(leaf_as_json).collect::<Vec<_>>(),
            "schedulers": self.devices.schedulers(),
            "switching_ns": self.costs.switching.0,
            "rate_bytes_per_second": self.costs.rate,
            "requests_at_once": self.costs.servers,
            "depth_bytes": self.costs.depth().0,
            "memory_bytes": self.memory.0,
            "present": self.present,
            "advised": self.advised,
            "advised_from": if self.measured.is_some() { "measured" } else { "simulated" },
            "gains": self.gains().into_iter().map(gain).collect::<Vec<_>>(),
            "simulated": grid_as_json(self.simulated),
            "measured": self.measured.map(grid_as_json),
            "udev_rules": self.udev_rules(),
            "commands": self.commands(),
            "applied": self.applied.iter().map(applied).collect::<Vec<_>>(),
        })
    }
}

fn grid_as_json(grid: &Grid) -> Value {
    let rows = grid
        .settings
        .iter()
        .zip(&grid.cells)
        .flat_map(|(setting, cells)| {
            grid.readers.iter().zip(cells).map(move |(readers, cell)| {
                json!({
                    "read_ahead_kib": setting.read_ahead_kib,
                    "scheduler": setting.scheduler,
                    "readers": readers,
                    "bytes_per_second": cell.rate.round(),
                    "slowest_over_mean": cell.slowest,
                })
            })
        });
    json!({"noise": grid.noise, "rows": rows.collect::<Vec<_>>()})
}

fn leaf_as_json(leaf: &Leaf) -> Value {
    json!({
        "name": leaf.name,
        "scheduler": leaf.scheduler,
        "schedulers": leaf.schedulers,
        "is_rotational": leaf.is_rotational,
        "loop_file": leaf.file,
    })
}

fn leaf_in_words(leaf: &Leaf) -> String {
    let mut words = leaf.name.clone();
    if leaf.is_rotational == Some(true) {
        words += " (rotating)";
    }
    match &leaf.file {
        Some(file) => format!("{words} over {file}"),
        None => words,
    }
}

fn in_words_of(setting: &Setting) -> String {
    let read_ahead = format!("read-ahead {} KiB", setting.read_ahead_kib);
    match &setting.scheduler {
        Some(scheduler) => format!("{read_ahead}, scheduler {scheduler}"),
        None => read_ahead,
    }
}

fn readers_in_words(readers: u32) -> String {
    match readers {
        1 => "1 reader".to_owned(),
        readers => format!("{readers} readers"),
    }
}

/// Values that came back, or did not.
///
/// # Errors
/// One did not.
pub fn undone(all: &[(Change, Restored)], format: ListFormat) -> Result<String, Failure> {
    let lines: Vec<_> = all
        .iter()
        .filter_map(|(change, restored)| in_words(change, restored))
        .collect();
    if !lines.is_empty() {
        return Err(Failure::Run(lines.join("; ")));
    }
    let values = all
        .iter()
        .map(|(change, _)| (change.knob.path(), &change.before));
    Ok(match format {
        ListFormat::Table => values
            .map(|(path, value)| format!("{}: {value} again\n", path.display()))
            .collect(),
        ListFormat::Json => {
            let values = values.map(|(path, value)| json!({"path": path, "value": value}));
            format!("{:#}\n", json!({"undone": values.collect::<Vec<_>>()}))
        }
    })
}

#[cfg(test)]
mod tests {
    use forerun_core::Nanos;

    use super::super::advice::Cell;
    use super::*;
    use forerun_surface::undo::knob::Knob;

    fn setting(read_ahead_kib: u64, scheduler: &str) -> Setting {
        Setting {
            read_ahead_kib,
            scheduler: Some(scheduler.to_owned()),
        }
    }

    fn devices() -> Devices {
        Devices {
            file_system: Some("ext4".to_owned()),
            bdi: "8:0".to_owned(),
            read_ahead: Knob::new("/sys/class/bdi/8:0/read_ahead_kb".into()),
            read_ahead_kib: 128,
            top: Some("sda".to_owned()),
            leaves: vec![Leaf {
                name: "sda".to_owned(),
                folder: "/sys/block/sda".into(),
                scheduler: Some("none".to_owned()),
                schedulers: vec!["none".to_owned(), "bfq".to_owned()],
                is_rotational: Some(true),
                file: None,
            }],
        }
    }

    fn grid(rows: &[(u64, &str, [f64; 2])], slowest: Option<f64>) -> Grid {
        let cell = |rate: f64| Cell {
            rate: rate * 1e6,
            slowest,
        };
        Grid {
            settings: rows.iter().map(|row| setting(row.0, row.1)).collect(),
            readers: vec![1, 64],
            cells: rows.iter().map(|row| row.2.map(cell).to_vec()).collect(),
            noise: 0.04,
        }
    }

    fn with(advised: &Setting, measured: Option<&Grid>, of: &dyn Fn(Report<'_>)) {
        let costs = Costs {
            switching: Nanos(8_000_000),
            rate: 80_000_000,
            servers: 1,
            from: "/dev/sda".into(),
        };
        let rows = [(128, "none", [79.2, 23.2]), (1024, "none", [79.2, 59.6])];
        of(Report {
            path: Path::new("/data"),
            file_system: Some("ext4"),
            devices: &devices(),
            costs: &costs,
            memory: Bytes(256 << 20),
            present: &setting(128, "none"),
            advised,
            simulated: &grid(&rows, None),
            measured,
            applied: &[],
        });
    }

    #[test]
    fn the_advice_has_reasons_in_numbers_a_rule_and_a_command() {
        with(&setting(1024, "none"), None, &|report| {
            snapbox::assert_data_eq!(
                report.text(),
                snapbox::str![[r#"
/data: ext4, bdi 8:0, on sda (rotating)

present    read-ahead 128 KiB, scheduler none
           schedulers there are: none, bfq
device     8.00 ms a switch, 80.0 MB/s, 1 request at once (/dev/sda)
memory     268.4 MB for cache

Simulated: Linux readahead with each value on such a device, all readers together

                          1 reader         64 readers
128 KiB                  79.2 MB/s          23.2 MB/s       present
1024 KiB                 79.2 MB/s          59.6 MB/s       advised

advised    read-ahead 1024 KiB, scheduler none
           a switch costs as much time as 640.0 kB of transfer (8.00 ms x 80.0 MB/s)
           two windows of each of 64 readers take 134.2 MB of 268.4 MB
           at least 100 % of the best constant setting with each of 1 and 64 readers
gain       simulated: 1.00 times with 1 reader, 2.57 times with 64 readers
scheduler  not simulated: on a disk with many readers bfq may be better; --measure tries it
udev rule  ACTION=="add|change", SUBSYSTEM=="bdi", KERNEL=="8:0", ATTR{read_ahead_kb}="1024"
command    echo 1024 > /sys/class/bdi/8:0/read_ahead_kb

"#]]
            );
        });
    }

    #[test]
    fn a_scheduler_that_was_measured_is_set_on_the_disk() {
        let rows = [(128, "none", [78.0, 22.0]), (128, "bfq", [78.0, 67.0])];
        let measured = grid(&rows, Some(0.5));
        with(&setting(128, "bfq"), Some(&measured), &|report| {
            let text = report.text();
            for words in [
                "67.0 MB/s (0.50)",
                "differ by 4 % in the middle",
                "gain       measured: 1.00 times with 1 reader, 3.05 times with 64 readers",
                r#"SUBSYSTEM=="block", KERNEL=="sda", ATTR{queue/scheduler}="bfq""#,
                "echo bfq > /sys/block/sda/queue/scheduler",
            ] {
                assert!(text.contains(words), "{words}:\n{text}");
            }
            // The read-ahead stays.
            assert!(!text.contains("echo 128"), "{text}");
            let json = report.json();
            assert_eq!(json["udev_rules"].as_array().unwrap().len(), 1);
            assert_eq!(json["gains"][1]["readers"], 64);
        });
    }
}
