//! The checks of `forerun doctor`: does this machine have all that forerun needs, and do its mounts work?
//!
//! A check looks at one thing and gives one line, with a remedy where something is missing. All files are looked for
//! below the root of a [`Machine`], so a test hands in a made-up `/proc`, `/etc` and `/dev`. A path that may hang (a
//! mount point, a source) is never touched here: a [`probe`] in a process of its own touches it, and has a time limit.
//!
//! ```text
//! ok    kernel       Linux 6.18.5
//! fail  fuse         /dev/fuse is not there
//!                    -> modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN
//! ```
//!
//! | module | checks |
//! | --- | --- |
//! | [`system`] | kernel, FUSE, rights, log, clock, space |
//! | [`limits`] | descriptors, address space, memory |
//! | [`services`] | units of systemd, fstab |
//! | [`installed`] | versions, journals |
//! | [`watching`] | what `forerun watch` needs |
//! | [`mounts`] | mounts and their sources |
//! | [`bundle`] | no check: all of it as a text for a bug report |

pub mod bundle;
mod installed;
mod limits;
mod machine;
pub mod mounts;
pub mod probe;
mod services;
mod system;
mod watching;

use std::fmt::Write as _;

use serde::Serialize;

pub use self::machine::{Machine, Space};
use self::mounts::Found;
use crate::terminal::wrapped;

/// The result of a check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// A part of forerun does not work, or not as well as it could.
    Warn,
    /// Mounts cannot begin, or one does not work.
    Fail,
}

impl Verdict {
    /// As it stands at the beginning of a line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// A check and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// Its name, which does not change from one version to the next.
    pub check: &'static str,
    /// The result.
    pub verdict: Verdict,
    /// The observation.
    pub found: String,
    /// The remedy; none where nothing is wrong.
    pub remedy: Option<String>,
}

impl Check {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Warn,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(check, found, remedy)
        }
    }
}

/// All checks of a machine and of these mounts, in the order in which they are printed.
#[must_use]
pub fn examine(machine: &Machine, found: &[Found]) -> Vec<Check> {
    let mut checks = installed::checks(machine);
    checks.extend(system::checks(machine));
    checks.extend(limits::checks(machine));
    checks.extend(services::checks(machine));
    checks.extend(watching::checks(machine));
    checks.extend(mounts::checks(found));
    checks
}

/// Lines for people: verdict, check and observation; the remedy below. They are wrapped to a terminal's columns.
#[must_use]
pub fn as_text(checks: &[Check], columns: Option<u16>) -> String {
    let width = columns.map_or(usize::MAX, |columns| usize::from(columns).max(40));
    let mut text = String::new();
    let mut put = |first: &str, words: &str| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        for (at, line) in wrapped(&words, width - INDENT).iter().enumerate() {
            let before = if at == 0 { first } else { "" };
            let _ = writeln!(text, "{before:INDENT$}{line}");
        }
    };
    for check in checks {
        let (verdict, name) = (check.verdict.name(), check.check);
        put(&format!("{verdict:<6}{name}"), &check.found);
        if let Some(remedy) = &check.remedy {
            put("", &format!("-> {remedy}"));
        }
    }
    text
}

/// Where observations begin.
const INDENT: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_words_in_a_terminal_alone() {
        let found = "/dev/log is not there: lines of a mount in the background are lost";
        let checks = [Check::warn("log", found, "start a syslog daemon")];
        let whole = format!(
            "warn  log          {found}\n{:19}-> start a syslog daemon\n",
            ""
        );
        assert_eq!(as_text(&checks, None), whole);
        let narrow = as_text(&checks, Some(80));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        assert!(
            narrow.contains("are\n                   lost\n"),
            "{narrow}"
        );
    }
}
