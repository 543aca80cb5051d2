//! Checks of mounts and of their sources.
//!
//! Mounts are found in the kernel's list, which answers whatever hangs. Of each three are asked at once, each with a
//! time limit: its control socket, its mount point and its source, the last two by [probes](super::probe).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use forerun_core::{Bytes, Nanos};
use rustix::io::Errno;

use super::installed::VERSION;
use super::probe::{Answered, Probe};
use super::{Check, Machine};
use crate::failure::Failure;
use crate::files::plain;
use crate::mount::control::{Answer, Question, ask_within};
use crate::mount::fs::passthrough::Mode;
use crate::mount::point;
use crate::mount::report::{Limits, Report};
use crate::quantity::{rough_duration, size};

/// Time limit of all answers together.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// Time limit of a second question to a daemon that answered the first.
const SECOND: Duration = Duration::from_millis(300);

/// A source that takes longer to answer is slow: a server nearby takes milliseconds.
const SLOW: Duration = Duration::from_millis(300);

/// A mount and its answers.
#[derive(Debug)]
pub struct Found {
    /// Its mount point.
    pub mountpoint: PathBuf,
    /// Its source.
    pub source: PathBuf,
    /// The mount point's answer.
    pub of_mountpoint: Answered,
    /// The source's answer; none of an address, and of a path that the kernel shows in part.
    pub of_source: Option<Answered>,
    /// The daemon's answer.
    pub report: Option<Report>,
    /// Its limits.
    pub limits: Option<Limits>,
}

/// The mounts of the machine, or the one that is named.
///
/// # Errors
/// The kernel's list cannot be read, or has no mount where one was named.
pub fn find(machine: &Machine, named: Option<&Path>) -> Result<Vec<Found>, Failure> {
    let path = machine.path("/proc/self/mountinfo");
    let list = fs::read(&path).map_err(|e| Failure::unusable(&path, plain(&e)))?;
    let mut mounts = point::ours_in(&list);
    if let Some(named) = named {
        let path = one_of(machine, &mounts, named)?;
        mounts.retain(|(mountpoint, _)| *mountpoint == path);
        // Of several on one path the last one is seen.
        mounts.drain(..mounts.len() - 1);
    }
    let (tell, reports) = channel();
    let sockets = machine.sockets.clone();
    let ask = move || {
        let with_limits = |(socket, report): (PathBuf, Report)| {
            let limits = match ask_within(&socket, &Question::Limits, SECOND) {
                Ok(Answer::Limits(limits)) => Some(limits),
                _ => None,
            };
            (PathBuf::from(&report.mountpoint), (report, limits))
        };
        let running = sockets.running().into_iter().map(with_limits);
        tell.send(running.collect::<HashMap<_, _>>())
    };
    let _ = thread::Builder::new().spawn(ask);
    let begin = |path: &Path| Probe::begin(&machine.program, path);
    let probes: Vec<_> = mounts
        .into_iter()
        .map(|(mountpoint, source)| {
            let of_source = source.is_absolute().then(|| begin(&source));
            (begin(&mountpoint), of_source, mountpoint, source)
        })
        .collect();
    let mut reports = reports.recv_timeout(PATIENCE).unwrap_or_default();
    let found = |(of_mountpoint, of_source, mountpoint, source): (Probe, Option<Probe>, _, _)| {
        let (report, limits) = reports.remove(&mountpoint).unzip();
        Found {
            of_mountpoint: of_mountpoint.answer(),
            of_source: of_source.map(|probe| probe.answer()),
            mountpoint,
            source,
            report,
            limits: limits.flatten(),
        }
    };
    Ok(probes.into_iter().map(found).collect())
}

/// The mount point of a name: first by the name alone, then by its path without links, which may hang.
fn one_of(
    machine: &Machine,
    mounts: &[(PathBuf, PathBuf)],
    named: &Path,
) -> Result<PathBuf, Failure> {
    let is_one = |path: &PathBuf| mounts.iter().any(|(mountpoint, _)| mountpoint == path);
    let absolute = std::path::absolute(named).map_err(|e| Failure::unusable(named, plain(&e)))?;
    let absolute: PathBuf = absolute.components().collect();
    if is_one(&absolute) {
        return Ok(absolute);
    }
    match Probe::begin(&machine.program, &absolute).answer() {
        Answered::After(_, real) if is_one(&real) => Ok(real),
        Answered::Hangs => Err(Failure::broken(
            named,
            "does not answer, and is no mount of forerun",
        )),
        Answered::Error(error) if error != Errno::NOTCONN => {
            Err(Failure::unusable(named, plain(&error.into())))
        }
        _ => Err(Failure::unusable(named, "no mount of forerun is here")),
    }
}

