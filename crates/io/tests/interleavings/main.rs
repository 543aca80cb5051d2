//! Every order of the threads' steps, and every value a load may see: data that crosses threads without
//! the engine's lock, tried out by loom.
//!
//! Not a copy: the files themselves are compiled here a second time, over loom's atomics and locks
//! (`sync` here in the place of `sync` there). A model is a handful of threads, as small as the
//! protocol allows, because the number of orders explodes. loom fails where two threads touch the
//! same bytes with nothing between, and where all of them wait. Not tried: the engine itself,
//! which stands behind one lock, and the walk through the table's index, whose result is only a
//! guess until the frame was announced and looked at again.

extern crate alloc;

#[path = "../../src/deferred_inputs.rs"]
#[allow(dead_code)]
mod deferred_inputs;
#[path = "../../src/dispatch_queue.rs"]
#[allow(dead_code)]
mod dispatch_queue;
#[path = "../../src/hazard.rs"]
#[allow(dead_code)]
mod hazard;
mod sync;
#[path = "../../src/version_number.rs"]
mod version_number;
#[path = "../../src/wait.rs"]
#[allow(dead_code)]
mod wait;
#[path = "../../../core/src/table/words.rs"]
#[allow(dead_code)]
mod words;

mod changing;
mod copying;
mod waiting;

// Where the files look for their neighbours.
use forerun_core::table::{Frame, flag};
use forerun_core::units;
use forerun_io::{arena, backend};

/// How often a thread may lose its processor where it did not have to wait. With two, everything
/// that was broken on purpose was found, in a second; three find nothing more, in eight.
const PREEMPTIONS_MAX: usize = 2;

/// Runs a model in every order with at most [`PREEMPTIONS_MAX`].
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(model);
}
