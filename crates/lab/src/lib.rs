//! Experiments of the papers, measured again.
//!
//! A [`Paper`] is a file of [claims](claim), a function that measures one, and the paper's tables
//! and figures as [`Exhibit`]s. The result is a [`Reproduction`]: a [`Finding`] a claim, in the
//! order of the claims, and the contents of the exhibits.
//!
//! ```text
//! claims/kimbrel96.toml -> measure -> judge -> findings \
//!                   exhibits -> tables, charts           > table, JSON, report
//!                        both ask the lab for runs      /
//! ```
//!
//! A claim that is not met stays in the list, with the measured number and the reason found.
//! The caller says how [jobs](lab::Job) are done: [`one_by_one`], or on [`threads`]. [`rows`] and
//! [`page`] print the findings. A new paper
//! is a file of claims, one module and one entry in [`LIST`].
//!
//! Where a paper's runs are drawn from a seed, a finding is the median of [`SEEDS`] measurements, and `borderline` if
//! one of them has another verdict. [`knobs`] change a condition of the runs, for [`experiments`]; [`reasons`] has the
//! causes that they establish of claims that differ.

#![forbid(unsafe_code)]

pub mod array;
pub mod baek09;
pub mod claim;
mod drawing;
pub mod drive;
pub mod experiments;
pub mod kimbrel96;
pub mod knobs;
pub mod lab;
pub mod li04;
pub mod li05;
mod lists;
mod median;
mod numbers;
pub mod page;
mod plot;
pub mod published;
pub mod reasons;
pub mod rows;
pub mod server;
pub mod theory;
pub mod threads;
pub mod wu10;

use std::fmt;

use forerun_core::Nanos;
use forerun_core::spec::ChoiceError;
pub use forerun_sim::hinted::host::Notice;

pub use claim::{Claim, Claims, Figures, Kind, Verdict};
use forerun_sim::hinted::HostError;
use knobs::Knobs;
use lab::{Done, Job, Lab, Perform, Traces};

/// The papers. One entry a paper.
pub static LIST: &[Paper] = &[
    li04::PAPER,
    li05::PAPER,
    wu10::PAPER,
    kimbrel96::PAPER,
    baek09::PAPER,
];

/// A paper whose claims are measured.
#[derive(Debug)]
pub struct Paper {
    /// Its key in the bibliography of this project.
    pub name: &'static str,
    /// Text of its claims file.
    pub claims: &'static str,
    /// Measures one of them.
    pub measure: fn(&Claim, &mut Lab) -> Answer,
    /// Its tables and figures.
    pub exhibits: &'static [Exhibit],
    /// Its claims are measured for each moment at which a free disk can be noticed, because it is about
    /// methods that go by that and does not say which it had.
    pub has_notices: bool,
}

/// The measurement of a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The numbers.
    pub measured: Figures,
    /// Whether the claim holds, where the numbers alone do not say so.
    pub holds: Option<bool>,
    /// Each parameter fitted to a published figure, and the figure without the fit. None if nothing
    /// was taken from the figures that are compared.
    pub fitted: Option<String>,
    /// How it was measured, and why it differs.
    pub note: String,
}

/// A table or a figure of a paper.
#[derive(Debug)]
pub struct Exhibit {
    /// As the paper counts it: `table-2`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// A remark for its readers.
    pub note: &'static str,
    /// Measures it and adds its tables and charts.
    pub draw: fn(&mut Lab, &mut Shown),
}

/// One claim, measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The claim of the paper.
    pub claim: Claim,
    /// The measurements, one for each moment at which a free disk can be noticed; the requested one
    /// first.
    pub measured: Vec<Measured>,
}

/// Seeds of a paper whose runs are drawn, from 1 on: an odd number, so that a median is one of the measurements.
pub const SEEDS: u64 = 5;

/// A measurement for a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// When free disks were noticed.
    pub notice: Notice,
    /// The numbers: the median of all seeds, each.
    pub figures: Figures,
    /// The least and the most of each number, if there was more than one seed and they do not agree.
    pub range: Vec<(f64, f64)>,
    /// Whether the numbers agree with the paper's.
    pub verdict: Verdict,
    /// Whether there is a seed by which the verdict would be another.
    pub is_borderline: bool,
    /// Each parameter fitted to a published figure, and the figure without the fit.
    pub fitted: Option<String>,
    /// How they were measured, and why they differ.
    pub note: String,
}

impl Measured {
    /// Each parameter fitted to a published figure, and the figure without the fit.
    #[must_use]
    pub fn fit(&self) -> Option<&str> {
        self.fitted.as_deref()
    }
}

