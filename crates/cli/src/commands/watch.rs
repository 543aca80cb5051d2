//! `forerun watch`: the kernel's own readahead, by forerun's depths.
//!
//! Prints what is watched at the start, and an account at the end. The watch itself is [`forerun_watch`]; with
//! `--guardian` this process is the one that looks after its limits.

use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use forerun_baselines::METHODS;
use forerun_core::preset;
use forerun_core::settings::SettingsError;
use forerun_core::spec::Choice;
use forerun_surface::undo::guardian;
use forerun_watch::watch::Account;
use forerun_watch::{FAIR, Report, Wanted, passing};

use crate::args::{Scheduler, Watch};
use crate::composition::name_the_flag;
use crate::environment::Environment;
use crate::estimate::REQUESTS_MIN;
use crate::failure::Failure;
use crate::files;
use crate::mount::background;
use crate::mount::sockets::Sockets;
use crate::quantity::{rough_duration, rough_size};

/// Where records stand.
const FOLDER: &str = "/run/forerun";

/// The depth method in place of the preset's.
const DEPTH: &str = "turn";

/// Runs the command.
///
/// # Errors
/// A path that cannot be watched, or a right that is missing.
pub fn run(
    args: &Watch,
    environment: &Environment,
    sockets: &Sockets,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if args.guardian {
        return guardian::run(&args.paths, args.report_ready, out);
    }
    let begin = || begin(args, environment, sockets);
    if args.report_ready {
        return background::serve(begin, |watch| checked(&watch.run()?));
    }
    if args.background {
        return background::start(std::env::args_os());
    }
    let watch = begin()?;
    if args.until_input_ends {
        watch.end_with_input()?;
    }
    let text = beginning(&args.paths, &watch.accounts(), args.dry_run);
    write(out, &text)?;
    let report = watch.run()?;
    write(out, &ending(&report))?;
    checked(&report)
}

/// The journal that was asked for is not whole, as of a mount.
fn checked(report: &Report) -> Result<(), Failure> {
    let error = report.journal_error.as_ref();
    error.map_or(Ok(()), |error| {
        Err(Failure::Run(format!("journal: {error}")))
    })
}

fn begin(
    args: &Watch,
    environment: &Environment,
    sockets: &Sockets,
) -> Result<forerun_watch::Watch, Failure> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|e| Failure::unusable(path, files::plain(&e)))
    };
    args.paths.iter().try_for_each(|path| check(path))?;
    // A watch in the background leaves the working directory before the first line and after the last record.
    let journal = args.journal.as_deref().map(absolute).transpose()?;
    journal.as_deref().map(files::check_journal).transpose()?;
    let folder = environment.forerun_runtime_dir.as_deref();
    let folder = absolute(folder.map_or(Path::new(FOLDER), Path::new))?;
    let mut settings = preset::default()
        .settings(args.memory)
        .map_err(name_the_flag)?;
    // The kernel serves in order of arrival and gives no slices, so each window is one.
    settings.depth = match &args.depth {
        Some(depth) => depth.clone(),
        None => Choice::parse("depth", METHODS.depth, DEPTH).map_err(SettingsError::from)?,
    };
    forerun_watch::Watch::start(Wanted {
        paths: args.paths.clone(),
        excludes: args.exclude.clone(),
        is_dry: args.dry_run,
        schedules: args.scheduler == Scheduler::Auto,
        seeing: args.seeing,
        settings,
        journal,
        folder,
        guardian: guardian_words(args.report_ready),
        control: args.control.clone(),
        usual_control: match &args.control {
            Some(_) => None,
            None => sockets.name()?,
        },
        metrics: args.metrics,
    })
}

/// A file is neither: all of its file system would be watched for it.
fn check(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() && !found.file_type().is_block_device() => Err(
            Failure::unusable(path, "it is no folder, mount point or block device"),
        ),
        // One that is not there is named by the watch itself.
        _ => Ok(()),
    }
}

/// The words that start a guardian, of a watch in the background or not.
fn guardian_words(in_background: bool) -> Vec<String> {
    let of_daemon = in_background.then_some("--report-ready");
    let words = ["watch", "--guardian"].into_iter().chain(of_daemon);
    words.map(str::to_owned).collect()
}

fn write(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|e| Failure::output(&e))
}

