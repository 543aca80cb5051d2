//! `forerun top`: running mounts and watches in the terminal, once a second.
//!
//! Without a name it shows every one whose socket it finds, one at a time; Tab goes to the next.
//! Asks the control socket, computes rates from two answers, and has the [screen] drawn. A daemon
//! that ends while it is shown is left out, and the last one ends the command; of one that does not answer, or not with a
//! report, the last report stays, and the last line says so and for how long. With `--once` one screen each is printed as
//! text, with the rates of one second, as of `vmstat 1 2` the second line: an average since a mount
//! began says little of one that has run for a week. With `--list` one line a mount.

mod devices;
mod files;
mod rates;
mod screen;
mod view;
mod watched;

use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use self::rates::Rates;
use self::view::{View, Wish};
use crate::args::Top;
use crate::failure::Failure;
use crate::messages::clean;
use crate::mount::control::{Answer, Question, ask_within, is_gone};
use crate::mount::report::Report;
use crate::mount::sockets::Sockets;
use crate::terminal;

/// How long rates are taken over: shorter ones jump with every window.
const PERIOD: Duration = Duration::from_secs(1);

/// Time limit of an answer: keys wait as long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Columns of the screen that is printed as text where there is no terminal, and its lines.
const TEXT_COLUMNS: u16 = 120;
const TEXT_ROWS: u16 = 24;

/// Most characters of a terminal: each takes 48 bytes, and a screen of 8K in the smallest type has half as many.
const CELLS_MAX: u32 = 1 << 20;

/// A mount and where it answers.
type Watched = (PathBuf, Report);

/// A report, and when it came.
struct Seen {
    report: Report,
    at: Instant,
}

impl Seen {
    fn now(report: Report) -> Self {
        let at = Instant::now();
        Self { report, at }
    }
}

/// How many there are, and how one is looked at.
type Shown<'a> = (usize, &'a View);

/// Runs the command.
///
/// # Errors
/// No mount listens, or the output is no terminal.
pub fn run(args: &Top, sockets: &Sockets, out: &mut dyn Write) -> Result<(), Failure> {
    let mounts = mounts(args.mount.as_deref(), sockets)?;
    let text = if args.list {
        screen::list(&mounts)
    } else if args.once {
        once(&mounts)?
    } else if stdout().is_terminal() {
        return watch_all(mounts);
    } else {
        return Err(Failure::Usage(
            "top needs a terminal, --once or --list".into(),
        ));
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// A screen for each mount, with the rates of a second from now on. One that ends meanwhile is left
/// out, unless all do.
fn once(mounts: &[Watched]) -> Result<String, Failure> {
    std::thread::sleep(PERIOD);
    let screen = |(socket, before): &Watched| {
        let now = stats(socket)?;
        let rates = Rates::between(before, &now);
        let columns = terminal::columns().unwrap_or(TEXT_COLUMNS);
        Ok(screen::as_text(&now, &rates, (columns, TEXT_ROWS)))
    };
    let (screens, ended): (Vec<_>, Vec<_>) = mounts.iter().map(screen).partition(Result::is_ok);
    match ended.into_iter().next() {
        Some(Err(end)) if screens.is_empty() => Err(end),
        _ => Ok(screens.into_iter().flatten().collect::<Vec<_>>().join("\n")),
    }
}

/// The mount that is named, or all that run; at least one.
fn mounts(named: Option<&Path>, sockets: &Sockets) -> Result<Vec<Watched>, Failure> {
    if let Some(named) = named {
        let socket = sockets.find(named)?;
        let report = stats(&socket)?;
        return Ok(vec![(socket, report)]);
    }
    sockets.check_named()?;
    let (running, silent) = sockets.look();
    if running.is_empty() {
        if let Some(why) = Sockets::in_silence(&silent) {
            return Err(Failure::Usage(why));
        }
        let folders = sockets.folders();
        return Err(Failure::Usage(format!(
            "no mount or watch of this user runs (none answers in {folders}); one with a --control of its own \
             is named by that socket"
        )));
    }
    Ok(running)
}

fn watch_all(mounts: Vec<Watched>) -> Result<(), Failure> {
    let broken = |e: std::io::Error| Failure::Run(format!("the terminal: {e}"));
    let (columns, rows) = ratatui::crossterm::terminal::size().map_err(broken)?;
    if u32::from(columns) * u32::from(rows) > CELLS_MAX {
        return Err(Failure::Usage(format!(
            "a terminal of {columns} columns and {rows} rows: from 1 to {CELLS_MAX} characters"
        )));
    }
    restore_on_signals().map_err(broken)?;
    let mut terminal = ratatui::init();
    let watched = watch(mounts, &mut |report, rates, shown| {
        let drawn = terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(report, rates, Some(shown), area, frame.buffer_mut());
        });
        drawn.map(drop).map_err(|e| Failure::output(&e))
    });
    ratatui::restore();
    watched
}