impl Finding {
    /// The measurement with free disks noticed then.
    #[must_use]
    pub fn at(&self, notice: Notice) -> Option<&Measured> {
        self.measured.iter().find(|one| one.notice == notice)
    }

    /// Whether the verdict hangs on when a free disk is noticed.
    #[must_use]
    pub fn hangs_on_notice(&self) -> bool {
        let mut verdicts = self.measured.iter().map(|one| one.verdict);
        let first = verdicts.next();
        verdicts.any(|verdict| Some(verdict) != first)
    }
}

/// The content of an exhibit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shown {
    /// Its title.
    pub title: String,
    /// A remark for its readers.
    pub note: String,
    /// In numbers.
    pub tables: Vec<Table>,
    /// Drawn.
    pub charts: Vec<Chart>,
}

/// A table of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Heads of the columns.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

/// A plot of the report.
#[derive(Clone, PartialEq, Debug)]
pub enum Chart {
    /// Elapsed time in its three parts, a group of bars for each number of disks.
    Bars {
        /// Its title.
        title: String,
        /// By disks, then in the order of the legend.
        bars: Vec<Bar>,
    },
    /// Something over a parameter, drawn on a logarithmic axis.
    Lines {
        /// Its title.
        title: String,
        /// The measured quantity, with its unit.
        measured: String,
        /// The parameter.
        over: String,
        /// A name a line, and its points: parameter, measured value.
        lines: Vec<(String, Vec<(f64, f64)>)>,
    },
}

/// Where the time of a run went; a bar of the plots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bar {
    /// The method, without its parameters.
    pub method: &'static str,
    /// Disks.
    pub disks: u16,
    /// The reader computed.
    pub compute: Nanos,
    /// The processor worked on fetches.
    pub driver: Nanos,
    /// The processor waited.
    pub stall: Nanos,
}

/// The selected parts of a paper.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// When free disks are noticed, in the order in which that is shown: exhibits have the first.
    /// None is the default alone.
    pub notices: Vec<Notice>,
    /// Claims and exhibits by name; all claims if there is none.
    pub only: Vec<String>,
    /// Exhibits as well.
    pub exhibits: bool,
    /// Conditions with values of their own.
    pub with: Knobs,
    /// A sample: fewer arrays, fewer parameters to choose from, shorter runs, and notes without the
    /// experiments that explain a difference. For tests, which hold that every verdict is that of the whole.
    pub is_sample: bool,
}

/// Everything about a paper.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reproduction {
    /// A finding a claim.
    pub findings: Vec<Finding>,
    /// The paper's tables and figures.
    pub exhibits: Vec<Shown>,
}

/// Why a paper could not be measured: a defect of this crate, as its inputs are all its own.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Broken {
    /// The claims file is none.
    Claims(String),
    /// A method or a device there is not.
    Choice(ChoiceError),
    /// A model that was refused.
    Model(String),
    /// A trace there is not.
    Trace(&'static str),
    /// A scene or its settings, refused or broken.
    Settings(String),
    /// A run came to no end.
    Host(HostError),
    /// The counters of a run do not add up.
    Books,
    /// Jobs that were not done.
    Undone,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claims(error) => write!(f, "the claims cannot be read: {error}"),
            Self::Choice(error) => error.fmt(f),
            Self::Model(error) => write!(f, "the disk is refused: {error}"),
            Self::Settings(error) => error.fmt(f),
            Self::Trace(name) => write!(f, "there is no trace {name}"),
            Self::Host(error) => error.fmt(f),
            Self::Books => write!(f, "the counters of a run do not add up"),
            Self::Undone => write!(f, "runs were asked for and not made"),
        }
    }
}

impl std::error::Error for Broken {}

impl From<ChoiceError> for Broken {
    fn from(error: ChoiceError) -> Self {
        Self::Choice(error)
    }
}

impl From<HostError> for Broken {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// The paper of this name.
///
/// # Errors
/// There is none; names those there are.
pub fn find(name: &str) -> Result<&'static Paper, String> {
    LIST.iter().find(|paper| paper.name == name).ok_or_else(|| {
        let names: Vec<&str> = LIST.iter().map(|paper| paper.name).collect();
        format!("no such paper; there is {}", names.join(", "))
    })
}

