//! `Engine.hint`: reads announced by files, paths and addresses.
//!
//! Problem: each object of a store is asked for its size and version before it can be announced,
//! which takes as long as a read of it, and the order must be kept.
//!
//! ```text
//! order        a 0..9   b 0..9   a 9..20   c 0..9
//! side by side open a   open b             open c      each name once
//! announced    a 0..9 and b 0..9 as soon as both are open, a 9..20; c 0..9 once it is open
//! ```
//!
//! A file that cannot be opened is left out, with a warning: its reader gets the error. Places that
//! the engine has no room for are not announced, and files are not opened for it where none more
//! can be [kept](crate::announced).

use std::collections::HashMap;
use std::ffi::CString;
use std::mem;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use forerun_core::Ledger;
use forerun_io::{Error, Reader};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyIterator, PyString};

use crate::announced::{Announced, Kept, Key, Reason};
use crate::engine::{Engine, Running};
use crate::errors::{self, OpenError};
use crate::file::Handle;
use crate::fork::OfThisProcess;
use crate::origin::{Opened, Origin};
use crate::release::{is_main_thread, released};
use crate::settings::{OFFSET_MAX, count};
use crate::stores::Version;
use crate::waiting::{SIGNALS_EVERY, forked_amid};

/// Files opened at once: as many as questions to a store are under way.
const THREADS_MAX: usize = 64;

/// Paths opened at once: a local open takes some microseconds, and one of a network file system a
/// millisecond.
const THREADS_OF_PATHS: usize = 8;

/// Names opened ahead of the one that is announced next, if so many may be kept: where that one takes long to open, the
/// descriptors of those behind it come on top of those that are kept.
const AHEAD_MAX: usize = 2 * THREADS_MAX;

/// How far a place is put out of its turn: a quarter of the engine's window, so that none counts as
/// left out.
const DISORDER: usize = 16;

/// No piece is longer: a request.
const PIECE_MAX: u64 = 1 << 20;

/// A path or an address, and its version if it was listed.
type Name = (PathBuf, Option<Version>);

/// A read that will come.
struct Place {
    of: Of,
    offset: u64,
    length: u64,
}

/// Whose bytes are read.
enum Of {
    /// Of an open file, by its key if it is kept.
    File(Arc<Reader>, Option<Key>),
    /// By its number among the names.
    Name(usize),
}

/// The handle of a `forerun.File`, or of another class that has one; of text that of its `buffer`.
fn handle_of<'py>(file: &Bound<'py, PyAny>) -> Option<Bound<'py, Handle>> {
    if let Ok(handle) = file.cast::<Handle>() {
        return Some(handle.clone());
    }
    let has = |file: &Bound<'py, PyAny>| file.getattr("_handle").ok()?.cast_into().ok();
    has(file).or_else(|| has(&file.getattr("buffer").ok()?))
}

/// Whether it is a path or an address, if it is one of a file.
fn is_name(file: &Bound<'_, PyAny>) -> bool {
    file.is_instance_of::<PyString>()
        || file.is_instance_of::<PyBytes>()
        || file.hasattr("__fspath__").unwrap_or_default()
}

/// The path from the root, or the address, and the version of one that was listed; none if it is no
/// name.
fn name_of(file: &Bound<'_, PyAny>) -> PyResult<Option<Name>> {
    static ABSOLUTE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !is_name(file) {
        return Ok(None);
    }
    let absolute = ABSOLUTE.import(file.py(), "forerun._file", "absolute")?;
    let path = absolute.call1((file,))?.extract()?;
    let version = match file.is_exact_instance_of::<PyString>() {
        true => None,
        false => file.getattr("_version").ok(),
    };
    let version: Option<(u64, String)> = version.map_or(Ok(None), |version| version.extract())?;
    let version = version.map(|(bytes, version)| (bytes, version.into()));
    Ok(Some((path, version)))
}

type Three<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The accepted forms, for messages.
const PLACE: &str = "must be (file, offset, length)";
const ORDER: &str = "must be an iterable of (file, offset, length), as [(file, 0, None)]";

/// The items of an order. A name and a file are iterables, too, of characters and of lines, and a place is one of its
/// parts: each is refused as a whole.
fn items_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    let is_place = |three: Three<'py>| handle_of(&three.0).is_some() || is_name(&three.0);
    let is_alone = handle_of(given).is_some() || is_name(given);
    if is_alone || given.extract().is_ok_and(is_place) {
        return Err(no_order("order", given, ORDER));
    }
    let refused = |_| no_order("order", given, ORDER);
    given.try_iter().map_err(refused)
}

