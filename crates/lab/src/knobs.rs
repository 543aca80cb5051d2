//! Knobs: one condition of a paper's runs set to another value, to see how much of a difference it causes.
//!
//! `forerun-lab reproduce li05 --only P6 --with expiry=60s` measures P6 with requests that never expire. A knob changes
//! every run of the paper that has the condition, and nothing else; the runs without it stay as they are, so both
//! values of a claim can be compared.
//!
//! ```text
//! --with NAME=VALUE -> Knobs -> part of each Job -> runs: scheduler, workload, settings, model of the drive
//! ```
//!
//! A new knob is one entry in [`LIST`] and the place that asks for it by its constant.

use std::collections::BTreeMap;

use forerun_baselines::METHODS;
use forerun_core::reclaim::Reclaim;
use forerun_core::spec::Choice;
use forerun_sim::device::scheduler::{self, Scheduler};
use forerun_sim::workload::{self, Workload};
use forerun_surface::quantity::{parse_duration, parse_size};

use crate::Broken;

/// The form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A number.
    Count,
    /// Per cent.
    Percent,
    /// A time, in nanoseconds.
    Time,
    /// A size, in bytes.
    Size,
    /// The name of a detect method.
    Detect,
}

/// A condition that can be changed.
#[derive(Debug)]
pub struct Knob {
    /// As it is typed.
    pub name: &'static str,
    /// In words, with the value that the runs have without it.
    pub summary: &'static str,
    /// Form of its values.
    pub unit: Unit,
    /// Least and most allowed.
    pub range: (u64, u64),
    /// Papers whose runs have it.
    pub papers: &'static [&'static str],
}

const SERVERS: &[&str] = &["li04", "li05"];
const QUEUES: &[&str] = &["li04", "li05", "baek09"];
const SECOND: u64 = 1_000_000_000;

macro_rules! knobs {
    ($($constant:ident = $name:literal, $unit:ident $range:expr, $papers:expr, $summary:literal;)*) => {
        $(pub(crate) const $constant: &str = $name;)*
        /// The knobs. One entry a knob.
        pub static LIST: &[Knob] = &[$(Knob {
            name: $name,
            summary: $summary,
            unit: Unit::$unit,
            range: $range,
            papers: $papers,
        }),*];
    };
}

knobs! {
    SEED = "seed", Count (0, u64::MAX), QUEUES,
        "the one seed that all draws have, in place of five";
    RUN = "run", Time (SECOND, 3_600 * SECOND), QUEUES,
        "length of each run";
    EXPIRY = "expiry", Time (1_000_000, 60 * SECOND), QUEUES,
        "age from which the scheduler serves a request first; 125 ms";
    LOOK = "look", Time (0, 60 * SECOND), QUEUES,
        "how often the scheduler looks at ages; 125 ms, 0 is at each request";
    WAIT = "wait", Time (0, SECOND), QUEUES,
        "longest time that the scheduler waits for a process; 6 ms";
    MERGE = "merge", Size (0, 1 << 30), QUEUES,
        "longest merged request; 512 KiB, 0 is none";
    QUEUE = "queue", Count (0, 1 << 20), SERVERS,
        "requests that wait at the disk before a handler with one more sleeps; 128, 0 is any number";
    ENGINE_QUEUE = "engine-queue", Count (1, 1 << 16), SERVERS,
        "requests that the disk is given at once, the rest waiting in the engine; all";
    HANDLERS_MEMORY = "handlers-memory", Percent (0, 95), SERVERS,
        "most of the machine's memory that handlers have; 80 %";
    DETECT = "detect", Detect (0, 0), SERVERS,
        "readahead of all kernels";
    OCTAVES = "octaves", Count (1, 10), SERVERS,
        "lengths of index search's lists: so many octaves below 4 MiB; 6 for li04, 3 for li05";
    RECLAIMS = "reclaims", Count (0, 1), &["li05"],
        "pages beyond the prefetch cache's part: 1 move to the ordinary cache, 0 are given up, our default; 1";
    ENDED_FIRST = "ended-first", Count (0, 1), &["li05"],
        "pages of ended owners go first: 1 always, our default, 0 beyond the part alone; 0";
    HISTORY = "history", Percent (0, 100), &["li05"],
        "pages that have an entry in the eviction history; 40 %, our default is 8";
    PREFETCH_CACHE = "prefetch-cache", Percent (1, 99), &["li05"],
        "a fixed part of the page cache for prefetched pages, in place of the search for it";
    EPOCH = "epoch", Time (1_000_000, 3_600 * SECOND), &["li05"],
        "length of an epoch of the search for the prefetch cache's size; 1 s";
    STEP = "step", Percent (1, 25), &["li05"],
        "how far that search moves in an epoch; 2 %";
    READ_MISS = "read-miss", Time (0, 20_000_000), &["wu10"],
        "time of the drive's controller for a read that its cache does not hold";
    TRACK_TO_TRACK = "track-to-track", Time (0, 8_000_000), &["wu10"],
        "shortest seek of the drive; 1 ms";
    READING_ON = "reading-on", Size (0, 512 << 10), &["wu10", "baek09"],
        "how far the drive reads on by itself, where that is switched on; 128 KiB";
    SEGMENTS = "segments", Count (1, 64), &["wu10", "baek09"],
        "segments of the drive's cache; 16 (wu10), 32 (baek09)";
    THINK = "think", Time (0, SECOND), &["wu10"],
        "processor time of a read; 26 us";
    PAGES = "pages", Size (1 << 20, 1 << 40), &["wu10"],
        "memory for pages where the machine has 128 MB; 100 MiB";
    HORIZON = "horizon", Count (1, 1 << 20), &["kimbrel96"],
        "references that fixed horizon looks ahead; 62";
    BATCH = "batch", Count (1, 1280), &["kimbrel96"],
        "batch of aggressive on any number of disks";
    REQUEST = "request", Size (4096, 1 << 30), &["wu10"],
        "longest request to the drive; 512 KiB";
}

