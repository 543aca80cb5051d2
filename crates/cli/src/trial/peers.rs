//! Other programs that show a store as files, where they are installed: the best of them is the second candidate.
//!
//! | peer | how it is run |
//! | --- | --- |
//! | `rclone` | `rclone mount`, read-only, without asking for times and checksums |
//! | `s3fs-fuse` | `s3fs`, read-only, with its defaults |
//! | `s3fs (Python)` | one process, a thread for each reader, files of `s3fs.S3FileSystem` |
//!
//! All three get the endpoint of the environment, and find credentials by themselves. Of a store other than S3 none is run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use forerun_surface::below::mounts::{Mount, own_table};
use rustix::mount::{UnmountFlags, unmount};
use serde_json::json;

use super::files::Part;
use super::side::{Mounted, Run, Side};
use crate::failure::Failure;
use crate::mount::attach::unmount_by_fusermount;

/// A bucket of S3, and how it is reached.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// The beginning of keys, without a `/` at its end; empty for all.
    pub prefix: String,
    /// In place of AWS's own.
    pub endpoint: Option<String>,
    /// Where it is, if that is known.
    pub region: Option<String>,
    /// Requests are not signed.
    pub is_anonymous: bool,
}

impl Bucket {
    /// Bucket and prefix of an address of S3.
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("s3://")?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        Some(Self {
            name: name.to_owned(),
            prefix: prefix.trim_end_matches('/').to_owned(),
            endpoint: None,
            region: None,
            is_anonymous: false,
        })
    }

    fn path(&self) -> String {
        match self.prefix.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{}", self.name, self.prefix),
        }
    }
}

/// The peers that are installed, by their names.
#[must_use]
pub fn installed(bucket: &Bucket) -> Vec<(&'static str, Box<dyn Side>)> {
    let answers = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        let command = command.args(words).stdin(Stdio::null());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let mut peers: Vec<(&'static str, Box<dyn Side>)> = Vec::new();
    let mounted = |command| {
        let bucket = bucket.clone();
        Box::new(Peer { bucket, command })
    };
    if answers("rclone", &["version"]) {
        peers.push(("rclone", mounted(rclone)));
    }
    if answers("s3fs", &["--version"]) {
        peers.push(("s3fs-fuse", mounted(s3fs)));
    }
    if answers("python3", &["-c", "import s3fs"]) {
        let bucket = bucket.clone();
        peers.push(("s3fs (Python)", Box::new(InPython { bucket })));
    }
    peers
}

fn rclone(bucket: &Bucket, point: &Path) -> Command {
    let mut command = Command::new("rclone");
    command
        .args(["mount", "--config", "/dev/null", "--read-only"])
        .args(["--no-modtime", "--no-checksum", "--use-server-modtime"])
        .arg(format!(":s3:{}", bucket.path()))
        .arg(point)
        .env("RCLONE_S3_ENV_AUTH", (!bucket.is_anonymous).to_string());
    let provider = match &bucket.endpoint {
        Some(endpoint) => {
            command.env("RCLONE_S3_ENDPOINT", endpoint);
            "Other"
        }
        None => "AWS",
    };
    command.env("RCLONE_S3_PROVIDER", provider);
    command.envs(
        bucket
            .region
            .iter()
            .map(|region| ("RCLONE_S3_REGION", region)),
    );
    command
}

fn s3fs(bucket: &Bucket, point: &Path) -> Command {
    let mut options = "ro".to_owned();
    if let Some(endpoint) = &bucket.endpoint {
        options += &format!(",url={endpoint},use_path_request_style");
    }
    options.extend(
        bucket
            .region
            .iter()
            .map(|region| format!(",endpoint={region}")),
    );
    if bucket.is_anonymous {
        options += ",public_bucket=1";
    }
    let source = match bucket.prefix.is_empty() {
        true => bucket.name.clone(),
        false => format!("{}:/{}", bucket.name, bucket.prefix),
    };
    let mut command = Command::new("s3fs");
    command
        .arg("-f")
        .arg(source)
        .arg(point)
        .args(["-o", &options]);
    command
}

/// A program that mounts a bucket.
struct Peer {
    bucket: Bucket,
    command: fn(&Bucket, &Path) -> Command,
}

impl Side for Peer {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let command = |point: &Path| (self.command)(&self.bucket, point);
        let source = PathBuf::from(self.bucket.path());
        Ok(Box::new(Mounted::start(&source, command, |point| {
            Ok(is_mounted(point))
        })?))
    }
}

/// Whether anything is mounted on a path; asked of the list, as a mount may not answer.
pub(super) fn is_mounted(point: &Path) -> bool {
    own_table().is_ok_and(|table| is_in(&table, point))
}

