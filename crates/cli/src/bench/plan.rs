//! The plan of a bench, checked as a whole before any file is made or read.
//!
//! Built from the arguments by `commands::bench`; the runs take everything from here. The checks
//! are those that need more than one flag: combinations that cannot work are refused with the
//! reason and an alternative.

use std::path::PathBuf;
use std::str::FromStr;

use forerun_baselines::METHODS;
use forerun_core::preset::{self, Preset};
use forerun_core::spec::{Choice, Method};
use forerun_core::{Bytes, Nanos, Settings};
use forerun_sim::announce::Announced;
use forerun_sim::workload::{self, Step, Steps, Workload};

use super::conditions::Conditions;
use super::content::Content;
use super::pattern::{Pattern, Shape};
use super::readers::{check_room, maps_max};
use super::server;
use crate::args::{Bench, Clock, Hinted, Storage};
use crate::composition;
use crate::failure::Failure;
use crate::files;
use crate::profile_file;
use crate::sources::{Sources, address, check_storage};

/// Steps counted for the progress bar at most: a tenth of a second's worth.
const STEPS_COUNTED: u64 = 10_000_000;

/// The memory of an engine for which none is named.
const MEMORY_DEFAULT: Bytes = Bytes(256 << 20);

/// The reader of the files.
#[derive(Clone, Copy, Debug)]
pub enum Contender {
    /// Plain buffered reads through the page cache, cold.
    Kernel,
    /// The engine.
    Preset(&'static Preset),
    /// The engine as the default preset, with another hinted method.
    Hinted(&'static Method<Box<dyn forerun_core::hinted::policy::Policy>>),
}

/// A candidate, ready to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entrant {
    /// Plain buffered reads.
    Kernel,
    /// A preset's name, and the engine's settings with everything put in place of its parts.
    Engine(&'static str, Box<Settings>),
}

impl Entrant {
    /// Name as the user types it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Engine(name, _) => name,
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "kernel" {
            return Ok(Self::Kernel);
        }
        let hinted = METHODS.hinted.iter().find(|m| m.spec.name == name);
        if let Some(method) = hinted {
            return Ok(Self::Hinted(method));
        }
        forerun_baselines::preset(name)
            .map(Self::Preset)
            .map_err(|e| format!("{e}, kernel, or with --hints a hinted method"))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Plan {
    /// The candidates.
    pub entrants: Vec<Entrant>,
    /// The storage under the engine.
    pub storage: Storage,
    /// The files.
    pub content: Content,
    /// The connections to stores, for those that are objects.
    pub sources: Sources,
    /// The file of each reader.
    pub readers: Vec<usize>,
    /// Order of reads.
    pub pattern: Pattern,
    /// Its announcements.
    pub hints: Option<Hints>,
    /// A whole workload in place of readers with a pattern, as it was typed.
    pub whole: Option<String>,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before a read.
    pub think: Nanos,
    /// Runs of each candidate.
    pub runs: u32,
    /// Which time.
    pub clock: Clock,
    /// Decides content and patterns.
    pub seed: u64,
    /// Of these its rows are.
    pub conditions: Conditions,
}

/// Reads are announced, not all of them truly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hints {
    /// Percentage of wrong ones.
    pub wrong_percent: u8,
    /// Percentage of reads left out.
    pub missing_percent: u8,
}

impl Plan {
    /// Checks the arguments and makes the plan; files are made by [`Content::make`].
    ///
    /// # Errors
    /// Arguments that cannot be combined, or used at all.
    pub fn new(args: &Bench) -> Result<Self, Failure> {
        check_kernel(args)?;
        check_clock(args)?;
        check_journal(args)?;
        check_hinted(args)?;
        composition::check_no_walks(&args.composition.methods)?;
        let journal = args.storage.journal.as_deref();
        files::check_not_read(journal, &args.paths)?;
        journal.map(files::check_journal).transpose()?;
        check_storage(&args.storage, &args.paths)?;
        let profile = args.storage.profile.as_deref();
        profile.map(profile_file::load).transpose()?;
        let entrants = args.preset.iter().map(|contender| entrant(contender, args));
        let wanted = &args.workload;
        let hints = wanted.hints.then_some(Hints {
            wrong_percent: wanted.wrong_percent,
            missing_percent: wanted.missing_percent,
        });
        let pattern = match (&wanted.pattern, hints) {
            (Some(pattern), _) => pattern.clone(),
            (None, Some(_)) => Pattern::named("shuffled")?,
            (None, None) => Pattern::named("sequential")?,
        };
        if args.disks > 1 && args.storage.striping().is_some() {
            return Err(Failure::Usage(
                "--disks: the array that is emulated has its own, as in --emulate ..,disks=4,strip=64KiB"
                    .into(),
            ));
        }
        if let Some(text) = &wanted.workload {
            return Self::whole(args, text, entrants.collect::<Result<_, Failure>>()?);
        }
        let sources = Sources::default().anonymous(args.storage.anonymous);
        let paths = sources.listed(&args.paths)?;
        let folders = paths.iter().filter(|path| path.is_dir()).count();
        let given = paths.len() - folders;
        let least = if hints.is_some() && given == 0 {
            args.disks.into()
        } else {
            1
        };
        let readers = wanted.readers.unwrap_or(given.max(least) as u32) as usize;
        let own = if wanted.shared { 1 } else { readers };
        if given > own {
            return Err(Failure::Usage(match wanted.shared {
                true => format!("--shared: one file, and {given} are named"),
                false => {
                    format!("--readers {readers}: {given} files are named, and each needs a reader")
                }
            }));
        }
        let bytes = wanted.file_bytes.0;
        let content = Content::new(&paths, &sources, own, bytes, wanted.seed)?;
        let files = content.files().len().min(own);
        let plan = Self {
            entrants: entrants.collect::<Result<_, Failure>>()?,
            storage: Storage {
                disks: args.disks,
                ..args.storage.clone()
            },
            content,
            sources,
            readers: (0..readers).map(|reader| reader % files).collect(),
            pattern,
            whole: None,
            hints,
            read_bytes: wanted.read_bytes.0,
            think: wanted.think,
            runs: args.runs,
            clock: args.clock,
            seed: wanted.seed,
            conditions: Conditions::of(args),
        };
        plan.check_pattern(wanted.shared)?;
        if plan.clock == Clock::Real && !plan.pattern.is_one_process() {
            check_room(readers, maps_max())?;
        }
        // Every reader's workload once, so that a value out of range is found before a run.
        plan.workload()?;
        Ok(plan)
    }

    /// A workload of the simulator, with its own files and processes.
    fn whole(args: &Bench, text: &str, entrants: Vec<Entrant>) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Usage(format!("--workload {text}: {why}"));
        let workload = workload::parse(text).map_err(|e| refused(e.to_string()))?;
        if let Some(why) = server::refusal(&*workload) {
            return Err(refused(why.to_owned()));
        }
        if args.paths.len() > 1 || args.paths.iter().any(|path| !path.is_dir()) {
            let why = "makes its own files: give one DIR, or nothing";
            return Err(refused(why.to_owned()));
        }
        let seed = args.workload.seed;
        let sizes: Vec<u64> = workload.files().iter().map(|bytes| bytes.0).collect();
        Ok(Self {
            entrants,
            storage: Storage {
                disks: args.disks,
                ..args.storage.clone()
            },
            content: Content::of_sizes(args.paths.first().map(PathBuf::as_path), &sizes, seed),
            sources: Sources::default(),
            readers: workload.readers(),
            pattern: Pattern::named("sequential")?,
            whole: Some(text.to_owned()),
            hints: None,
            read_bytes: args.workload.read_bytes.0,
            think: Nanos(0),
            runs: args.runs,
            clock: args.clock,
            seed,
            conditions: Conditions::of(args),
        })
    }

    /// The pattern or the workload, as it was typed.
    #[must_use]
    pub fn name(&self) -> &str {
        self.whole.as_deref().unwrap_or(self.pattern.text())
    }

    /// The steps of one reader, as a workload of its own.
    ///
    /// # Errors
    /// A value out of the pattern's range.
    pub fn workload_of(&self, reader: usize) -> Result<Box<dyn Workload>, Failure> {
        let shape = Shape {
            file_bytes: self.content.files()[self.readers[reader]].bytes,
            read_bytes: self.read_bytes,
            think: self.think,
            seed: self.seed.wrapping_add(reader as u64),
            files: self.content.files().len() as u64,
        };
        self.pattern.workload(&shape).map_err(Failure::Usage)
    }

    /// One process over all files reads one size of them.
    fn check_pattern(&self, shared: bool) -> Result<(), Failure> {
        if !self.pattern.is_one_process() {
            return Ok(());
        }
        let name = self.pattern.name();
        let refused = |why: &str| Err(Failure::Usage(format!("--pattern {name}: {why}")));
        let files = self.content.files();
        if shared || self.readers.len() != files.len() {
            return refused("one process reads all files: leave --shared out, one reader a file");
        }
        if files.iter().any(|file| file.bytes != files[0].bytes) {
            return refused("the files must be of one size");
        }
        Ok(())
    }

    /// The steps of all readers, for the simulator.
    ///
    /// # Errors
    /// A value out of the pattern's range.
    pub fn workload(&self) -> Result<Box<dyn Workload>, Failure> {
        if let Some(text) = &self.whole {
            return workload::parse(text).map_err(|e| Failure::Usage(e.to_string()));
        }
        if self.pattern.is_one_process() {
            return self.workload_of(0);
        }
        let readers = (0..self.readers.len()).map(|reader| self.workload_of(reader));
        Ok(Box::new(Together {
            files: self
                .content
                .files()
                .iter()
                .map(|file| Bytes(file.bytes))
                .collect(),
            files_of: self.readers.clone(),
            readers: readers.collect::<Result<_, _>>()?,
        }))
    }

    /// The same with its announcements.
    #[must_use]
    pub fn announced<'a>(&self, workload: &'a dyn Workload) -> Option<Announced<'a>> {
        let Hints {
            wrong_percent,
            missing_percent,
        } = self.hints?;
        Some(Announced {
            workload,
            wrong_percent,
            missing_percent,
            seed: self.seed,
        })
    }

    /// Bytes all readers ask for, for the progress bar; none if counting them would itself take
    /// time a person notices.
    ///
    /// # Errors
    /// A value out of the pattern's range.
    pub fn bytes_asked(&self) -> Result<Option<u64>, Failure> {
        let workload = self.workload()?;
        let steps = (0..self.readers.len()).flat_map(|reader| workload.steps(reader));
        let mut counted = steps.zip(1..);
        let sum = |sum: u64, (step, at): (Step, u64)| {
            (at <= STEPS_COUNTED).then(|| sum.saturating_add(step.take.0))
        };
        Ok(counted.try_fold(0, sum))
    }
}

