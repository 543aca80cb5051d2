//! What the papers report, measured again.
//!
//! A [`Paper`] is a file of [claims](claim) and a function that measures them. What comes out is
//! a [`Reproduction`]: a [`Finding`] a claim, in the order of the claims, the paper's tables with
//! what was measured beside them, and the runs its plots are drawn from.
//!
//! ```text
//! claims/kimbrel96.toml -> measure -> judge -> findings, tables, runs -> table, JSON, report
//! ```
//!
//! A claim that is not met stays in the list, with the measured number and the reason found. One
//! that cannot be measured says what is missing; it is never counted as met. Printing is not done
//! here. A new paper is a file of claims, one module and one entry in [`LIST`].

pub mod claim;
pub mod kimbrel96;
pub mod lab;
pub mod theory;

use std::fmt;

use forerun_core::Nanos;
use forerun_core::spec::ChoiceError;

use crate::hinted::HostError;
pub use claim::{Claim, Claims, Figures, Kind, Verdict};

/// The papers. One entry a paper.
pub static LIST: &[Paper] = &[kimbrel96::PAPER];

/// Called before each step: how many there are, and the name of this one.
pub type Step<'a> = &'a mut dyn FnMut(usize, &str);

/// Measures the claims of a paper.
pub type Measure = fn(&Claims, Step) -> Result<Reproduction, Broken>;

/// A paper whose claims are measured.
#[derive(Debug)]
pub struct Paper {
    /// Its key in the bibliography of this project.
    pub name: &'static str,
    /// Text of its claims file.
    pub claims: &'static str,
    /// Measures them.
    pub measure: Measure,
}

/// One claim, measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// What the paper says.
    pub claim: Claim,
    /// What came out here.
    pub measured: Option<Figures>,
    /// Whether they agree.
    pub verdict: Verdict,
    /// How it was measured, and why it differs.
    pub note: String,
}

/// A table of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Heads of the columns.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
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

/// Everything about a paper.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reproduction {
    /// A finding a claim.
    pub findings: Vec<Finding>,
    /// The paper's tables.
    pub tables: Vec<Table>,
    /// Runs for the plots, methods in the order of the legend, disks rising.
    pub bars: Vec<Bar>,
}

/// Why a paper could not be measured: a defect of this crate, as its inputs are all its own.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Broken {
    /// The claims file is none.
    Claims(String),
    /// A method or a device there is not.
    Choice(ChoiceError),
    /// A run came to no end.
    Host(HostError),
    /// The counters of a run do not add up.
    Books,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claims(error) => write!(f, "the claims cannot be read: {error}"),
            Self::Choice(error) => error.fmt(f),
            Self::Host(error) => error.fmt(f),
            Self::Books => write!(f, "the counters of a run do not add up"),
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

impl Paper {
    /// Its claims.
    ///
    /// # Errors
    /// The file is none.
    pub fn claims(&self) -> Result<Claims, Broken> {
        Claims::read(self.claims).map_err(Broken::Claims)
    }

    /// Measures all claims.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn reproduce(&self, step: Step) -> Result<Reproduction, Broken> {
        (self.measure)(&self.claims()?, step)
    }
}
