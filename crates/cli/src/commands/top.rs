//! `forerun top`: a running mount in the terminal, once a second.
//!
//! Asks the control socket, computes rates from two answers, and has the [screen] drawn. A
//! mount that ends while it is watched ends the command. With `--once` one screen is printed as
//! text, with rates since the mount began.

mod rates;
mod screen;

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};

use self::rates::Rates;
use crate::args::Top;
use crate::failure::Failure;
use crate::mount::control::{Answer, Question, ask};
use crate::mount::report::Report;

/// How long rates are taken over: shorter ones jump with every window.
const PERIOD: Duration = Duration::from_secs(1);

/// Columns and lines of the screen that is printed as text.
const TEXT_SIZE: (u16, u16) = (100, 24);

/// Runs the command.
///
/// # Errors
/// Nobody listens, or the output is no terminal.
pub fn run(args: &Top, out: &mut dyn Write) -> Result<(), Failure> {
    let report = stats(&args.socket)?;
    if args.once {
        let rates = Rates::since_start(&report);
        let text = screen::as_text(&report, &rates, TEXT_SIZE);
        return out
            .write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e));
    }
    if !stdout().is_terminal() {
        return Err(Failure::Usage("top needs a terminal, or --once".into()));
    }
    let mut terminal = ratatui::init();
    let watched = watch(&args.socket, report, &mut |report, rates| {
        let drawn = terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(report, rates, area, frame.buffer_mut());
        });
        drawn.map(drop).map_err(|e| Failure::output(&e))
    });
    ratatui::restore();
    watched
}

/// Shows report after report until the user has seen enough.
fn watch(
    socket: &Path,
    first: Report,
    show: &mut dyn FnMut(&Report, &Rates) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut before = first;
    let mut rates = Rates::since_start(&before);
    loop {
        show(&before, &rates)?;
        if wants_to_leave(PERIOD)? {
            return Ok(());
        }
        let now = stats(socket)?;
        rates = Rates::between(&before, &now);
        before = now;
    }
}

/// Waits; whether the user asked to leave meanwhile.
fn wants_to_leave(period: Duration) -> Result<bool, Failure> {
    let broken = |e: std::io::Error| Failure::Run(format!("the terminal: {e}"));
    let end = Instant::now() + period;
    while event::poll(end.saturating_duration_since(Instant::now())).map_err(broken)? {
        match event::read().map_err(broken)? {
            Event::Key(key) if leaves(key) => return Ok(true),
            // The size changed: draw again at once.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

fn leaves(key: KeyEvent) -> bool {
    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

fn stats(socket: &Path) -> Result<Report, Failure> {
    match ask(socket, Question::Stats)? {
        Answer::Stats(report) => Ok(*report),
        other => Err(Failure::broken(
            socket,
            format!("not an answer to this: {other:?}"),
        )),
    }
}
