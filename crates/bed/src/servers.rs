//! `servers`: a real server on a bed, by one command a table.
//!
//! A program that reads files in order is the best case of every readahead. A server has requests
//! of many clients in flight at once, many small files or several runs at a time, and is judged by
//! requests a second and by its slowest answers. Two are compared, on the same disk and in the same
//! memory:
//!
//! ```text
//! servers media    nginx with media clips, wrk asks for them by Zipf's law
//! servers search   Xapian with an index of generated documents, clients query it
//! ```
//!
//! The candidates of a [comparison](crate::compare) are the kernel without a scheduler at each readahead, the kernel with
//! each other scheduler that it has and the first readahead, and forerun. The server is in the memory group, with `forerun
//! mount` where that is the candidate; wrk stands for other machines and is not. Called by the command line; see
//! `docs/SERVERS.md`.

pub mod command;
pub mod media;
mod print;
pub mod search;
pub mod wrk;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bed::Bed;
use crate::compare::side::Side;
use crate::compare::{self, Bench, Candidate, Compared, Figures, Load};
use crate::failure::{At, Failure};
use crate::status::{self, DiskWork};
use crate::{fill, kernel, memory_group, needs};

/// Memory of a server for each client, beside the page cache: nginx copies by 64 KiB; a client of
/// Xapian is a process of 1.6 MB.
const NGINX_BYTES: usize = 64 << 10;
const XAPIAN_BYTES: usize = 2 << 20;

/// Files that this module writes into the state directory.
pub(crate) const WRITTEN: [&str; 6] = [
    media::CONFIGURATION,
    media::LOG,
    media::PID,
    media::REQUESTS,
    media::SCRIPT,
    search::SCRIPT,
];

/// Which server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// nginx with media clips.
    Media,
    /// Xapian.
    Search {
        /// The folder that holds indexes from run to run.
        index: PathBuf,
        /// Number of documents indexed.
        documents: u64,
    },
}

/// A comparison of a server's answers.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The server.
    pub server: Server,
    /// Numbers of clients, memory and time.
    pub compared: Compared,
    /// The kernel's readahead; the first is the default that ratios are to.
    pub read_ahead_kib: Vec<u64>,
    /// The kernel's schedulers; with the first, every readahead is a candidate.
    pub schedulers: Vec<String>,
    /// The preset of forerun.
    pub preset: String,
}

/// Answers to the clients of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answers {
    /// Requests or queries answered.
    pub completed: f64,
    /// In this time.
    pub seconds: f64,
    /// The middle answer's time.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The client with the fewest answers over the mean client.
    pub slowest_per_mean: f64,
    /// Requests that failed.
    pub errors: u64,
}

/// One candidate at one number of clients; medians of the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of clients.
    pub clients: usize,
    /// Requests or queries a second.
    pub per_second: f64,
    /// Each run, in order.
    pub runs_per_second: Vec<f64>,
    /// The figures of every comparison.
    #[serde(flatten)]
    pub figures: Figures,
    /// The middle answer's time.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// Bytes that the disks transferred, a second; none of local disks.
    pub disk_mb_per_second: Option<f64>,
}

/// The comparison, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ServerTable {
    /// The server.
    pub server: Server,
    /// The bed and machine of the measurement.
    pub bed: Bed,
    /// Bytes of the files or the index.
    pub served_bytes: u64,
    /// Memory of either candidate.
    pub memory_bytes: u64,
    /// Whether a memory group held both candidates to it.
    pub is_memory_limited: bool,
    /// Time of one run.
    pub run_seconds: f64,
    /// Runs of each.
    pub runs: u16,
    /// Schedulers that this kernel does not have.
    pub absent_schedulers: Vec<String>,
    /// By clients, then by candidate.
    pub rows: Vec<Row>,
}

