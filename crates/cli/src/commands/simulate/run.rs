//! One run of the grid, and the bound it is measured against.
//!
//! A run makes its own devices, so several can go on at once; the input is shared. Which host runs
//! a preset:
//!
//! ```text
//! unit            every hinted method, in the theory's units
//! lru             demand-lru, from the references that are kept or from the trace itself
//! hinted          the other hinted methods in the engine, from the references that are kept
//! engine          presets of the engine, from the trace itself or a workload
//! ```

use std::fmt::Display;

use forerun_core::hinted::policy::Policy;
use forerun_core::hinted::{BlockNo, Setup};
use forerun_core::preset::Preset;
use forerun_core::settings::Notice;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, DeviceId};
use forerun_sim::WorldError;
use forerun_sim::device::Device;
use forerun_sim::device::array::Array;
use forerun_sim::hinted::host::Host;
use forerun_sim::hinted::unit::Instance;
use forerun_sim::hinted::{Place, Reads};
use forerun_sim::simulate::bound::{self, Bound};
use forerun_sim::simulate::placing::Placing;
use forerun_sim::simulate::recorded::Recorded;
use forerun_sim::simulate::requests::{RequestsError, Source};
use forerun_sim::simulate::streamed::{self, References, Streamed};
use forerun_sim::simulate::{Outcome, engine, hinted, in_units, lru};
use forerun_sim::workload::{self, Workload};

use super::cell::{Cell, host, settings, setup};
use super::disk::Disk;
use super::input::Input;
use super::row::Row;
use crate::args::{Simulate, Simulated};
use crate::commands::trace::unreadable;
use crate::failure::Failure;

/// A run with its input and devices.
pub(super) struct Run<'a> {
    pub(super) cell: &'a Cell,
    pub(super) args: &'a Simulate,
    pub(super) input: &'a Input,
    pub(super) disk: &'a Disk,
}

fn failed(error: impl Display) -> Failure {
    Failure::Run(format!("simulation: {error}"))
}