/// A value of a knob.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Value {
    Number(u64),
    Name(String),
}

/// Knobs that were set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Knobs(BTreeMap<&'static str, Value>);

impl Knobs {
    /// Sets the knob of a text such as `expiry=60s`.
    ///
    /// # Errors
    /// A knob there is not, or a value out of its range; names those there are.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text}: expected NAME=VALUE; there is {}", names(LIST)))?;
        let knob = LIST
            .iter()
            .find(|knob| knob.name == name)
            .ok_or_else(|| format!("no knob {name:?}; there is {}", names(LIST)))?;
        self.0.insert(knob.name, knob.read(value)?);
        Ok(())
    }

    /// The number of a knob that was set.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            Value::Number(number) => Some(*number),
            Value::Name(_) => None,
        }
    }

    /// The name that a knob was set to.
    #[must_use]
    pub fn name(&self, knob: &str) -> Option<&str> {
        match self.0.get(knob)? {
            Value::Number(_) => None,
            Value::Name(name) => Some(name),
        }
    }

    /// The first that no run of these papers has, with those that they have.
    #[must_use]
    pub fn unfit(&self, papers: &[&str]) -> Option<String> {
        let has = |knob: &&Knob| knob.papers.iter().any(|paper| papers.contains(paper));
        let known = LIST.iter().filter(has);
        let is_known = |name: &str| known.clone().any(|knob| knob.name == name);
        let unfit = self.0.keys().find(|name| !is_known(name))?;
        let known: Vec<&str> = known.clone().map(|knob| knob.name).collect();
        Some(format!(
            "{unfit}: {} has {}",
            papers.join(", "),
            known.join(", ")
        ))
    }

    /// Those that runs of a paper have. Others would be said of it, and leave its notes out, without an effect.
    #[must_use]
    pub fn of(&self, paper: &str) -> Self {
        let own = self.0.iter().filter(|(name, _)| is_of(name, paper));
        Self(own.map(|(name, value)| (*name, value.clone())).collect())
    }

    /// Whether a condition was changed: a seed alone changes none.
    #[must_use]
    pub(crate) fn is_experiment(&self) -> bool {
        self.0.keys().any(|name| *name != SEED)
    }

    /// The same with a seed, unless one was set.
    #[must_use]
    pub(crate) fn seeded(&self, seed: Option<u64>) -> Self {
        let mut knobs = self.clone();
        if let Some(seed) = seed {
            knobs.0.entry(SEED).or_insert(Value::Number(seed));
        }
        knobs
    }

    /// A model's text with the values of its keys that were set.
    pub(crate) fn model(&self, text: &str, keys: &[(&str, &str)]) -> String {
        let line = |line: &str| {
            let key = line.split('=').next().unwrap_or_default().trim();
            let knob = keys.iter().find(|(own, _)| *own == key);
            match knob.and_then(|(_, knob)| Some((*knob, self.number(knob)?))) {
                // Models have milliseconds where a knob has a time.
                Some((knob, ns)) if is_time(knob) => format!("{key} = {}\n", ns as f64 / 1e6),
                Some((_, number)) => format!("{key} = {number}\n"),
                None => format!("{line}\n"),
            }
        };
        text.lines().map(line).collect()
    }
}