/// The folders that are watched of a file system; none if it is watched whole. A path is on the file system with the
/// longest mount point above it.
fn folders(paths: &[PathBuf], accounts: &[Account], of: &Account) -> Vec<PathBuf> {
    let points = || accounts.iter().map(|account| &account.file_system.point);
    let is_on = |path: &PathBuf| {
        let above = points().filter(|point| path.starts_with(point));
        let nearest = above.max_by_key(|point| point.as_os_str().len());
        nearest == Some(&of.file_system.point)
    };
    let paths = paths
        .iter()
        .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let folders: Vec<PathBuf> = paths.filter(|path| path.is_dir() && is_on(path)).collect();
    match folders.contains(&of.file_system.point) {
        true => Vec::new(),
        false => folders,
    }
}

fn beginning(paths: &[PathBuf], accounts: &[Account], is_dry: bool) -> String {
    let of = |account: &Account| {
        let Account {
            file_system: at,
            limit_kib,
            ..
        } = account;
        let limit = limit_kib.map_or_else(|| "unknown".into(), |kib| format!("{kib} KiB"));
        let (kind, bdi, point) = (&at.kind, &at.bdi, at.point.display());
        let folders = folders(paths, accounts, account);
        let folders: Vec<_> = folders
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let what = match folders.is_empty() {
            true => point.to_string(),
            false => format!("{} on {point}", folders.join(", ")),
        };
        format!("watching {what}: {kind}, bdi {bdi}, readahead {limit}\n")
    };
    let mut text: String = accounts.iter().map(of).collect();
    let file_systems: Vec<_> = accounts.iter().map(|of| of.file_system.clone()).collect();
    for reader in passing::known(&file_systems) {
        text.push_str(&format!("not steered: {reader}\n"));
    }
    text.push_str(match is_dry {
        true => "nothing is set. Ctrl-C ends it\n",
        false => "reads by mapping, io_uring files and kernel threads may not be steered. Ctrl-C ends it\n",
    });
    text
}

fn ending(report: &Report) -> String {
    use std::fmt::Write as _;
    let counts = &report.counts;
    let seconds = report.ran.as_secs_f64();
    let mut text = String::new();
    let mut line = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    let (events, lost, streams) = (counts.events, counts.lost, report.streams.streams);
    line(format!(
        "{seconds:.1} s   events {events} (lost {lost})   streams {streams}"
    ));
    let each = counts.setting.as_secs_f64() * 1e6 / counts.set.max(1) as f64;
    let held = counts.held_most.as_secs_f64() * 1e3;
    let (set, spared, thrashed, back) = (
        counts.set,
        counts.spared,
        report.streams.thrashed,
        report.put_back,
    );
    line(format!(
        "limits set {set}, {each:.0} us each (a descriptor held for {held:.2} ms at most)   \
         spared {spared}   put back at the end {back}   pages lost {thrashed}"
    ));
    let small = &report.small;
    if small.folders > 0 {
        let bytes = rough_size(small.bytes as f64);
        line(format!(
            "small files: {} filled ahead, {bytes}, in {} listed folders   passed over {}   gone before they were read {}",
            small.files, small.folders, small.passed_over, small.lost
        ));
    }
    if report.streams.crowds > 0 {
        let crowds = report.streams.crowds;
        line(format!(
            "scheduler made {FAIR} for many readers {crowds} times"
        ));
    }
    for account in &report.accounts {
        let profile = &account.profile;
        let (cost, rate) = (profile.switching(0.into()), profile.rate(0.into()));
        let (point, cost) = (account.file_system.point.display(), rough_duration(cost));
        let (rate, samples) = (rough_size(rate as f64), account.samples);
        let costs = match samples {
            0 | REQUESTS_MIN.. => format!("{cost} a switch, {rate}/s ({samples} requests)"),
            _ => format!("not enough requests to tell ({samples})"),
        };
        let limit = account
            .limit_kib
            .map_or_else(|| "gone".into(), |kib| format!("{kib} KiB"));
        line(format!("{point}: {costs}   readahead {limit}"));
    }
    let causes = report.causes.most_first();
    let all = causes.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let bytes = report.streams.bytes + counts.unknown_bytes;
    let share = 100.0 * all as f64 / bytes.max(1) as f64;
    line(format!("not steered: {share:.1} % of the bytes read ahead"));
    for (cause, bytes) in causes {
        line(format!("  {:>9}  {cause}", rough_size(bytes as f64)));
    }
    let processor = report.processor.as_secs_f64();
    line(format!("processor {processor:.3} s"));
    text
}
