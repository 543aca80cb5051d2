//! Messages on standard error: cleaned, and never waited for.
//!
//! Two problems. A text may come from outside: a name, an error of a server, the answer of another
//! process. So control characters, which a terminal obeys, are replaced, and user and password of an
//! address (`http://user:password@host`) become `***`. And standard error may be a pipe that is not read,
//! or a file on a server that does not answer: a message must not stop a read.
//!
//! ```text
//! a thread: line --> queue of 256 --> forerun-log --> standard error
//!             ^-- waits for it, 0.1 s at most, unless an earlier one waited in vain
//! ```
//!
//! Lines that find the queue full are lost. A process that ends waits for the others, 2 s at most.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Lines on their way.
const LINES_MAX: usize = 256;

/// How long the writer of a line waits until it is there: so that lines are in order with those of other
/// programs, and there when a process ends.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a process that ends waits for its lines: longer than a busy machine lets a thread wait for its turn.
const PATIENCE_AT_END: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// Lines taken, and of these written.
    taken: u64,
    written: u64,
    /// A line was waited for in vain, and none was written since.
    late: bool,
    started: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all_to(&self, mut output: impl Write) {
        loop {
            let waiting = self.changed.wait_while(self.lock(), |s| s.lines.is_empty());
            let line = waiting
                .unwrap_or_else(PoisonError::into_inner)
                .lines
                .pop_front();
            // A closed output takes no message about that.
            let _ = output.write_all(&line.unwrap_or_default());
            let mut state = self.lock();
            state.written += 1;
            state.late = false;
            self.changed.notify_all();
        }
    }
}

/// See the [module](self).
#[derive(Clone, Default)]
pub struct Messages(Arc<Shared>);

impl Messages {
    /// The process ends: waits for the lines on their way.
    pub fn end(&self) {
        self.end_within(PATIENCE_AT_END);
    }

    fn end_within(&self, patience: Duration) {
        let is_due = |state: &mut State| state.written < state.taken;
        let state = self.0.lock();
        drop(self.0.changed.wait_timeout_while(state, patience, is_due));
    }

    fn put(&self, line: &[u8], begin: impl FnOnce(Arc<Shared>) -> io::Result<()>) {
        let text = masked(&String::from_utf8_lossy(line));
        let mut state = self.0.lock();
        if !state.started {
            if begin(self.0.clone()).is_err() {
                return;
            }
            state.started = true;
        }
        if state.lines.len() >= LINES_MAX {
            return;
        }
        state.lines.push_back(text.into_bytes());
        state.taken += 1;
        let mine = state.taken;
        self.0.changed.notify_all();
        if state.late {
            return;
        }
        let is_due = |state: &mut State| state.written < mine && !state.late;
        let waited = self.0.changed.wait_timeout_while(state, PATIENCE, is_due);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.late |= state.written < mine;
    }
}

impl Write for Messages {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let begin = |shared: Arc<Shared>| {
            let thread = thread::Builder::new().name("forerun-log".into());
            let write = move || shared.write_all_to(output());
            thread.stack_size(64 << 10).spawn(write).map(drop)
        };
        self.put(line, begin);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error; of a daemon the system's log.
#[cfg(feature = "mount")]
fn output() -> impl Write {
    forerun_surface::daemon::background::Output
}

#[cfg(not(feature = "mount"))]
fn output() -> impl Write {
    io::stderr()
}

/// The default filter of the log.
const LOG: &str = "warn";

/// Where only warnings are wanted: `fuser` warns of every request that is left to the kernel's default, and takes a reader
/// that was killed for an error.
fn without_fuser(filter: Targets) -> Targets {
    match filter.default_level() {
        Some(LevelFilter::WARN | LevelFilter::INFO) => filter
            .with_target("fuser", LevelFilter::ERROR)
            .with_target("fuser::reply", LevelFilter::OFF),
        _ => filter,
    }
}

/// The filter of the log: `FORERUN_LOG`, a level or parts with levels; the default without it, or where it is empty. A
/// single word that is no level would be taken for the name of a part, and would log nothing.
///
/// # Errors
/// The range or form that is accepted.
pub fn filter(given: Option<&str>) -> Result<Targets, String> {
    let text = given.filter(|text| !text.is_empty()).unwrap_or(LOG);
    let refused = |why: &str| {
        format!(
            "FORERUN_LOG={text}: must be a level (error, warn, info, debug, trace, off), or parts with levels, as in \
             warn,forerun_io=debug{why}"
        )
    };
    let mut words = text.split(',').filter(|word| !word.contains('='));
    let no_level = words.find(|word| word.is_empty() || word.parse::<LevelFilter>().is_err());
    match (no_level, text.parse()) {
        (None, Ok(filter)) if text.contains("fuser") => Ok(filter),
        (None, Ok(filter)) => Ok(without_fuser(filter)),
        (Some(word), _) => Err(refused(&format!("; {word:?} is neither"))),
        (None, Err(error)) => Err(refused(&format!("; {error}"))),
    }
}

/// Lines of the log go to standard error from here on, filtered by [`filter`]. [`Messages::end`] waits for them.
///
/// # Errors
/// The filter is none.
pub fn begin(filtered: Option<&str>, is_coloured: bool) -> Result<Messages, String> {
    let messages = Messages::default();
    let begun = messages.clone();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || messages.clone())
        .with_ansi(is_coloured)
        .with_target(false)
        .without_time();
    let lines = lines.with_filter(filter(filtered)?);
    tracing_subscriber::registry().with(lines).init();
    Ok(begun)
}

