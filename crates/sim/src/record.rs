//! Recording: the sink of a run's journal, and the digest that stands for it.
//!
//! The world shows every input and output of the engine to a [`Record`]. `()` keeps nothing, a
//! `Vec<Entry>` keeps everything, [`Text`] writes the journal format of
//! [`forerun_core::journal`]. A drained engine (`idle -`) is not written: the next input, or the
//! end, says the same.
//!
//! The digest is computed always, because it is cheap: two runs with equal digests took the
//! same decisions at the same times (up to a 2^-64 chance). It says that runs differ, never where;
//! for that, compare journals.

use core::fmt;

use forerun_core::journal::{Entry, head};
use forerun_core::units::Extent;
use forerun_core::{Nanos, Output, Settings, protocol::Served};

use crate::random::mix;

/// Takes the entries of a journal as they come.
///
/// # Examples
/// Counts the fetches of a run.
///
/// ```
/// use forerun_core::Output;
/// use forerun_core::journal::Entry;
/// use forerun_sim::Record;
///
/// struct Fetches(u64);
///
/// impl Record for Fetches {
///     fn entry(&mut self, entry: &Entry) {
///         self.0 += u64::from(matches!(entry, Entry::Output(Output::Fetch(_))));
///     }
/// }
/// ```
pub trait Record {
    /// The run begins.
    fn begin(&mut self, _settings: &Settings) {}
    /// An input or an output.
    fn entry(&mut self, entry: &Entry);
}

impl Record for () {
    fn entry(&mut self, _entry: &Entry) {}
}

impl Record for Vec<Entry> {
    fn entry(&mut self, entry: &Entry) {
        self.push(entry.clone());
    }
}

/// Writes a journal as text. After the first error of the writer it writes nothing more.
#[derive(Debug)]
pub struct Text<W> {
    writer: W,
    result: fmt::Result,
}

impl<W: fmt::Write> Text<W> {
    /// A journal into this writer.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            result: Ok(()),
        }
    }

    /// The writer, with everything in it.
    ///
    /// # Errors
    /// The writer's first error.
    pub fn finish(self) -> Result<W, fmt::Error> {
        self.result.map(|()| self.writer)
    }

    fn line(&mut self, line: &dyn fmt::Display) {
        if self.result.is_ok() {
            self.result = writeln!(self.writer, "{line}");
        }
    }
}

impl<W: fmt::Write> Record for Text<W> {
    fn begin(&mut self, settings: &Settings) {
        self.line(&head(settings));
    }

    fn entry(&mut self, entry: &Entry) {
        self.line(entry);
    }
}

/// A number that stands for a sequence of decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Digest(pub(crate) u64);

impl Digest {
    fn add(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// Takes an output, and the time of the input it answers.
    pub(crate) fn decide(&mut self, now: Nanos, output: &Output) {
        self.add(now.0);
        match output {
            Output::Fetch(fetch) => {
                self.add(1 + u64::from(fetch.demand));
                self.add(u64::from(fetch.request.0));
                self.add(u64::from(fetch.device.0));
                self.extent(&fetch.extent);
            }
            Output::Serve { read, served } => {
                self.add(3);
                self.add(u64::from(read.0));
                match served {
                    Served::Blocks { count } => self.add(u64::from(*count)),
                    Served::Failed { error } => self.add(u64::from(error.0 as u32) << 32),
                    Served::End => self.add(u64::MAX),
                }
            }
            Output::OpenAhead { folder, entry } => {
                self.add(6);
                self.add(u64::from(folder.0));
                self.add(u64::from(*entry));
            }
            Output::CloseAhead { reader } => {
                self.add(7);
                self.add(u64::from(reader.0));
            }
            Output::Cancel { request } => {
                self.add(8);
                self.add(u64::from(request.0));
            }
        }
    }

    fn extent(&mut self, extent: &Extent) {
        self.add(u64::from(extent.file.0));
        self.add(u64::from(extent.first.0));
        self.add(u64::from(extent.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::{ReadId, ReaderId};

    struct Full;

    impl fmt::Write for Full {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            Err(fmt::Error)
        }
    }

    #[test]
    fn a_full_writer_is_reported_at_the_end() {
        let mut text = Text::new(Full);
        let close = forerun_core::Input::Close {
            reader: ReaderId(0),
        };
        text.entry(&Entry::Input(Nanos(0), close));
        assert!(text.finish().is_err());
    }

    #[test]
    fn the_digest_depends_on_decisions_and_their_times() {
        let digest = |now, count| {
            let mut digest = Digest::default();
            let served = Served::Blocks { count };
            digest.decide(
                Nanos(now),
                &Output::Serve {
                    read: ReadId(0),
                    served,
                },
            );
            digest
        };
        assert_eq!(digest(1, 1), digest(1, 1));
        assert_ne!(digest(1, 1), digest(2, 1));
        assert_ne!(digest(1, 1), digest(1, 2));
    }
}
