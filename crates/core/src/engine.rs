//! The engine: inputs in, decisions out.
use crate::{Input, Ledger, Nanos, Output, Settings, settings::SettingsError, table::Table};
use alloc::sync::Arc;

/// See the [module](self).
#[derive(Debug)]
pub struct Engine { settings: Settings, table: Arc<Table> }

impl Engine {
    /// A fresh engine.
    ///
    /// # Errors
    /// Settings out of range.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let table = Arc::new(Table::new(settings.frames()));
        Ok(Self { settings, table })
    }
    /// The settings it was built from.
    pub fn settings(&self) -> &Settings { &self.settings }
    /// The resident table, to be looked up from any thread.
    pub fn table(&self) -> &Arc<Table> { &self.table }
    /// Whether the hit path must be closed: the detect method wants to see every read, so the
    /// driver hands every read to the engine, hits included.
    pub fn sees_every_read(&self) -> bool { false }
    /// Takes one input; drain [`Engine::poll`] until [`Output::Idle`] before the next.
    pub fn handle(&mut self, _now: Nanos, _input: Input) {}
    /// The next output of the last input.
    pub fn poll(&mut self) -> Output { Output::Idle { until: None } }
    /// The counters, as of now.
    pub fn ledger(&self) -> Ledger { Ledger::default() }
}