fn is_in(table: &[Mount], point: &Path) -> bool {
    table.iter().any(|mount| mount.point == point)
}

/// Takes the mount of a program that was ended off its path.
pub(super) fn take_off(point: &Path) {
    if unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_err() {
        let _ = unmount_by_fusermount(point, true);
    }
}

/// Files of Python's s3fs.
struct InPython {
    bucket: Bucket,
}

/// Reads parts until the time is over, and prints bytes a second.
const SCRIPT: &str = r#"
import json, sys, threading, time
import s3fs
job = json.load(sys.stdin)
files = s3fs.S3FileSystem(anon=job["anonymous"], endpoint_url=job["endpoint"])
totals = [0] * len(job["readers"])
failed = []
def read(reader, end):
    try:
        for name, at, left in job["readers"][reader]:
            with files.open(job["path"] + "/" + name, "rb") as file:
                file.seek(at)
                while left > 0:
                    if time.monotonic() >= end:
                        return
                    piece = file.read(min(left, 131072))
                    if not piece:
                        break
                    left -= len(piece)
                    totals[reader] += len(piece)
    except BaseException as error:
        failed.append(f"{type(error).__name__}: {error}")
begun = time.monotonic()
threads = [threading.Thread(target=read, args=(n, begun + job["seconds"])) for n in range(len(totals))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if failed:
    sys.exit(failed[0])
print(sum(totals) / (time.monotonic() - begun))
"#;

impl Side for InPython {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let bucket = self.bucket.clone();
        Ok(Box::new(Self { bucket }))
    }
}

impl Run for InPython {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        let part = |part: &Part| json!([PathBuf::from(&part.file), part.offset, part.bytes]);
        let readers = parts
            .iter()
            .map(|parts| parts.iter().map(part).collect::<Vec<_>>());
        let job = json!({
            "anonymous": self.bucket.is_anonymous,
            "endpoint": self.bucket.endpoint,
            "path": self.bucket.path(),
            "readers": readers.collect::<Vec<_>>(),
            "seconds": each.as_secs_f64(),
        });
        let failed = |why: &str| Failure::Run(format!("s3fs of Python: {why}"));
        let mut program = Command::new("python3")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&e.to_string()))?;
        if let Some(mut input) = program.stdin.take() {
            // A program that ended early says why.
            let _ = input.write_all(job.to_string().as_bytes());
        }
        let output = program
            .wait_with_output()
            .map_err(|e| failed(&e.to_string()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let rate = String::from_utf8_lossy(&output.stdout).trim().parse();
        rate.map_err(|_| failed(said.lines().last().unwrap_or("no answer")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_surface::below::mounts::parse;

    #[test]
    fn each_peer_is_told_bucket_prefix_endpoint_and_whether_to_sign() {
        let bucket = Bucket {
            endpoint: Some("http://127.0.0.1:1".into()),
            region: Some("eu-west-1".into()),
            ..Bucket::of("s3://b/p/q/").unwrap()
        };
        let public = Bucket {
            is_anonymous: true,
            ..Bucket::of("s3://b").unwrap()
        };
        let said = |command: Command| format!("{command:?}");
        let point = Path::new("/m");
        let words = said(rclone(&bucket, point));
        for part in [
            "\":s3:b/p/q\" \"/m\"",
            "ENV_AUTH=\"true\"",
            "ENDPOINT=\"http://127.0.0.1:1\"",
            "PROVIDER=\"Other\"",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let words = said(rclone(&public, point));
        for part in ["\":s3:b\" \"/m\"", "ENV_AUTH=\"false\"", "PROVIDER=\"AWS\""] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let words = said(s3fs(&bucket, point));
        let options = "\"b:/p/q\" \"/m\" \"-o\" \"ro,url=http://127.0.0.1:1,use_path_request_style,endpoint=eu-west-1\"";
        assert!(words.contains(options), "{words}");
        let words = said(s3fs(&public, point));
        assert!(
            words.contains("\"b\" \"/m\" \"-o\" \"ro,public_bucket=1\""),
            "{words}"
        );
        assert!(Bucket::of("gs://b").is_none());
    }

    #[test]
    fn a_path_is_mounted_if_the_list_has_it() {
        assert!(is_mounted(Path::new("/proc")));
        assert!(!is_mounted(Path::new("/proc/self")));
        let table = parse(b"29 1 0:26 / /my\\040data rw - fuse.s3fs s3fs rw\n");
        assert!(is_in(&table, Path::new("/my data")));
        assert!(!is_in(&table, Path::new("/my")));
    }
}