/// The refusal of a value, with its representation.
fn no_order(name: &str, given: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let shown = given.repr().map(|text| text.to_string());
    let shown = shown.unwrap_or_else(|_| given.get_type().to_string());
    let end = shown.char_indices().nth(SHOWN_MAX);
    let shown = match end {
        Some((end, _)) => format!("{}..", &shown[..end]),
        None => shown,
    };
    PyTypeError::new_err(format!("{name} of {shown}: {wanted}"))
}

/// Characters of a refused value that a message has: a line.
const SHOWN_MAX: usize = 80;

/// The order as it was given.
struct Order {
    places: Vec<Place>,
    names: Vec<Name>,
}

impl Order {
    fn of(engine: &Engine, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = given.py();
        let mut places = Vec::new();
        let mut numbers: HashMap<Name, usize> = HashMap::new();
        for item in items_of(given)? {
            let item = item?;
            let (file, offset, length): Three<'_> =
                item.extract().map_err(|_| no_order("hint", &item, PLACE))?;
            let of = match (handle_of(&file), name_of(&file)?) {
                (Some(handle), _) => {
                    let handle = handle.get();
                    if !std::ptr::eq(handle.engine().get(), engine) {
                        return Err(errors::value(format!(
                            "hint of {file}: must be a file of this engine"
                        )));
                    }
                    let reader = handle.reader(py)?;
                    let key = handle.is_named().then(|| Key::Opened(reader.id()));
                    Of::File(reader, key)
                }
                (None, Some(name)) => {
                    let next = numbers.len();
                    Of::Name(*numbers.entry(name).or_insert(next))
                }
                (None, None) => {
                    let kind = file.get_type();
                    return Err(PyTypeError::new_err(format!(
                        "file must be one of forerun.open, a path or an address, not {kind}"
                    )));
                }
            };
            places.push(Place {
                of,
                offset: count("offset", &offset, OFFSET_MAX)?,
                length: match length.is_none() {
                    true => OFFSET_MAX,
                    false => count("length", &length, OFFSET_MAX)?,
                },
            });
        }
        let mut names = vec![Name::default(); numbers.len()];
        for (name, number) in numbers {
            names[number] = name;
        }
        Ok(Self { places, names })
    }
}

/// Names to be opened, each by the thread that takes it. The lock is not held while one is opened.
struct Unopened {
    /// With their numbers, which rise.
    origins: Vec<(usize, Origin)>,
    /// So many numbers from the one that is announced next.
    ahead: usize,
    turn: Mutex<Turn>,
    moved: Condvar,
}

#[derive(Default)]
struct Turn {
    /// The next to be opened, as a place in the origins.
    next: usize,
    /// The number of the name that is announced next.
    announced: usize,
}

impl Unopened {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next to be opened, once it is near enough.
    fn take(&self) -> Option<&(usize, Origin)> {
        let next = |turn: &Turn| self.origins.get(turn.next);
        let is_far = |turn: &mut Turn| {
            next(turn).is_some_and(|(number, _)| *number >= turn.announced + self.ahead)
        };
        let turn = self.moved.wait_while(self.turn(), is_far);
        let mut turn = turn.unwrap_or_else(PoisonError::into_inner);
        let taken = next(&turn)?;
        turn.next += 1;
        Some(taken)
    }

    /// The name of this number is announced next, if none behind it was.
    fn reach(&self, number: usize) {
        let mut turn = self.turn();
        let risen = number.saturating_sub(turn.announced);
        turn.announced += risen;
        drop(turn);
        // So many more are near enough at most, each for one thread.
        for _ in 0..risen.min(THREADS_MAX) {
            self.moved.notify_one();
        }
    }

    /// No other is opened.
    fn end(&self) {
        self.turn().next = self.origins.len();
        self.moved.notify_all();
    }
}

/// Files being opened, on threads that end with the last one, or with this.
struct Opening {
    unopened: OfThisProcess<Arc<Unopened>>,
    ended: OfThisProcess<Mutex<Receiver<Answer>>>,
    /// By their numbers: those that were opened, kept or refused.
    opened: Vec<Option<Result<Opened, String>>>,
}

type Answer = (usize, Result<Opened, OpenError>);

