//! Progress bars on standard error, for people.
//!
//! Used by `profile` and `bench`. Nothing is drawn when standard error is no terminal, so logs and
//! pipes stay clean; nothing a program should read goes through here.

use std::fmt::Write;
use std::io::{IsTerminal, stderr};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Redraws a second: enough to look alive, few enough to cost the readers nothing.
const REDRAWS_PER_SECOND: u8 = 5;

/// Requests of a trace between two steps of a bar: reading must not wait for it.
pub const REQUESTS_PER_STEP: u64 = 1 << 16;

/// A bar that counts steps.
#[must_use]
pub fn steps(what: &str, total: u64) -> ProgressBar {
    bar(what, Some(total), STEPS)
}

const STEPS: &str = "{msg} [{bar:40}] {pos}/{len} {eta}";

/// A bar without an end gets one, and begins again: now it is known how much there is to do.
pub fn begin_again(bar: &ProgressBar, total: u64) {
    // In this order: a bar of steps without a length would be drawn as 0/0.
    bar.set_length(total);
    bar.set_style(style(STEPS));
    bar.reset();
}

/// A bar whose steps become known by and by gets so many more.
pub fn more(bar: &ProgressBar, steps: u64) {
    bar.set_length(bar.length().unwrap_or(0).saturating_add(steps));
    bar.set_style(style(STEPS));
}

/// A count of steps whose total is not known.
#[must_use]
pub fn steps_without_end(what: &str) -> ProgressBar {
    bar(what, None, "{msg} {human_pos} {rate}")
}

/// A bar that counts bytes; without a total it only shows how many there were.
#[must_use]
pub fn bytes(what: &str, total: Option<u64>) -> ProgressBar {
    let rate = "{decimal_bytes_per_sec}";
    let template = match total {
        Some(_) => {
            format!("{{msg}} [{{bar:40}}] {{decimal_bytes}}/{{decimal_total_bytes}} {rate} {{eta}}")
        }
        None => format!("{{msg}} {{decimal_bytes}} {rate}"),
    };
    bar(what, total, &template)
}

fn bar(what: &str, total: Option<u64>, template: &str) -> ProgressBar {
    // Nothing to do is done before it could be drawn, as 0/0.
    let target = if stderr().is_terminal() && total != Some(0) {
        ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND)
    } else {
        ProgressDrawTarget::hidden()
    };
    ProgressBar::with_draw_target(total, target)
        .with_style(style(template))
        .with_message(what.to_owned())
}

fn style(template: &str) -> ProgressStyle {
    // A template that cannot be parsed would be a slip above; the default style still works.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, text: &mut dyn Write| {
            let _ = write!(text, "{}/s", HumanCount(state.per_sec() as u64));
        })
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_become_known_add_up_and_no_bar_is_0_of_0() {
        let bar = steps_without_end("runs");
        assert_eq!(bar.length(), None);
        more(&bar, 3);
        more(&bar, 4);
        assert_eq!(bar.length(), Some(7));
        assert!(bytes("none", Some(0)).is_hidden());
    }
}
