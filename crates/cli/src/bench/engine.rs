//! A preset in real time: the readers' threads over one driver.
//!
//! Called by `commands::bench`. Every run has a driver, and so a memory, of its own: no block
//! of a run is cached for the next. Files are opened before the clock starts; generated ones by
//! index, so that readers of one index share a file.

use std::io;

use forerun_core::Settings;
use forerun_io::{Driver, Reader};
use forerun_sim::workload::Workload;
use indicatif::ProgressBar;

use super::plan::Plan;
use super::readers::{self, Source};
use super::server;
use super::{DeviceUse, Measured, SourceCache};
use crate::failure::Failure;
use crate::stack::{LAST, Stack};

impl Source for Reader {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Reader::read_at(self, buffer, offset)
    }
}

/// Runs the plan once.
///
/// # Errors
/// A file that cannot be opened or read, a wrong byte, counters that do not add up.
pub fn run(plan: &Plan, settings: &Settings, bar: &ProgressBar) -> Result<Measured, Failure> {
    let stack = Stack::build(settings.clone(), &plan.storage)?;
    let open = |file: usize| open(stack.driver(), plan, file);
    let mut source_cache = SourceCache::None;
    let times = if plan.whole.is_some() {
        let first = open(0).map(|reader| cache_of(&[reader]));
        first.and_then(|cache| {
            source_cache = cache;
            server::run(plan, bar, &open)
        })
    } else {
        let opened = plan.readers.iter().map(|file| open(*file));
        opened.collect::<Result<Vec<_>, _>>().and_then(|readers| {
            announce(stack.driver(), plan, &readers)?;
            source_cache = cache_of(&readers);
            readers::run(plan, bar, readers)
        })
    };
    let estimate = stack.estimates();
    let emulated = stack.driver().device_use();
    let ledger = stack.finish(LAST);
    let (times, ledger) = (times?, ledger?);
    Ok(Measured {
        elapsed: times.elapsed,
        readers: times.readers,
        bytes: times.bytes,
        responses: times.responses,
        is_saturated: false,
        device: Some(DeviceUse {
            requests: ledger.requests,
            bytes: ledger.request_bytes.0,
        }),
        emulated,
        ledger: Some(ledger),
        estimate: Some(estimate),
        block_bytes: settings.block_bytes,
        source_cache,
    })
}

/// How the files of these readers are cached by the system.
fn cache_of(readers: &[Reader]) -> SourceCache {
    let direct: Vec<_> = readers.iter().filter_map(Reader::is_direct).collect();
    match direct.iter().all(|is_direct| *is_direct) {
        _ if direct.is_empty() => SourceCache::None,
        true => SourceCache::Direct,
        false => SourceCache::Buffered,
    }
}

/// Announces reads to the engine, as many as it takes.
fn announce(driver: &Driver, plan: &Plan, readers: &[Reader]) -> Result<(), Failure> {
    let workload = plan.workload()?;
    let Some(announced) = plan.announced(&*workload) else {
        return Ok(());
    };
    let hints = announced.hints();
    let order = hints.map(|hint| (&readers[hint.reader], hint.offset.0, hint.bytes.0));
    let taken = driver.hint(order);
    let taken = taken.map_err(|e| Failure::Usage(e.to_string()))?;
    tracing::debug!("{taken} hints taken");
    Ok(())
}

fn open(driver: &Driver, plan: &Plan, file: usize) -> Result<Reader, Failure> {
    let file = &plan.content.files()[file];
    let Some(path) = &file.path else {
        let index = file.index.unwrap_or_default();
        let opened = driver.open_generated(plan.seed, index, file.bytes);
        return opened.map_err(|e| Failure::Usage(e.to_string()));
    };
    plan.sources.open(driver, path)
}