/// Makes the bed, measures, undoes the bed. Names each step on `progress`.
///
/// # Errors
/// Candidates that this machine has nothing for; the bed's, a candidate's: nothing is shown then, and the bed is undone.
pub fn run(
    bed: &Bed,
    folder: &Path,
    comparison: &Comparison,
    progress: &mut dyn Write,
) -> Result<ServerTable, Failure> {
    let (server, compared) = (&comparison.server, &comparison.compared);
    check_time(comparison)?;
    needs::check_server(bed, server)?;
    let offered = kernel::all_schedulers();
    let (present, absent) = comparison
        .schedulers
        .iter()
        .cloned()
        .partition::<Vec<_>, _>(|name| offered.is_empty() || offered.contains(name));
    for name in &absent {
        let list = offered.join(", ");
        let text = format!("scheduler {name}: left out, this kernel has {list}");
        writeln!(progress, "{text}").at(folder)?;
    }
    let sides = sides(comparison, &present);
    let mut load = Asked {
        server,
        index: None,
        served_bytes: 0,
    };
    compare::check(bed, compared, &sides, load.bytes_of_each(), &offered)?;
    load.index = search::ready(server, bed.files.seed, progress)?;
    let candidates = compare::run(bed, folder, compared, &sides, &mut load, progress)?;
    Ok(ServerTable {
        server: server.clone(),
        bed: bed.clone(),
        served_bytes: load.served_bytes,
        memory_bytes: compared.memory_bytes,
        is_memory_limited: memory_group::controller().is_some(),
        run_seconds: compared.time.as_secs_f64(),
        runs: compared.runs,
        absent_schedulers: absent,
        rows: candidates.iter().map(row).collect(),
    })
}

/// wrk runs for whole seconds.
fn check_time(comparison: &Comparison) -> Result<(), Failure> {
    let time = comparison.compared.time;
    match comparison.server {
        Server::Media if time.subsec_nanos() > 0 => Err(Failure::Usage(format!(
            "--time {time:?}: wrk measures whole seconds: give {}s",
            time.as_secs().saturating_add(1)
        ))),
        _ => Ok(()),
    }
}

/// The kernel at each setting, with the schedulers that it has, then forerun.
fn sides(comparison: &Comparison, schedulers: &[String]) -> Vec<Side> {
    let settings = schedulers
        .iter()
        .enumerate()
        .flat_map(|(number, scheduler)| {
            let each = match number {
                0 => &comparison.read_ahead_kib[..],
                _ => comparison.read_ahead_kib.get(..1).unwrap_or_default(),
            };
            each.iter().map(move |kib| (scheduler, *kib))
        });
    let kernel = settings.map(|(scheduler, read_ahead_kib)| Side::Kernel {
        scheduler: scheduler.clone(),
        read_ahead_kib,
    });
    let forerun = comparison.compared.forerun.iter().map(|_| Side::Forerun {
        preset: comparison.preset.clone(),
        is_told: true,
    });
    kernel.chain(forerun).collect()
}

fn row(candidate: &Candidate<Answers>) -> Row {
    Row {
        clients: candidate.number,
        per_second: candidate.rate(),
        runs_per_second: candidate.rates.clone(),
        figures: candidate.figures(|answers| answers.slowest_per_mean),
        p50_ms: candidate.median(|answers| answers.p50_ms),
        p99_ms: candidate.median(|answers| answers.p99_ms),
        disk_mb_per_second: candidate.of_disk(|disk, answers| disk.bytes / 1e6 / answers.seconds),
    }
}

/// A server, asked by clients.
struct Asked<'a> {
    server: &'a Server,
    /// The folder of a search server's index.
    index: Option<PathBuf>,
    served_bytes: u64,
}