/// Does jobs one after the other.
///
/// # Errors
/// See [`Job::perform`].
pub fn one_by_one(traces: &Traces, jobs: Vec<Job>) -> Result<Vec<(Job, Done)>, Broken> {
    let done = |job: Job| job.perform(traces).map(|done| (job, done));
    jobs.into_iter().map(done).collect()
}

impl Exhibit {
    /// Its content, as far as the lab has the runs for it.
    fn show(&self, lab: &mut Lab) -> Shown {
        let mut shown = Shown {
            title: self.title.to_owned(),
            note: self.note.to_owned(),
            ..Shown::default()
        };
        (self.draw)(lab, &mut shown);
        shown
    }
}

impl Table {
    /// A table of these rows.
    fn new(title: &str, head: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let title = title.to_owned();
        Self { title, head, rows }
    }
}

impl Paper {
    /// Its claims.
    ///
    /// # Errors
    /// The file is none.
    pub fn claims(&self) -> Result<Claims, Broken> {
        Claims::read(self.claims).map_err(Broken::Claims)
    }

    /// Names of its claims, then of its exhibits.
    ///
    /// # Errors
    /// The file of claims is none.
    pub fn items(&self) -> Result<Vec<String>, Broken> {
        let claims = self.claims()?.claims.into_iter().map(|claim| claim.id);
        let exhibits = self.exhibits.iter().map(|exhibit| exhibit.id.to_owned());
        Ok(claims.chain(exhibits).collect())
    }

    /// Measures the selected parts; `perform` makes the runs.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn reproduce(&self, wanted: &Wanted, perform: Perform) -> Result<Reproduction, Broken> {
        let named = |id: &str| wanted.only.is_empty() || wanted.only.iter().any(|name| name == id);
        let mut runs = Runs {
            traces: Traces::default(),
            lab: Lab::default(),
            perform,
        };
        runs.lab.is_sample = wanted.is_sample;
        runs.lab.with = wanted.with.of(self.name);
        let mut all = Reproduction::default();
        for claim in self.claims()?.claims {
            if named(&claim.id) {
                let finding = runs.complete(|lab| self.finding(&claim, wanted, lab))?;
                all.findings.push(finding);
            }
        }
        runs.lab.notice = self.notices(wanted)[0];
        let exhibits = self.exhibits.iter().filter(|_| wanted.exhibits);
        for exhibit in exhibits.filter(|exhibit| named(exhibit.id)) {
            all.exhibits.push(runs.complete(|lab| exhibit.show(lab))?);
        }
        Ok(all)
    }

    /// The moments at which a free disk is noticed that are measured.
    fn notices(&self, wanted: &Wanted) -> Vec<Notice> {
        match wanted.notices.as_slice() {
            notices if self.has_notices && !notices.is_empty() => notices.to_vec(),
            _ => vec![Notice::default()],
        }
    }

    /// The seeds of each measurement; none where nothing is drawn, or one is given.
    fn seeds(&self, wanted: &Wanted) -> Vec<Option<u64>> {
        let is_drawn = knobs::has_seed(self.name);
        match is_drawn && !wanted.is_sample && wanted.with.number(knobs::SEED).is_none() {
            true => [None].into_iter().chain((2..=SEEDS).map(Some)).collect(),
            false => vec![None],
        }
    }

    /// A claim from the runs made so far.
    fn finding(&self, claim: &Claim, wanted: &Wanted, lab: &mut Lab) -> Finding {
        let at = |notice: &Notice| {
            lab.notice = *notice;
            let seeds = self.seeds(wanted).into_iter();
            let answers = seeds.map(|seed| {
                lab.seed = seed;
                (self.measure)(claim, lab)
            });
            let answers: Vec<Answer> = answers.collect();
            lab.seed = None;
            Measured::of(claim, *notice, answers)
        };
        Finding {
            claim: claim.clone(),
            measured: self.notices(wanted).iter().map(at).collect(),
        }
    }
}

/// Runs, made as they are asked for.
struct Runs<'a> {
    traces: Traces,
    lab: Lab,
    perform: Perform<'a>,
}

impl Runs<'_> {
    /// The result of a measurement when no run is missing.
    fn complete<T>(&mut self, mut measure: impl FnMut(&mut Lab) -> T) -> Result<T, Broken> {
        loop {
            let result = measure(&mut self.lab);
            let missing = self.lab.missing();
            if missing.is_empty() {
                return Ok(result);
            }
            let asked = missing.len();
            let done = (self.perform)(&self.traces, missing)?;
            if done.len() < asked {
                return Err(Broken::Undone);
            }
            for (job, done) in done {
                self.lab.learn(job, done);
            }
        }
    }
}