/// A signal that ends the command leaves the terminal as it was.
fn restore_on_signals() -> std::io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let wait = move || {
        for signal in signals.forever() {
            ratatui::restore();
            // The terminal that was drawn on is not dropped, which shows it.
            let _ = execute!(stdout(), Show);
            let _ = emulate_default_handler(signal);
        }
    };
    let name = "forerun-signals".to_owned();
    std::thread::Builder::new().name(name).spawn(wait).map(drop)
}

/// Shows report after report until the user has seen enough. A daemon that ends is left out, unless all do.
fn watch(
    mounts: Vec<Watched>,
    show: &mut dyn FnMut(&Report, &Rates, Shown<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mounts = mounts.into_iter();
    let mut mounts: Vec<(PathBuf, Seen)> = mounts
        .map(|(socket, report)| (socket, Seen::now(report)))
        .collect();
    let (mut at, mut view) = (0, View::default());
    let mut rates = Rates::since_start(&mounts[at].1.report);
    let mut next = Instant::now() + PERIOD;
    loop {
        show(&mounts[at].1.report, &rates, (mounts.len(), &view))?;
        let files = mounts[at].1.report.open_files.len();
        let before = match wish(next, &mut view, files)? {
            Wish::Redraw => continue,
            Wish::Leave => return Ok(()),
            Wish::Next => {
                at = (at + 1) % mounts.len();
                None
            }
            Wish::Nothing => Some(mounts[at].0.clone()),
        };
        let asked = Instant::now();
        let ask = |socket: &Path| stats(socket).map(Seen::now);
        let now = running(&mut mounts, &mut at, &ask, &is_gone).map_err(|last| {
            let mountpoint = Path::new(&last.report.mountpoint);
            Failure::broken(mountpoint, "has ended")
        })?;
        let is_same = before.as_ref() == Some(&mounts[at].0);
        let (socket, last) = &mut mounts[at];
        rates = match &now {
            Ok(now) if is_same => Rates::between(&last.report, &now.report),
            Ok(now) => Rates::since_start(&now.report),
            Err(_) if is_same => rates,
            Err(_) => Rates::since_start(&last.report),
        };
        match now {
            Ok(now) => (view.silence, *last) = (None, now),
            Err(failure) => {
                let text = failure.to_string();
                view.silence = Some(silence(socket, last.at.elapsed(), asked.elapsed(), &text));
            }
        }
        next = Instant::now() + PERIOD;
    }
}

/// That a daemon has given no report for so long: it did not answer in time, or this failure came within `took`.
fn silence(socket: &Path, time: Duration, took: Duration, failure: &str) -> String {
    let seconds = time.as_secs();
    if took >= PATIENCE {
        return format!("no answer for {seconds} s");
    }
    let socket = format!("{}: ", socket.display());
    let why = failure.strip_prefix(&socket).unwrap_or(failure);
    clean(&format!("no report for {seconds} s: {why}")).replace('\n', " ")
}

/// The report of the daemon at this place, or why it gives none; those that have ended are taken out.
///
/// # Errors
/// The last one has ended: its last report.
fn running<R>(
    mounts: &mut Vec<(PathBuf, R)>,
    at: &mut usize,
    ask: &dyn Fn(&Path) -> Result<R, Failure>,
    is_gone: &dyn Fn(&Path) -> bool,
) -> Result<Result<R, Failure>, R> {
    loop {
        match ask(&mounts[*at].0) {
            Err(_) if is_gone(&mounts[*at].0) => {}
            answer => return Ok(answer),
        }
        let (_, last) = mounts.remove(*at);
        if mounts.is_empty() {
            return Err(last);
        }
        *at %= mounts.len();
    }
}

/// Waits for a key until it is time for the next report.
fn wish(end: Instant, view: &mut View, files: usize) -> Result<Wish, Failure> {
    let broken = |e: std::io::Error| Failure::Run(format!("the terminal: {e}"));
    while event::poll(end.saturating_duration_since(Instant::now())).map_err(broken)? {
        let wish = match event::read().map_err(broken)? {
            Event::Key(key) => view.press(key, files),
            Event::Resize(..) => Wish::Redraw,
            _ => Wish::Nothing,
        };
        if wish != Wish::Nothing {
            return Ok(wish);
        }
    }
    Ok(Wish::Nothing)
}

fn stats(socket: &Path) -> Result<Report, Failure> {
    match ask_within(socket, &Question::Stats, PATIENCE)? {
        Answer::Stats(mut report) => {
            for queue in &mut report.queues {
                queue.device = view::device(&queue.device, Path::new("/sys"));
            }
            Ok(*report)
        }
        other => Err(Failure::broken(
            socket,
            format!("not an answer to this: {other:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_daemon_that_ends_is_left_out_and_the_last_one_is_named() {
        let mut mounts: Vec<(PathBuf, &str)> =
            ["a", "b", "c"].map(|name| (name.into(), name)).into();
        let mut at = 2;
        let answers = |running: &'static [&'static str]| {
            move |path: &Path| {
                let found = running.iter().copied().find(|name| path == Path::new(name));
                found.ok_or_else(|| Failure::unusable(path, "no mount listens"))
            }
        };
        let is_gone = &|_: &Path| true;
        let mut ask = |running_now| {
            let asked = running(&mut mounts, &mut at, &answers(running_now), is_gone);
            asked.map(Result::ok)
        };
        assert_eq!(ask(&["a"]), Ok(Some("a")));
        assert_eq!(ask(&["b"]), Ok(Some("b")));
        assert_eq!(ask(&[]), Err("b"));
        let mut mounts: Vec<(PathBuf, &str)> =
            ["a", "b", "c"].map(|name| (name.into(), name)).into();
        let mut at = 0;
        let of = running(&mut mounts, &mut at, &answers(&["b", "c"]), is_gone);
        let of = of.map(Result::ok);
        assert_eq!((of, at, mounts.len()), (Ok(Some("b")), 0, 2));
    }

    #[test]
    fn a_daemon_that_does_not_answer_stays_and_is_asked_once() {
        let mut mounts: Vec<(PathBuf, &str)> = ["a", "b"].map(|name| (name.into(), name)).into();
        let mut at = 1;
        let asked = Cell::new(0);
        let ask = |path: &Path| {
            asked.set(asked.get() + 1);
            Err(Failure::unusable(path, "no answer within 2 s"))
        };
        for times in 1..4 {
            let of = running(&mut mounts, &mut at, &ask, &|_| false);
            let said = of.unwrap().unwrap_err().to_string();
            assert_eq!(said, "b: no answer within 2 s");
            assert_eq!((at, mounts.len()), (1, 2));
            assert_eq!(asked.get(), times);
        }
    }

    #[test]
    fn each_daemon_is_silent_since_its_own_last_report_and_an_answer_of_another_kind_is_shown() {
        let begun = Instant::now();
        let seen = |ago: u64| begun.checked_sub(Duration::from_secs(ago)).unwrap_or(begun);
        let mut mounts: Vec<(PathBuf, Instant)> =
            vec![("a".into(), seen(600)), ("b".into(), seen(2))];
        let ask = |path: &Path| Err(Failure::broken(path, "not an answer:\n\u{1b}[2J"));
        for mut at in [0, 1, 0] {
            let of = running(&mut mounts, &mut at, &ask, &|_| false);
            let failure = of.unwrap().unwrap_err().to_string();
            let (socket, last) = &mounts[at];
            let time = begun.duration_since(*last);
            let seconds = time.as_secs();
            let said = |took| silence(socket, time, took, &failure);
            assert_eq!(said(PATIENCE), format!("no answer for {seconds} s"));
            let why = format!("no report for {seconds} s: not an answer: ?[2J");
            assert_eq!(said(Duration::ZERO), why);
        }
    }
}