impl Run<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// A setup the host refuses, or a trace that cannot be read again.
    pub(super) fn row(&self) -> Result<Row, Failure> {
        let cell = self.cell;
        let (outcome, bound) = match (&cell.preset, &self.input.recorded) {
            (Simulated::Hinted(choice, _), Some(recorded)) if self.disk.is_unit() => {
                self.in_units(choice, recorded)?
            }
            (preset, Some(recorded)) if preset.is_lru() => self.lru(recorded)?,
            (Simulated::Hinted(choice, _), Some(recorded)) => self.hinted(choice, recorded)?,
            (Simulated::Hinted(_, name), None) => return Err(failed(name)),
            (Simulated::Engine(preset), _) => self.engine(preset)?,
        };
        if outcome.elapsed == u64::MAX {
            return Err(failed(WorldError::Time));
        }
        Ok(Row {
            preset: cell.preset.name().to_owned(),
            is_hinted: cell.preset.is_hinted(),
            is_unit: self.disk.is_unit(),
            device: self.disk.name().to_owned(),
            scheduler: self.disk.scheduler().to_owned(),
            disks: self.disks(),
            cache_blocks: cell.cache_blocks,
            block_bytes: self.input.block_bytes,
            compute_from: self.input.compute_from,
            notice: self.notice(),
            place: self.place(),
            outcome,
            bound,
            over_reverse: None,
        })
    }

    /// When free disks are noticed, where anything is announced to a method that follows
    /// announcements.
    fn notice(&self) -> Option<Notice> {
        let preset = &self.cell.preset;
        let looks = preset.is_hinted() && !preset.is_lru() && !self.disk.is_unit();
        looks.then_some(self.args.noticing.notice.unwrap_or_default())
    }

    /// Where blocks lie, of a trace on disks.
    fn place(&self) -> Option<&'static str> {
        let is_files = self.input.workload.is_some() && !self.cell.preset.is_hinted();
        let recorded = self.input.recorded.as_ref();
        let recorded = recorded.filter(|_| !is_files && !self.disk.is_unit());
        recorded.map(|recorded| match self.placing(recorded).is_by_number() {
            true => "address",
            false => "dense",
        })
    }

    fn disks(&self) -> u16 {
        let recorded = self.input.recorded.as_ref();
        let own = recorded.map(|recorded| recorded.disks(self.cell.wanted));
        own.unwrap_or(self.cell.wanted.unwrap_or(1))
    }

    fn devices(&self) -> Result<Vec<Box<dyn Device>>, Failure> {
        (0..self.disks()).map(|_| self.disk.build()).collect()
    }

    fn placing<'r>(&self, recorded: &'r Recorded) -> Placing<'r> {
        let (wanted, bytes) = (self.cell.wanted, self.input.block_bytes);
        Placing::new(recorded, wanted, self.cell.layout, bytes)
    }

    fn reads(&self, recorded: &Recorded) -> Reads {
        recorded.reads(self.cell.wanted, self.cell.layout, self.input.block_bytes)
    }

    fn host(&self) -> Host {
        host(self.args, self.input.block_bytes)
    }

    fn setup(&self, choice: &Choice<Box<dyn Policy>>) -> Setup {
        setup(choice, self.disks(), self.cell.cache_blocks)
    }

    fn in_units(
        &self,
        choice: &Choice<Box<dyn Policy>>,
        recorded: &Recorded,
    ) -> Result<(Outcome, Bound), Failure> {
        let instance = self.instance(recorded)?;
        let outcome = in_units(&self.setup(choice), &instance).map_err(failed)?;
        Ok((outcome, bound::in_units(&instance, self.cell.cache_blocks)))
    }

    fn hinted(
        &self,
        choice: &Choice<Box<dyn Policy>>,
        recorded: &Recorded,
    ) -> Result<(Outcome, Bound), Failure> {
        // The bound first: its lookahead data is freed before the run takes its memory.
        let compute = recorded.references().iter().map(|r| r.compute.0);
        let bound = self.by_block(recorded, compute.fold(0, u64::saturating_add))?;
        let reads = self.reads(recorded);
        let outcome = hinted(&self.setup(choice), &self.host(), &reads, self.devices()?);
        Ok((outcome.map_err(failed)?, bound))
    }

    fn by_block(&self, recorded: &Recorded, compute: u64) -> Result<Bound, Failure> {
        let (placing, blocks) = (self.placing(recorded), self.cell.cache_blocks);
        let devices = self.devices()?;
        Ok(bound::by_block(
            recorded,
            &placing,
            blocks,
            &self.host(),
            compute,
            &devices,
        ))
    }

    fn lru(&self, recorded: &Recorded) -> Result<(Outcome, Bound), Failure> {
        let (host, blocks) = (self.host(), self.cell.cache_blocks);
        let (placing, devices) = (self.placing(recorded), self.devices()?);
        let place = |block| placing.place(block);
        let outcome = if recorded.references().is_empty() {
            let references = References::new(self.source()?, recorded);
            let references = references.map_err(|e| self.unread(e))?;
            lru::run(&host, blocks, devices, place, references)
        } else {
            lru::run(&host, blocks, devices, place, streamed::kept(recorded))
        };
        let outcome = outcome.map_err(|e| self.unread(e))?;
        let bound = self.by_block(recorded, outcome.compute)?;
        Ok((outcome, bound))
    }

    fn engine(&self, preset: &Preset) -> Result<(Outcome, Bound), Failure> {
        match (&self.input.workload, &self.input.recorded) {
            (Some(name), _) => {
                let workload = workload::parse(name).map_err(|e| Failure::Usage(e.to_string()))?;
                let needs = bound::needs_of(&*workload, self.input.block_bytes);
                self.engine_over(preset, &*workload, &needs)
            }
            (None, Some(recorded)) => {
                let placing = self.placing(recorded);
                let streamed = Streamed::new(self.source()?, recorded, &placing);
                let needs = placing.file_needs();
                let run = self.engine_over(preset, &streamed, &needs);
                match streamed.failure() {
                    Some(error) => Err(self.unread(error)),
                    None => run,
                }
            }
            (None, None) => Err(failed(preset.name)),
        }
    }

    fn engine_over(
        &self,
        preset: &Preset,
        workload: &dyn Workload,
        needs: &forerun_sim::device::needs::Needs,
    ) -> Result<(Outcome, Bound), Failure> {
        let blocks = (self.cell.cache_blocks, self.input.block_bytes);
        let settings = settings(preset, self.args, blocks)?;
        let strip = Bytes(self.input.block_bytes.into());
        let array = Array::new(self.devices()?, strip);
        let outcome = engine(settings, self.args.driver, workload, self.devices()?);
        let outcome = outcome.map_err(failed)?;
        let readers = workload.readers().len();
        let bound = bound::by_extent(outcome.compute_longest, needs, &array, readers);
        Ok((outcome, bound))
    }

    fn source(&self) -> Result<&Source, Failure> {
        let source = self.input.source.as_ref();
        source.ok_or_else(|| failed("the input cannot be read again"))
    }

    /// The error of a trace that was read once already.
    fn unread(&self, error: RequestsError) -> Failure {
        match error {
            RequestsError::Read(error) => unreadable(&error),
            other => failed(format!("{}: {other}", self.input.name)),
        }
    }

    /// The theory's problem, with the cache as it is at the beginning. A block that the trace does
    /// not name takes its place there, too.
    fn instance(&self, recorded: &Recorded) -> Result<Instance, Failure> {
        let (args, cache_blocks) = (self.args, self.cell.cache_blocks);
        let mut reads = self.reads(recorded);
        let mut warm = Vec::new();
        for (at, number) in args.warm.iter().enumerate() {
            if args.warm[..at].contains(number) {
                continue;
            }
            let unnamed = || u32::try_from(reads.places.len()).ok().map(BlockNo);
            let block = recorded.block(*number).or_else(unnamed);
            let block = block.ok_or_else(|| failed(RequestsError::Blocks))?;
            if block.0 as usize == reads.places.len() {
                reads.places.push(Place {
                    disk: DeviceId(0),
                    at: Bytes(0),
                });
            }
            warm.push(block);
        }
        if warm.len() > cache_blocks as usize {
            let blocks = warm.len();
            return Err(Failure::Usage(format!(
                "--warm: {blocks} blocks, the cache has {cache_blocks}"
            )));
        }
        Ok(Instance {
            reads,
            warm,
            fetch_units: args.fetch_units(),
        })
    }
}
