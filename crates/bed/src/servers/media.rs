//! nginx with media clips, and the list of requests that wrk walks.
//!
//! nginx is configured as its manual advises for files larger than memory: `sendfile` from a pool
//! of threads (`aio threads`), because a worker that reads by itself serves no other client
//! meanwhile. Opening a file still blocks its worker, so there are 16 workers, not one a processor.
//! The rest is Debian's default. Its port is one that was free a moment before; its pid file, logs
//! and list are in the state directory.
//!
//! Requests are drawn by Zipf's law from the bed's seed and written as records of one length, so
//! that a client of wrk finds its next one without holding a list: client c of n begins at record c
//! / n of the list.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::bed::Files;
use crate::cold;
use crate::failure::{At, Failure};
use crate::fill;
use crate::mix::Popularity;
use crate::plan::BedPaths;
use crate::servers::{Answers, wrk};

pub(super) const CONFIGURATION: &str = "nginx.conf";
pub(super) const LOG: &str = "nginx.log";
pub(super) const PID: &str = "nginx.pid";
pub(super) const REQUESTS: &str = "requests.txt";
pub(super) const SCRIPT: &str = "requests.lua";
/// A client of 256 has 1,024 requests before it repeats its neighbour's.
pub(super) const REQUESTS_COUNT: usize = 262_144;
/// `/d000/f` and 16 hexadecimal digits, a blank or more, a line break.
pub(super) const REQUEST_BYTES: usize = 32;
/// nginx listens within milliseconds; this is for a machine that stands still.
const START_MAX: Duration = Duration::from_secs(20);
/// Time to wait before looking whether it listens.
const LOOK: Duration = Duration::from_millis(5);

/// Writes the list of requests and wrk's script into the state directory.
///
/// # Errors
/// It cannot be written.
pub fn write_requests(folder: &Path, files: &Files) -> Result<(), Failure> {
    let path = folder.join(REQUESTS);
    fs::write(&path, requests(files, REQUESTS_COUNT)).at(&path)?;
    let path = folder.join(SCRIPT);
    fs::write(&path, wrk::SCRIPT).at(&path)
}

/// So many requests, each a record.
fn requests(files: &Files, count: usize) -> String {
    let mut popularity = Popularity::new(files.seed, files.count);
    let mut text = String::with_capacity(count * REQUEST_BYTES);
    for number in (0..count).map_while(|_| popularity.draw()) {
        let path = format!("/{}", fill::path(files, number).display());
        text.push_str(&format!("{path:<width$}\n", width = REQUEST_BYTES - 1));
    }
    text
}

/// Looks at the attributes of every clip below a folder, from inside the memory group and without
/// delay: a server that has run for a while knows its names, and the measurement is of data.
/// Without it, with 40,000 clips, two in three requests of the disks were for folders and inodes
/// for as long as a run lasts.
///
/// # Errors
/// The walk's.
pub fn warm_names(place: &BedPaths, root: &Path, group: Option<&Path>) -> Result<(), Failure> {
    cold::delay(place, false)?;
    let mut command = in_group(group);
    command
        .arg("find")
        .arg(root)
        .args(["-type", "f", "-size", "0"]);
    let walked = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    cold::delay(place, true)?;
    match walked {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::broken(root, format!("find: {status}"))),
        Err(error) => Err(Failure::Run(format!("find: {error}"))),
    }
}

/// nginx, running.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    port: u16,
}