impl Opening {
    /// Begins to open those that are not kept.
    fn start(running: &Arc<Running>, names: &[Name]) -> PyResult<Self> {
        let mut opened = Vec::with_capacity(names.len());
        let mut origins = Vec::new();
        let mut most = THREADS_OF_PATHS;
        for (number, (name, version)) in names.iter().enumerate() {
            let origin = Origin::of(name.clone(), version.clone());
            // Another file may have a path by now, and another object an address whose announced
            // openings are over; a listed version is opened without a question.
            let kept = origin.asks().then(|| Key::Name(name.clone()));
            let kept = kept.and_then(|key| running.announced.get(&key));
            let kept = kept.filter(|kept| kept.opens > 0);
            opened.push(kept.map(|kept| Ok((kept.reader, kept.source))));
            if opened[number].is_none() {
                if origin.asks() {
                    most = THREADS_MAX;
                }
                origins.push((number, origin));
            }
        }
        let (send, ended) = channel();
        let threads = most.min(origins.len());
        let unopened = Arc::new(Unopened {
            origins,
            ahead: AHEAD_MAX.min(Announced::files_max()).max(1),
            turn: Mutex::default(),
            moved: Condvar::new(),
        });
        for started in 0..threads {
            let (running, unopened, send) = (running.clone(), unopened.clone(), send.clone());
            let work = move || open_in_turn(&running, &unopened, &send);
            let thread = thread::Builder::new().name("forerun-open".into());
            // With fewer threads it takes longer.
            if let Err(error) = thread.spawn(work)
                && started == 0
            {
                return Err(error.into());
            }
        }
        Ok(Self {
            unopened: OfThisProcess::new(unopened),
            ended: OfThisProcess::new(Mutex::new(ended)),
            opened,
        })
    }

    /// The name of this number is announced next.
    fn reach(&self, number: usize) {
        if let Some(unopened) = self.unopened.get() {
            unopened.reach(number);
        }
    }