/// Several single readers as one workload.
#[derive(Debug)]
struct Together {
    files: Vec<Bytes>,
    files_of: Vec<usize>,
    readers: Vec<Box<dyn Workload>>,
}

impl Workload for Together {
    fn files(&self) -> Vec<Bytes> {
        self.files.clone()
    }

    fn readers(&self) -> Vec<usize> {
        self.files_of.clone()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        self.readers[reader].steps(0)
    }
}

/// A candidate with its settings.
fn entrant(contender: &Contender, args: &Bench) -> Result<Entrant, Failure> {
    let (name, preset) = match contender {
        Contender::Kernel => return Ok(Entrant::Kernel),
        Contender::Preset(preset) => (preset.name, *preset),
        Contender::Hinted(method) => (method.spec.name, preset::default()),
    };
    let mut settings = composition::settings(preset, &args.composition)?;
    if let Some(Hinted(hinted)) = &args.hinted {
        settings.hinted.clone_from(hinted);
    }
    if let Contender::Hinted(method) = contender {
        settings.hinted = Some(Choice::of(method));
    }
    Ok(Entrant::Engine(name, Box::new(settings)))
}

fn check_kernel(args: &Bench) -> Result<(), Failure> {
    let is_kernel = |preset: &Contender| matches!(preset, Contender::Kernel);
    if !args.preset.iter().any(is_kernel) {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::Usage(format!("--preset kernel: {why}")));
    if args.clock == Clock::Virtual {
        return refused(
            "its page cache is modelled by `forerun simulate` alone; linux-2.6.24 is its algorithm",
        );
    }
    if args.storage.emulate.is_some() {
        return refused("the kernel cannot be slowed down by --emulate; linux-2.6.24 can be");
    }
    if args.paths.is_empty() {
        return refused("the kernel reads real files only: give a DIR or FILE");
    }
    if args.paths.iter().any(|path| address(path).is_some()) {
        return refused("the kernel reads no objects of stores");
    }
    match of_engines(args).filter(|_| args.preset.iter().all(is_kernel)) {
        Some(flag) => refused(&format!(
            "it has no use for --{flag}: name a preset beside it"
        )),
        None => Ok(()),
    }
}

