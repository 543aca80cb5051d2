//! The ground of one run: disks that are cold and set, and a memory group of its own.
//!
//! Used by the [table](crate::table) of readers and by that of [servers](crate::servers). The group is made anew for
//! each run, recorded before it is there, and gone after it, whatever the run came to.

use std::path::{Path, PathBuf};

use crate::bed::{Bed, Queue};
use crate::cold;
use crate::failure::Failure;
use crate::memory_group::Controller;
use crate::plan::BedPaths;
use crate::state::State;
use crate::thing::Thing;

/// A bed that is up, and the comparison on it.
pub(crate) struct Bench<'a, Comparison> {
    pub(crate) bed: &'a Bed,
    pub(crate) place: &'a BedPaths,
    pub(crate) state: &'a mut State,
    pub(crate) comparison: &'a Comparison,
    /// None where this machine has no memory groups.
    pub(crate) controller: Option<&'a Controller>,
}

impl<Comparison> Bench<'_, Comparison> {
    /// Runs on cold disks that are set like this, in a group of so much memory.
    pub(crate) fn cold<Measured>(
        &mut self,
        queue: &Queue,
        memory_bytes: u64,
        run: impl FnOnce(&mut Self, Option<&Path>) -> Result<Measured, Failure>,
    ) -> Result<Measured, Failure> {
        cold::again(self.bed, self.place, queue)?;
        let group = self.make_group(memory_bytes)?;
        let measured = run(self, group.as_deref());
        let undone = group.map_or(Ok(()), |path| Thing::Group { path }.undo());
        let measured = measured?;
        undone.map(|()| measured)
    }

    fn make_group(&mut self, memory_bytes: u64) -> Result<Option<PathBuf>, Failure> {
        let Some(controller) = self.controller else {
            return Ok(None);
        };
        let path = controller.path(self.state.folder());
        self.state.record(Thing::Group { path: path.clone() })?;
        controller.make(&path, memory_bytes)?;
        Ok(Some(path))
    }
}
