//! The command line of forerun, as a library so that tests and fuzz targets reach its parts.
//!
//! ```text
//! main -> args -> commands/{read, profile, bench, replay, mount, ..} -> forerun-io, forerun-sim
//! ```
//!
//! `args` holds every flag, `commands` one file a command, `failure` the exit codes. The parsers
//! (`quantity`, `emulation`, `profile_file`) and the methods behind a command (`measure`,
//! `bench`, `trial`) do not know the command line. Decisions about reading ahead are none of this
//! crate's: it builds settings, hands them to a driver, and shows the result.

#![forbid(unsafe_code)]

pub mod args;
#[cfg(feature = "files")]
pub mod bench;
pub mod columns;
pub mod commands;
pub mod composition;
pub mod differences;
#[cfg(feature = "mount")]
pub mod doctor;
#[cfg(feature = "files")]
pub mod emulation;
pub mod explain;
pub mod flags;
pub mod lines;
#[cfg(feature = "files")]
pub mod measure;
pub mod messages;
pub mod mistakes;
pub mod papers;
#[cfg(feature = "files")]
pub mod profile_file;
pub mod progress;
pub mod report;
#[cfg(feature = "files")]
pub mod resident;
#[cfg(feature = "files")]
pub mod sources;
#[cfg(feature = "files")]
pub mod stack;
#[cfg(feature = "files")]
pub mod striping;
pub mod sweep;
pub mod terminal;
#[cfg(feature = "mount")]
pub mod trial;
#[cfg(feature = "mount")]
pub mod tune;

use std::io::Write;

use args::{Args, Command};
use environment::Environment;
use failure::Failure;
#[cfg(feature = "mount")]
pub use forerun_mount as mount;
pub use forerun_surface::{environment, estimate, failure, files, quantity, stats};
#[cfg(feature = "mount")]
use mount::sockets::Sockets;

/// Runs a command with its output going to `out`, in any environment.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    run_in(args, &Environment::default(), out)
}

/// Runs a command with its output going to `out`.
///
/// # Errors
/// See [`Failure`].
pub fn run_in(args: &Args, environment: &Environment, out: &mut dyn Write) -> Result<(), Failure> {
    #[cfg(feature = "mount")]
    let sockets = Sockets::of(environment, mount::point::is_ours);
    #[cfg(not(feature = "mount"))]
    let _ = environment;
    match &args.command {
        #[cfg(feature = "files")]
        Command::Read(read) => commands::read::run(read, out),
        #[cfg(feature = "files")]
        Command::Layout(layout) => commands::layout::run(layout, out),
        #[cfg(feature = "files")]
        Command::Profile(profile) => commands::profile::run(profile, out),
        #[cfg(feature = "files")]
        Command::Bench(bench) => commands::bench::run(bench, out),
        Command::Replay(replay) => commands::replay::run(replay, out),
        Command::Simulate(simulate) => commands::simulate::run(simulate, out),
        Command::Sweep(sweep) => commands::sweep::run(sweep, out),
        Command::Rerun(rerun) => commands::sweep::rerun(rerun, out),
        Command::Report(report) => commands::report::run(report, out),
        Command::Advise(advise) => commands::advise::run(advise, out),
        Command::Trace(trace) => commands::trace::run(trace, out),
        #[cfg(feature = "mount")]
        Command::Try(args) => commands::trial::run(args, environment, out),
        #[cfg(feature = "mount")]
        Command::Tune(tune) => commands::tune::run(tune, environment, out),
        #[cfg(feature = "mount")]
        Command::Mount(mount) => commands::mount::run(mount, &sockets),
        #[cfg(feature = "mount")]
        Command::Umount(umount) => commands::umount::run(umount),
        #[cfg(feature = "top")]
        Command::Top(top) => commands::top::run(top, &sockets, out),
        #[cfg(feature = "mount")]
        Command::Ctl(ctl) => commands::ctl::run(ctl, &sockets, out),
        #[cfg(feature = "mount")]
        Command::Doctor(doctor) => commands::doctor::run(doctor, environment, &sockets, out),
        #[cfg(feature = "mount")]
        Command::Watch(watch) => commands::watch::run(watch, environment, &sockets, out),
        #[cfg(feature = "install")]
        Command::Completions(completions) => commands::completions::run(completions, out),
        #[cfg(feature = "install")]
        Command::Man(man) => commands::man::run(man, out),
        Command::Explain(explain) => commands::explain::run(explain, out),
        Command::List(list) => commands::list::run(list, out),
        Command::Version(version) => commands::version::run(version, out),
    }
}