/// Names of mounts that one line has.
const NAMED_MAX: usize = 3;

/// Checks of all. A machine of many users has many mounts that this one can say nothing of: they have a line together.
pub(super) fn checks(found: &[Found]) -> Vec<Check> {
    let mut checks: Vec<_> = found.iter().flat_map(of_one).collect();
    let of = |foreign| -> Vec<String> {
        let mounts = found.iter().filter(|one| foreign_of(one) == Some(foreign));
        mounts
            .map(|one| one.mountpoint.display().to_string())
            .collect()
    };
    let others = of(Foreign::OtherUser);
    match others.as_slice() {
        [] => {}
        [point] => checks.push(Check::ok("mount", format!("{point}: of another user"))),
        _ => {
            let all = format!("{} of other users: {}", others.len(), first(&others));
            checks.push(Check::ok("mount", all));
        }
    }
    let silent = of(Foreign::Silent);
    let why = match silent.as_slice() {
        [] => return checks,
        [point] => format!("{point}: works, and no control socket of this user answers for it"),
        _ => format!(
            "{} work, and no control socket of this user answers for them: {}",
            silent.len(),
            first(&silent)
        ),
    };
    let remedy =
        "ask as the user who mounted it, or name the socket of its --control to `forerun top`";
    checks.push(Check::warn("mount", why, remedy));
    checks
}