impl Load for Asked<'_> {
    type Answer = Answers;

    const MANY: &'static str = "clients";

    fn bytes_of_each(&self) -> usize {
        match self.server {
            Server::Media => NGINX_BYTES,
            Server::Search { .. } => XAPIAN_BYTES,
        }
    }

    fn prepare(&mut self, bench: &Bench<'_>) -> Result<(), Failure> {
        let files = &bench.bed.files;
        self.served_bytes = match &self.index {
            Some(index) => search::copy(bench.bed, bench.place, index)?,
            None => {
                media::write_requests(bench.state.folder(), files)?;
                (0..files.count)
                    .map(|number| fill::size(files, number))
                    .sum()
            }
        };
        Ok(())
    }

    fn run(
        &self,
        bench: &Bench<'_>,
        group: Option<&Path>,
        folder: &Path,
        clients: usize,
    ) -> Result<(Answers, Option<DiskWork>), Failure> {
        let (place, state) = (bench.place, bench.state.folder());
        let (time, seed) = (bench.compared.time, bench.bed.files.seed);
        let (answers, disk) = match self.server {
            Server::Media => {
                media::warm_names(place, folder, group)?;
                let nginx = media::Nginx::start(state, folder, group)?;
                let asked = status::counted(place, || nginx.ask(state, clients, time));
                nginx.stop()?;
                asked?
            }
            Server::Search { .. } => status::counted(place, || {
                search::ask(state, folder, group, clients, time, seed)
            })?,
        };
        answers.whole().map(|answers| (answers, disk))
    }

    fn rate(answers: &Answers) -> f64 {
        answers.completed / answers.seconds
    }

    fn words(answers: &Answers) -> String {
        format!("{:.1}/s, p99 {:.0} ms", Self::rate(answers), answers.p99_ms)
    }
}

impl Answers {
    /// A run with failed requests is no result.
    fn whole(self) -> Result<Self, Failure> {
        match self.errors {
            0 => Ok(self),
            errors => Err(Failure::Run(format!("{errors} requests failed"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            server: Server::Media,
            compared: Compared {
                numbers: vec![1],
                forerun: Some("forerun".into()),
                memory_bytes: 1,
                time: Duration::from_secs(1),
                runs: 1,
            },
            read_ahead_kib: vec![128, 512, 4096],
            schedulers: vec!["none".into(), "bfq".into()],
            preset: "mount".into(),
        }
    }

    #[test]
    fn the_first_scheduler_there_is_runs_with_every_readahead_and_others_with_the_default() {
        let names = |schedulers: &[&str]| -> Vec<String> {
            let schedulers: Vec<_> = schedulers.iter().map(|name| (*name).to_owned()).collect();
            let sides = sides(&comparison(), &schedulers);
            sides.iter().map(Side::to_string).collect()
        };
        let all = [
            "kernel none 128",
            "kernel none 512",
            "kernel none 4096",
            "kernel bfq 128",
            "forerun mount",
        ];
        assert_eq!(names(&["none", "bfq"]), all);
        assert_eq!(names(&["none"]).len(), 4);
        assert_eq!(names(&[]), ["forerun mount"]);
    }

    #[test]
    fn nginx_is_asked_for_whole_seconds_alone() {
        let mut comparison = comparison();
        assert!(check_time(&comparison).is_ok());
        comparison.compared.time = Duration::from_millis(1_900);
        let said = check_time(&comparison).unwrap_err().to_string();
        assert!(
            said.contains("--time 1.9s") && said.ends_with("give 2s"),
            "{said}"
        );
        comparison.server = Server::Search {
            index: "index".into(),
            documents: 10,
        };
        assert!(check_time(&comparison).is_ok());
    }

    #[test]
    fn a_run_with_failed_requests_is_no_result() {
        let answers = |errors| Answers {
            completed: 5.0,
            seconds: 1.0,
            p50_ms: 1.0,
            p99_ms: 2.0,
            slowest_per_mean: 1.0,
            errors,
        };
        assert_eq!(answers(0).whole().unwrap(), answers(0));
        let said = answers(3).whole().unwrap_err().to_string();
        assert_eq!(said, "3 requests failed");
    }
}