impl Nginx {
    /// Starts it on a folder, in a memory group, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or ended at once; with its complaints.
    pub fn start(state: &Path, root: &Path, group: Option<&Path>) -> Result<Self, Failure> {
        let port = free_port().map_err(|e| Failure::Run(format!("no free port: {e}")))?;
        let (path, log) = (state.join(CONFIGURATION), state.join(LOG));
        fs::write(&path, configuration(state, root, port)).at(&path)?;
        let mut command = in_group(group);
        command
            .arg("nginx")
            .arg("-p")
            .arg(state)
            .arg("-c")
            .arg(&path);
        command.arg("-e").arg(&log);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).at(&log)?)
            .spawn()
            .map_err(|e| Failure::Run(format!("nginx: {e}")))?;
        let mut nginx = Self { child, port };
        match nginx.wait(&log) {
            Ok(()) => Ok(nginx),
            Err(failure) => {
                // It may have ended already.
                let _ = nginx.stop();
                Err(failure)
            }
        }
    }

    fn wait(&mut self, log: &Path) -> Result<(), Failure> {
        let began = Instant::now();
        while TcpStream::connect(address(self.port)).is_err() {
            if let Some(status) = self.child.try_wait().at(log)? {
                let said = fs::read_to_string(log).unwrap_or_default();
                let text = format!("nginx ended with {status}: {}", said.trim_end());
                return Err(Failure::Run(text));
            }
            if began.elapsed() > START_MAX {
                return Err(Failure::Run("nginx does not listen".into()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Lets clients ask for clips.
    ///
    /// # Errors
    /// wrk's.
    pub fn ask(&self, state: &Path, clients: usize, time: Duration) -> Result<Answers, Failure> {
        wrk::run(state, self.port, clients, time)
    }

    /// Ends it, and waits until it is gone.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn stop(mut self) -> Result<(), Failure> {
        // One that ended by itself cannot be signalled. The master ends its workers.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let ended = self.child.wait();
        ended
            .map(|_| ())
            .map_err(|e| Failure::Run(format!("nginx: {e}")))
    }
}

/// A command that a program is appended to: in the memory group from its first page on, at the I/O
/// priority of ordinary programs, and ended with this process.
pub(super) fn in_group(group: Option<&Path>) -> Command {
    let members = group.map_or_else(|| PathBuf::from("/dev/null"), |g| g.join("cgroup.procs"));
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(members)
        .args(["setpriv", "--pdeathsig", "TERM"])
        .args(["ionice", "-c", "2", "-n", "4"]);
    command
}

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind(address(0))?;
    Ok(listener.local_addr()?.port())
}

fn configuration(state: &Path, root: &Path, port: u16) -> String {
    let (state, root) = (state.display(), root.display());
    // Workers are root: only it may enter a mount without --allow-other.
    format!(
        "user root;
daemon off;
pid {state}/{PID};
worker_processes 16;
worker_rlimit_nofile 4096;
thread_pool disk threads=32;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {state};
    proxy_temp_path {state};
    fastcgi_temp_path {state};
    uwsgi_temp_path {state};
    scgi_temp_path {state};
    default_type video/mpeg;
    sendfile on;
    tcp_nopush on;
    aio threads=disk;
    keepalive_requests 1000000;
    server {{ listen 127.0.0.1:{port} backlog=1024 reuseport; root \"{root}\"; }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn every_request_is_a_record_of_one_length_and_names_a_file() {
        let bed = bed::parse(include_str!("../../beds/media.toml")).unwrap();
        let text = requests(&bed.files, 2_000);
        assert_eq!(text, requests(&bed.files, 2_000));
        assert_eq!(text.len(), 2_000 * REQUEST_BYTES);
        let known: std::collections::BTreeSet<String> = (0..bed.files.count)
            .map(|number| format!("/{}", fill::path(&bed.files, number).display()))
            .collect();
        assert!(text.lines().all(|line| line.len() == REQUEST_BYTES - 1));
        assert!(text.lines().all(|line| known.contains(line.trim_end())));
        let flat = requests(&Files::flat(9_999, 1, 1), 3);
        assert_eq!(flat.len(), 3 * REQUEST_BYTES);
    }

    #[test]
    fn the_configuration_names_the_folder_and_the_port() {
        let text = configuration(Path::new("/run/x"), Path::new("/run/x/mount"), 4711);
        assert!(text.contains("listen 127.0.0.1:4711 ") && text.contains("root \"/run/x/mount\";"));
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
