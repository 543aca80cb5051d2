//! `forerun ctl`: asks a running mount or watch, or changes its limits, over its control socket.
//!
//! Prints one JSON object, for people and programs alike. Answers of a mount are defined in
//! [`crate::mount::report`]; lists of announced reads are taken apart in [`hint`].

mod hint;

use std::io::Write;

use serde::Serialize;

use crate::args::{Ctl, Order};
use crate::failure::Failure;
use crate::mount::control::{Answer, Question, ask_as};
use crate::mount::sockets::Sockets;

/// Runs the command.
///
/// # Errors
/// No mount listens, or the request failed.
pub fn run(args: &Ctl, sockets: &Sockets, out: &mut dyn Write) -> Result<(), Failure> {
    let question = match &args.order {
        Order::Hint { list } => return hint::run(&args.mount, list, sockets, out),
        Order::Stats => Question::Stats,
        Order::Limits => Question::Limits,
        Order::Pause => Question::Pause,
        Order::Resume => Question::Resume,
        Order::Set {
            kernel_readahead: Some(bytes),
            ..
        } => Question::SetKernelReadahead { bytes: bytes.0 },
        Order::Set { memory, .. } => Question::SetMemory {
            bytes: memory.unwrap_or_default().0,
        },
    };
    let socket = sockets.find(&args.mount)?;
    match ask_as(&args.mount, &socket, &question)? {
        Answer::Stats(report) => print(&report, out),
        Answer::Limits(limits) => print(&limits, out),
        Answer::Hints(taken) => print(&taken, out),
        Answer::Paused(is_paused) => print(&serde_json::json!({ "is_paused": is_paused }), out),
        Answer::Error(error) => Err(Failure::broken(&args.mount, error)),
        Answer::Refused(why) => Err(Failure::unusable(&args.mount, why)),
    }
}

fn print(value: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::output(&e.into()))?;
    // JSON has escaped all control characters but these.
    let later = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    let escaped = |c: char| match later(c) {
        true => format!("\\u{:04x}", c as u32),
        false => c.into(),
    };
    let text: String = text.chars().map(escaped).collect();
    writeln!(out, "{text}").map_err(|e| Failure::output(&e))
}