    /// Waits for this one.
    fn wait(&mut self, py: Python<'_>, number: usize) -> PyResult<()> {
        while self.opened[number].is_none() {
            let Some(ended) = self.ended.get() else {
                // The parent's: a child drops none of them.
                mem::forget(mem::take(&mut self.opened));
                return Err(forked_amid());
            };
            let answer = released(py, || {
                let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.recv_timeout(SIGNALS_EVERY)
            })?;
            match answer {
                Ok((number, answer)) => {
                    let answer = answer.map_err(|error| errors::opening(error).to_string());
                    self.opened[number] = Some(answer);
                }
                Err(RecvTimeoutError::Timeout) if is_main_thread() => py.check_signals()?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "the opening ended without a result",
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(unopened) = self.unopened.get() {
            unopened.end();
        }
    }
}

/// Without Python code.
fn open_in_turn(running: &Arc<Running>, unopened: &Unopened, ended: &Sender<Answer>) {
    while let Some((number, origin)) = unopened.take() {
        if ended.send((*number, origin.open(running))).is_err() {
            return;
        }
    }
}

/// The fate of an order's places.
#[derive(Default)]
struct Outcome {
    taken: usize,
    is_full: bool,
    not_opened: Option<String>,
    behind_the_end: Option<String>,
}

/// Announces an order; how many of its places were taken.
///
/// # Errors
/// A place that is none; the exception of a signal's handler, or of a warning.
pub(crate) fn announce(engine: &Engine, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = given.py();
    let order = Order::of(engine, given)?;
    let running = engine.running()?;
    tidy(py, &running)?;
    let opening = Opening::start(&running, &order.names)?;
    let outcome = all_of(py, &running, &order, opening)?;
    let taken = outcome.taken;
    // The last ones close files, which may wait.
    let ledger = released(py, || {
        drop(order);
        running.driver.ledger_as_reported()
    })?;
    warn(py, &running, &outcome, &ledger)?;
    released(py, || drop(running))?;
    Ok(taken)
}

/// Announces in order, as files are opened.
fn all_of(
    py: Python<'_>,
    running: &Arc<Running>,
    order: &Order,
    mut opening: Opening,
) -> PyResult<Outcome> {
    let mut outcome = Outcome::default();
    let mut batch: Vec<(&Place, Opened, Option<Key>)> = Vec::new();
    let room = Announced::files_max();
    let mut begins = released(py, || running.driver.ledger_as_reported().hints_open == 0)?;
    for place in &order.places {
        let (opened, key) = match &place.of {
            Of::File(reader, key) => ((reader.clone(), None), key.clone()),
            Of::Name(number) => {
                let (name, _) = &order.names[*number];
                let key = Key::Name(name.clone());
                let is_kept = running.announced.get(&key).is_some();
                if !is_kept && running.announced.len() + batch.len() >= room {
                    hand_in(py, running, &mut batch, &mut outcome)?;
                    if running.announced.len() >= room {
                        outcome.is_full = true;
                        break;
                    }
                }
                opening.reach(*number);
                if opening.opened[*number].is_none() {
                    // Open files need not wait for others, but for the longest of the first.
                    if !begins || batch.len() >= DISORDER {
                        begins = false;
                        hand_in(py, running, &mut batch, &mut outcome)?;
                    }
                    if outcome.is_full {
                        break;
                    }
                    opening.wait(py, *number)?;
                }
                match &opening.opened[*number] {
                    Some(Ok(opened)) => (opened.clone(), Some(key)),
                    refused => {
                        // It counts as taken behind the places before it.
                        hand_in(py, running, &mut batch, &mut outcome)?;
                        if outcome.is_full {
                            break;
                        }
                        outcome.taken += 1;
                        if let (Some(Err(error)), None) = (refused, &outcome.not_opened) {
                            outcome.not_opened = Some(error.clone());
                        }
                        continue;
                    }
                }
            }
        };
        // An empty file has no place but its beginning.
        if place.offset > 0 && place.offset >= opened.0.size() && outcome.behind_the_end.is_none() {
            let (offset, size) = (place.offset, opened.0.size());
            outcome.behind_the_end = Some(format!("offset {offset} in a file of {size} bytes"));
        }
        batch.push((place, opened, key));
    }
    if !outcome.is_full {
        hand_in(py, running, &mut batch, &mut outcome)?;
    }
    released(py, || drop(opening))?;
    Ok(outcome)
}

/// Announces the files that are open by now, and keeps them.
fn hand_in(
    py: Python<'_>,
    running: &Arc<Running>,
    batch: &mut Vec<(&Place, Opened, Option<Key>)>,
    outcome: &mut Outcome,
) -> PyResult<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let mut some = std::mem::take(batch);
    let (taken, last) = released(py, || {
        if running.driver.ledger_as_reported().hints_open == 0 {
            longest_first(&mut some);
        }
        let places = some.iter();
        let places = places.map(|(place, (reader, _), _)| (&**reader, place.offset, place.length));
        let taken = running.driver.hint(places);
        (taken, running.driver.ledger_as_reported().hints)
    })?;
    let taken = match taken {
        Err(Error::HintsFull { .. }) => 0,
        taken => taken.map_err(errors::of)?,
    };
    outcome.taken += taken;
    outcome.is_full |= taken < some.len();
    // Also those that were not taken: they are announced again.
    let mut before = Vec::new();
    for (_, (reader, source), key) in &some {
        let Some(key) = key else { continue };
        let (reader, source) = (reader.clone(), source.clone());
        let kept = Kept {
            reader,
            source,
            opens: 1,
        };
        before.push(running.announced.keep(key.clone(), kept, last));
    }
    released(py, || drop((before, some)))
}

/// Puts the longest of the first places first: a plan begins, and cuts all its reads into pieces of
/// the length of its first one. A sample of 200 kB behind one of 20 kB would be ten requests. A place of
/// many pieces stays where it is: those behind it would be read long before their turn.
fn longest_first(some: &mut [(&Place, Opened, Option<Key>)]) {
    let length = |(place, (reader, _), _): &(&Place, Opened, Option<Key>)| {
        let left = reader.size().saturating_sub(place.offset);
        left.min(place.length)
    };
    let near = some.iter().take(DISORDER).enumerate();
    let near = near.filter(|(at, one)| *at == 0 || length(one) <= DISORDER as u64 * PIECE_MAX);
    // Of equal ones the first.
    let longest = near.rev().max_by_key(|(_, one)| length(one).min(PIECE_MAX));
    if let Some((at, _)) = longest {
        some[..=at].rotate_right(1);
    }
}

/// Lets go of files whose announced reads are over.
///
/// # Errors
/// `SystemExit` at the end of the process.
pub(crate) fn tidy(py: Python<'_>, running: &Arc<Running>) -> PyResult<()> {
    if running.announced.len() == 0 {
        return Ok(());
    }
    let ledger = released(py, || running.driver.ledger_as_reported())?;
    let over = running.announced.over(&ledger, Instant::now());
    released(py, || drop(over))
}

/// Warns of places that come to nothing, once for each reason.
fn warn(py: Python<'_>, running: &Running, outcome: &Outcome, ledger: &Ledger) -> PyResult<()> {
    let announced = &running.announced;
    let (dropped, was_closed) = announced.dropped(ledger);
    let why = match was_closed {
        true => "a file was closed before they were read",
        false => "a file changed, or the memory was needed for other reads",
    };
    let dropped = (dropped > 0).then(|| format!("{dropped} pieces were dropped: {why}"));
    let texts = [
        (Reason::NotOpened, &outcome.not_opened),
        (Reason::BehindTheEnd, &outcome.behind_the_end),
        (Reason::Dropped, &dropped),
    ];
    for (reason, text) in texts {
        let Some(text) = text else { continue };
        if !announced.is_new(reason) {
            continue;
        }
        let begin = match reason {
            Reason::NotOpened => "an announced file cannot be opened",
            Reason::BehindTheEnd => "an announced read begins behind the end of its file",
            Reason::Dropped => "announced reads",
        };
        let text = format!("forerun: {begin}: {text} (said once; Engine.ledger counts them)");
        let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    Ok(())
}