/// The first option that is given for engines alone.
fn of_engines(args: &Bench) -> Option<&'static str> {
    let storage = &args.storage;
    let methods = args.composition.methods.values().into_iter();
    let mut given = methods.map(|(name, value)| (name, value.is_some())).chain([
        ("memory", args.composition.memory != MEMORY_DEFAULT),
        ("backend", storage.backend.is_some()),
        ("profile", storage.profile.is_some()),
        ("stripe", storage.stripe.is_some()),
        ("hints", args.workload.hints),
    ]);
    given.find_map(|(name, is_given)| is_given.then_some(name))
}

fn check_clock(args: &Bench) -> Result<(), Failure> {
    if args.clock == Clock::Real {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::Usage(format!("--clock virtual: {why}")));
    if !args.paths.is_empty() {
        return refused("reads no real files: leave DIR and FILE out and give --file-bytes");
    }
    if args.storage.backend.is_some() {
        return refused("uses no backend: leave --backend out");
    }
    Ok(())
}

fn check_hinted(args: &Bench) -> Result<(), Failure> {
    let hinted = args.preset.iter().find_map(|contender| match contender {
        Contender::Hinted(method) => Some(method.spec.name),
        _ => None,
    });
    match hinted {
        Some(name) if !args.workload.hints => Err(Failure::Usage(format!(
            "--preset {name}: follows hints, and there are none: give --hints"
        ))),
        _ => Ok(()),
    }
}

fn check_journal(args: &Bench) -> Result<(), Failure> {
    let one_engine =
        args.runs == 1 && !matches!(args.preset[..], [Contender::Kernel]) && args.preset.len() == 1;
    if args.storage.journal.is_none() || one_engine {
        return Ok(());
    }
    let why = "records one run of one engine: give one preset (not kernel) and one run";
    Err(Failure::Usage(format!("--journal: {why}")))
}
