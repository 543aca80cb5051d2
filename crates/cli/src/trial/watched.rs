//! The kernel whose windows `forerun watch` steers, as a candidate of a trial.
//!
//! A watch is started for each run and ends with it, so that the other candidates read with the kernel as it is. Its input
//! ends with this process, however that ends.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::files::Part;
use super::side::{Kernel, Run, Side};
use crate::failure::Failure;
use crate::files::plain;

/// How long a watch may take to put its limits back.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(5);

/// See the [module](self).
#[derive(Debug)]
pub struct Watched {
    /// The folder of the files.
    pub folder: PathBuf,
}

impl Side for Watched {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let cannot = |e: io::Error| Failure::Run(format!("cannot watch: {}", plain(&e)));
        let program = std::env::current_exe().map_err(cannot)?;
        let mut daemon = Command::new(program)
            .args(["watch", "--until-input-ends"])
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let output = daemon.stdout.take().map(BufReader::new);
        let mut run = WatchedRun {
            kernel: Kernel {
                folder: self.folder.clone(),
            },
            daemon,
            output,
        };
        let mut line = String::new();
        let read = run
            .output
            .as_mut()
            .map(|output| output.read_line(&mut line));
        match read {
            Some(Ok(_)) if line.starts_with("watching ") => Ok(Box::new(run)),
            _ => Err(Failure::Run(run.said())),
        }
    }
}

/// A run while the watch lives.
struct WatchedRun {
    kernel: Kernel,
    daemon: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl WatchedRun {
    /// The last line of a watch that did not begin.
    fn said(&mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = &mut self.daemon.stderr {
            let _ = stderr.read_to_string(&mut said);
        }
        let line = said.lines().last().unwrap_or("it does not answer");
        line.trim_start_matches("forerun: ").to_owned()
    }
}

impl Run for WatchedRun {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        self.kernel.rate(parts, each)
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        drop(self.daemon.stdin.take());
        let end = Instant::now() + PATIENCE;
        while matches!(self.daemon.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(PERIOD);
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        self.output = None;
    }
}