/// The first of these names, and how many more there are.
fn first(names: &[String]) -> String {
    let shown = &names[..names.len().min(NAMED_MAX)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Mounts of which this user can learn nothing, though nothing is wrong with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Foreign {
    /// Its user has not let others in.
    OtherUser,
    /// It lets others in, and its control socket is another user's.
    Silent,
}

fn foreign_of(found: &Found) -> Option<Foreign> {
    match &found.of_mountpoint {
        // The mount point need not be looked at then.
        _ if found.of_source == Some(Answered::Hangs) => None,
        Answered::Error(Errno::ACCESS | Errno::PERM) => Some(Foreign::OtherUser),
        Answered::After(..) if found.report.is_none() => Some(Foreign::Silent),
        _ => None,
    }
}

fn of_one(found: &Found) -> Vec<Check> {
    let mut checks: Vec<_> = source(found).into_iter().collect();
    // A mount whose source hangs does not answer either: one cause is one line.
    if found.of_source != Some(Answered::Hangs) {
        checks.extend(mountpoint(found));
    }
    checks.extend(version(found));
    let Some(report) = &found.report else {
        return checks;
    };
    let point = found.mountpoint.display();
    if let Some(error) = &report.journal_error {
        let remedy = "make room or name another file; the mount goes on without its journal";
        checks.push(Check::fail("journal", format!("{point}: {error}"), remedy));
    }
    let record = report.record.as_ref();
    if let Some(error) = record.and_then(|record| record.error.as_ref()) {
        let remedy = "make room or name another file; the mount goes on without its record";
        checks.push(Check::fail("record", format!("{point}: {error}"), remedy));
    }
    if report.passthrough.mode == Mode::Always && !report.passthrough.possible {
        checks.push(Check::warn(
            "passthrough",
            format!("{point}: --passthrough always, and it is not possible"),
            "it needs root, Linux 6.9 and a source that lies on no other file system",
        ));
    }
    checks
}

fn source(found: &Found) -> Option<Check> {
    let (source, point) = (found.source.display(), found.mountpoint.display());
    Some(match found.of_source.as_ref()? {
        Answered::Hangs => Check::fail(
            "source",
            format!("{source}, which is mounted on {point}, does not answer within 1 s"),
            format!(
                "look after its disk or server; `forerun umount --lazy {point}` ends the mount"
            ),
        ),
        // A stranger need not see it.
        Answered::Error(Errno::ACCESS | Errno::PERM) => return None,
        Answered::Error(error) => Check::fail(
            "source",
            format!(
                "{source}, which is mounted on {point}: {}",
                plain(&(*error).into())
            ),
            format!("bring it back, or `forerun umount {point}`"),
        ),
        Answered::After(time, _) if *time > SLOW => Check::warn(
            "source",
            format!(
                "{source} took {} to answer",
                rough_duration(Nanos(time.as_nanos() as u64))
            ),
            "each new name costs the mount as long: look after its disk or server",
        ),
        Answered::After(..) | Answered::Unknown(_) => return None,
    })
}

/// The check of its mount point; none of a mount that is [`Foreign`].
fn mountpoint(found: &Found) -> Option<Check> {
    let point = found.mountpoint.display();
    Some(match &found.of_mountpoint {
        Answered::Error(Errno::NOTCONN | Errno::CONNABORTED) => Check::fail(
            "mount",
            format!("{point}: its daemon has ended (Transport endpoint is not connected)"),
            format!("mount it again, or `forerun umount {point}`; the system's log may say why"),
        ),
        Answered::Error(Errno::ACCESS | Errno::PERM) => return None,
        Answered::Error(error) => Check::fail(
            "mount",
            format!("{point}: {}", plain(&(*error).into())),
            format!("`forerun umount {point}`, and mount it again"),
        ),
        Answered::Hangs => Check::fail(
            "mount",
            format!("{point}: no answer within 1 s"),
            format!("is its daemon stopped? `forerun umount --lazy {point}` takes it off its path"),
        ),
        Answered::Unknown(why) => Check::warn(
            "mount",
            format!("{point}: not looked at: {why}"),
            "ask again when fewer programs run",
        ),
        Answered::After(..) => answering(found)?,
    })
}

fn answering(found: &Found) -> Option<Check> {
    let (source, point) = (found.source.display(), found.mountpoint.display());
    let up = rough_duration(Nanos(found.report.as_ref()?.elapsed_ns));
    let limits = found.limits.as_ref();
    let memory =
        limits.map(|limits| format!(", at most {}", size(Bytes(limits.memory_limit_bytes))));
    let memory = memory.unwrap_or_default();
    Some(Check::ok(
        "mount",
        format!("{point}: {source}, up {up}{memory}"),
    ))
}

/// The daemon of a mount is the program that began it, however often it was replaced since.
fn version(found: &Found) -> Option<Check> {
    let limits = found.limits.as_ref()?;
    let point = found.mountpoint.display();
    let theirs = match limits.version.as_str() {
        VERSION => return None,
        "" => "an earlier forerun".to_owned(),
        version => format!("forerun {version}"),
    };
    Some(Check::warn(
        "version",
        format!("{point} is served by {theirs}, and this is forerun {VERSION}"),
        format!("`forerun umount {point}`, and mount it again"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn found(number: usize, of_mountpoint: Answered) -> Found {
        Found {
            mountpoint: format!("/m/{number}").into(),
            source: "/data".into(),
            of_mountpoint,
            of_source: None,
            report: None,
            limits: None,
        }
    }

    fn lines(found: &[Found]) -> Vec<(Verdict, String)> {
        let checks = checks(found).into_iter();
        checks.map(|check| (check.verdict, check.found)).collect()
    }

    #[test]
    fn mounts_of_other_users_have_a_line_together() {
        use Verdict::{Fail, Ok, Warn};
        let refused = |number| found(number, Answered::Error(Errno::ACCESS));
        let silent = |number| {
            let real = format!("/m/{number}").into();
            found(number, Answered::After(Duration::ZERO, real))
        };
        let dead = |number| found(number, Answered::Error(Errno::NOTCONN));
        for (mounts, verdict, line) in [
            (vec![refused(1)], Ok, "/m/1: of another user"),
            (
                (1..4).map(refused).collect(),
                Ok,
                "3 of other users: /m/1, /m/2, /m/3",
            ),
            (
                (1..41).map(refused).collect(),
                Ok,
                "40 of other users: /m/1, /m/2, /m/3 and 37 more",
            ),
            (
                vec![silent(1)],
                Warn,
                "/m/1: works, and no control socket of this user answers for it",
            ),
            (
                (1..6).map(silent).collect(),
                Warn,
                "5 work, and no control socket of this user answers for them: /m/1, /m/2, /m/3 and 2 more",
            ),
        ] {
            assert_eq!(lines(&mounts), [(verdict, line.to_owned())]);
        }
        let mixed = [
            dead(1),
            refused(2),
            silent(3),
            dead(4),
            refused(5),
            silent(6),
        ];
        let verdicts: Vec<Verdict> = lines(&mixed).into_iter().map(|(it, _)| it).collect();
        assert_eq!(verdicts, [Fail, Fail, Ok, Warn]);
        let mut hangs = silent(1);
        hangs.of_source = Some(Answered::Hangs);
        assert_eq!(lines(&[hangs])[0].0, Fail);
    }
}