/// A text as it may go to a terminal.
#[must_use]
pub fn clean(text: &str) -> String {
    masked(text).replace(|c: char| c.is_control() && c != '\n', "?")
}

/// Without user and password of addresses.
#[must_use]
pub fn masked(text: &str) -> String {
    const BEGIN: &str = "://";
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, after) = rest.split_at(at + BEGIN.len());
        masked.push_str(before);
        let ends = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace();
        let authority = &after[..after.find(ends).unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                masked.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    masked + rest
}

/// As it may stand in a row, a page or a file that is kept: without user, password and query (where signatures stand) of
/// addresses, and without control characters.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    const BEGIN: &str = "://";
    let text = clean(text);
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(BEGIN) {
        let (before, after) = rest.split_at(at + BEGIN.len());
        whole.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
        let (address, behind) = after.split_at(after.find(ends).unwrap_or(after.len()));
        match address.split_once('?') {
            Some((path, _)) => whole.extend([path, "?***"]),
            None => whole.push_str(address),
        }
        rest = behind;
    }
    whole + rest
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    use tracing::Level;

    use super::*;

    #[test]
    fn no_password_and_no_control_character_is_shown() {
        for (text, shown) in [
            ("http://u:p@h/x: no", "http://***@h/x: no"),
            (
                "'s3://token@b' and ftp://a:b@c@d",
                "'s3://***@b' and ftp://***@d",
            ),
            ("http://h/a@b?u=http://x:y@z", "http://h/a@b?u=http://***@z"),
            ("a://", "a://"),
            ("a@b: \x1b[2J\u{9b}31m\x07\x7f\nc", "a@b: ?[2J?31m??\nc"),
        ] {
            assert_eq!(clean(text), shown);
        }
    }

    #[test]
    fn a_row_has_no_password_and_no_signature() {
        for (text, shown) in [
            ("a s3://k:p@b/c?X-Signature=s d", "a s3://***@b/c?*** d"),
            (
                "'https://h/a?t=1' http://h/b",
                "'https://h/a?***' http://h/b",
            ),
            ("why? https://h", "why? https://h"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    #[test]
    fn the_log_has_a_level_or_parts_with_levels() {
        for text in [
            "debug",
            "warn,forerun_io=debug",
            "OFF",
            "forerun_io=trace,info",
            "a=off",
        ] {
            assert!(filter(Some(text)).is_ok(), "{text}");
        }
        assert_eq!(filter(None), filter(Some("")));
        let warns = |text, part: &str| filter(Some(text)).unwrap().would_enable(part, &Level::WARN);
        for text in ["warn", "info", "warn,forerun_store=debug"] {
            assert!(
                warns(text, "forerun_io") && !warns(text, "fuser::request"),
                "{text}"
            );
        }
        assert!(warns("debug", "fuser::request") && warns("warn,fuser=warn", "fuser::request"));
        assert!(!warns("off", "fuser"));
        for (text, word) in [
            ("banana", "banana"),
            ("warn,forerun_io", "forerun_io"),
            ("forerun_io=loud", "loud"),
            ("warn,", ""),
        ] {
            let refused = filter(Some(text)).unwrap_err();
            let begin = format!("FORERUN_LOG={text}: must be a level");
            assert!(
                refused.starts_with(&begin) && refused.contains(word),
                "{refused}"
            );
        }
    }

    /// Hands on its lines, and waits for a word before each.
    struct Gated(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Gated {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(line.to_vec());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_was_waited_for_in_vain_is_there_when_the_process_ends() {
        let (open, gate) = channel();
        let (tell, told) = channel();
        let messages = Messages::default();
        messages.put(b"late", |shared| {
            thread::spawn(move || shared.write_all_to(Gated(gate, tell)));
            Ok(())
        });
        assert!(messages.0.lock().late && told.try_recv().is_err());
        thread::spawn(move || drop(open));
        messages.end_within(Duration::from_secs(60));
        assert_eq!(told.try_recv().unwrap(), b"late");
    }

    #[test]
    fn an_output_that_does_not_answer_costs_one_short_wait_and_the_lines_beyond_the_queue() {
        let (open, gate) = channel();
        let (tell, told) = channel();
        let messages = Messages::default();
        let mut gated = Some(Gated(gate, tell));
        let mut put = |number: u32| {
            messages.put(number.to_string().as_bytes(), |shared| {
                let gated = gated.take().unwrap();
                thread::spawn(move || shared.write_all_to(gated));
                Ok(())
            });
        };
        let begun = Instant::now();
        (0..10_000).for_each(&mut put);
        // Each would wait a tenth of a second: a quarter of an hour.
        assert!(begun.elapsed() < Duration::from_secs(60));
        // From now on every line is let through.
        drop(open);
        let first: Vec<_> = told.iter().take(LINES_MAX).collect();
        assert_eq!(first[0], b"0");
        assert_eq!(first[LINES_MAX - 1], (LINES_MAX - 1).to_string().as_bytes());
        let begun = Instant::now();
        let all_written = || {
            let state = messages.0.lock();
            state.written == state.taken
        };
        while !all_written() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
        put(77);
        assert!(told.iter().any(|line| line == b"77"));
    }
}