/// A disk scheduler, with the values that were set of those that it has.
pub(crate) fn scheduler(text: &str, with: &Knobs) -> Result<Box<dyn Scheduler>, Broken> {
    let mut choice = Choice::parse("scheduler", scheduler::LIST, text)?;
    let params = [
        ("wait_ns", WAIT),
        ("expire_ns", EXPIRY),
        ("look_ns", LOOK),
        ("merge_bytes", MERGE),
        ("requests_max", QUEUE),
    ];
    for (param, knob) in params {
        // An elevator that never waits is one of the paper's conditions.
        let is_free = param != "wait_ns" || choice.value(param) != Some(0);
        if let Some(value) = with.number(knob)
            && is_free
            && choice.value(param).is_some()
        {
            choice = choice.with(param, value)?;
        }
    }
    Ok(choice.build())
}

/// A workload, with the seed and the computing time that were set, if it has any and does not name one.
pub(crate) fn workload(text: &str, with: &Knobs) -> Result<Box<dyn Workload>, Broken> {
    let mut choice = Choice::parse("workload", workload::LIST, text)?;
    for (param, knob) in [("seed", SEED), ("think_ns", THINK), ("octaves", OCTAVES)] {
        let is_free = param != "seed" || !text.contains("seed=");
        if let Some(value) = with.number(knob)
            && is_free
            && choice.value(param).is_some()
        {
            choice = choice.with(param, value)?;
        }
    }
    Ok(choice.build())
}

/// An order of reclaim, with the values that were set of the rules that it has.
pub(crate) fn reclaim(
    mut reclaim: Choice<Box<dyn Reclaim>>,
    with: &Knobs,
) -> Result<Choice<Box<dyn Reclaim>>, Broken> {
    let fixed = with.number(PREFETCH_CACHE);
    let params = [
        ("reclaims", with.number(RECLAIMS)),
        ("ended_first", with.number(ENDED_FIRST)),
        ("history_percent", with.number(HISTORY)),
        ("part_percent", fixed),
        ("step_percent", fixed.map_or(with.number(STEP), |_| Some(0))),
        ("epoch_ms", with.number(EPOCH).map(|ns| ns / 1_000_000)),
    ];
    for (param, value) in params {
        if let Some(value) = value
            && reclaim.value(param).is_some()
        {
            reclaim = reclaim.with(param, value)?;
        }
    }
    Ok(reclaim)
}

/// Whether runs of a paper have a knob; of a text such as `expiry=60s` that of its name.
#[must_use]
pub fn is_of(text: &str, paper: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    let knob = LIST.iter().find(|knob| knob.name == name);
    knob.is_some_and(|knob| knob.papers.contains(&paper))
}

/// Whether runs of a paper are drawn from a seed.
pub(crate) fn has_seed(paper: &str) -> bool {
    is_of(SEED, paper)
}

fn is_time(knob: &str) -> bool {
    let knob = LIST.iter().find(|own| own.name == knob);
    knob.is_some_and(|knob| knob.unit == Unit::Time)
}

fn names(list: &[Knob]) -> String {
    let names: Vec<&str> = list.iter().map(|knob| knob.name).collect();
    names.join(", ")
}

impl Knob {
    fn read(&self, text: &str) -> Result<Value, String> {
        let number = match self.unit {
            Unit::Detect => {
                let known: Vec<&str> = METHODS.detect.iter().map(|m| m.spec.name).collect();
                let name = text.split('(').next().unwrap_or_default();
                return match known.contains(&name) {
                    true => Ok(Value::Name(text.to_owned())),
                    false => Err(format!(
                        "{}={text}: there is {}",
                        self.name,
                        known.join(", ")
                    )),
                };
            }
            Unit::Count => text.parse().map_err(|_| "expected a number".to_owned()),
            Unit::Percent => {
                let digits = text.strip_suffix('%').unwrap_or(text);
                digits.parse().map_err(|_| "expected per cent".to_owned())
            }
            Unit::Time => parse_duration(text)
                .map(|time| time.0)
                .map_err(|e| e.to_string()),
            Unit::Size => parse_size(text)
                .map(|size| size.0)
                .map_err(|e| e.to_string()),
        };
        let (least, most) = self.range;
        match number {
            Ok(number) if (least..=most).contains(&number) => Ok(Value::Number(number)),
            Ok(_) => Err(format!("{}={text}: {}", self.name, self.allowed())),
            Err(error) => Err(format!("{}={text}: {error}, {}", self.name, self.allowed())),
        }
    }

    /// The allowed values, in words.
    fn allowed(&self) -> String {
        let shown = |number: u64| match self.unit {
            Unit::Time => format!("{} ms", number as f64 / 1e6),
            Unit::Size => format!("{number} bytes"),
            Unit::Percent => format!("{number} %"),
            Unit::Count | Unit::Detect => number.to_string(),
        };
        format!("from {} to {}", shown(self.range.0), shown(self.range.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Knobs::default().set(text).unwrap_err()
    }

    #[test]
    fn a_knob_there_is_not_and_a_value_it_cannot_have_are_answered_with_those_there_are() {
        assert!(refused("expires=60s").contains("no knob \"expires\"; there is seed, run, expiry"));
        assert!(refused("expiry").contains("expected NAME=VALUE; there is seed"));
        assert_eq!(refused("expiry=2min30"), refused("expiry=2min30"));
        assert_eq!(refused("expiry=61s"), "expiry=61s: from 1 ms to 60000 ms");
        assert_eq!(refused("expiry=0ms"), "expiry=0ms: from 1 ms to 60000 ms");
        assert_eq!(refused("step=26%"), "step=26%: from 1 % to 25 %");
        assert!(refused("queue=-1").contains("queue=-1: expected a number, from 0"));
        assert!(refused("detect=linux-3").contains("there is ondemand"));
    }

    #[test]
    fn a_knob_that_no_run_of_the_papers_has_is_named_with_theirs() {
        let mut knobs = Knobs::default();
        knobs.set("read-miss=0.5ms").unwrap();
        assert_eq!(knobs.number(READ_MISS), Some(500_000));
        assert_eq!(knobs.unfit(&["wu10"]), None);
        assert_eq!(knobs.unfit(&["li05", "wu10"]), None);
        let unfit = knobs.unfit(&["kimbrel96"]).unwrap();
        assert_eq!(unfit, "read-miss: kimbrel96 has horizon, batch");
        assert!(
            knobs
                .unfit(&["li04"])
                .unwrap()
                .starts_with("read-miss: li04 has seed, run")
        );
    }

    #[test]
    fn each_paper_has_the_conditions_of_its_own_runs() {
        let mut knobs = Knobs::default();
        for text in ["pages=12MiB", "think=10us", "seed=3"] {
            knobs.set(text).unwrap();
        }
        let has = |paper, knob| knobs.of(paper).number(knob).is_some();
        let given = ["pages", "think", SEED];
        assert_eq!(given.map(|knob| has("wu10", knob)), [true, true, false]);
        assert_eq!(given.map(|knob| has("li05", knob)), [false, false, true]);
        assert!(!knobs.of("li05").is_experiment());
        assert_eq!(knobs.of("kimbrel96"), Knobs::default());
        assert!(is_of("think=10us", "wu10") && !is_of("think=10us", "baek09"));
    }

    #[test]
    fn a_model_has_the_values_that_were_set_and_no_others() {
        let mut knobs = Knobs::default();
        knobs.set("read-miss=0.5ms").unwrap();
        knobs.set("segments=2").unwrap();
        let model = "read_hit_ms = 0.1 # r\nread_miss_ms = 0.1 # r\nsegments = 16\n";
        let keys = [("read_miss_ms", READ_MISS), ("segments", SEGMENTS)];
        let changed = "read_hit_ms = 0.1 # r\nread_miss_ms = 0.5\nsegments = 2\n";
        assert_eq!(knobs.model(model, &keys), changed);
        assert_eq!(Knobs::default().model(model, &keys), model);
    }
}
