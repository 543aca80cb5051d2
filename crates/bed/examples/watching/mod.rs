//! A file system of an example's own, and `forerun watch` on it.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The failure of anything, in words.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// ext4 on a loop device, in a folder that goes with it.
pub(crate) struct Disk {
    folder: PathBuf,
    device: String,
}

/// Runs a tool; its output.
pub(crate) fn tool(words: &[&str]) -> Result<String, Failed> {
    let output = Command::new(words[0]).args(&words[1..]).output()?;
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{}: {text}", words.join(" ")).into()),
    }
}

impl Disk {
    /// Of so many bytes, with a read-ahead of 128 KiB.
    pub(crate) fn new(bytes: u64) -> Result<Self, Failed> {
        let folder = std::env::temp_dir().join(format!("forerun-watching-{}", std::process::id()));
        fs::create_dir_all(folder.join("point"))?;
        let image = folder.join("image");
        fs::File::create(&image)?.set_len(bytes)?;
        let image = image.to_str().ok_or("a path that is no text")?;
        tool(&["mkfs.ext4", "-q", "-F", "-O", "^has_journal", image])?;
        let device = tool(&["losetup", "--find", "--show", image])?;
        let disk = Self { folder, device };
        disk.mount()?;
        fs::write(disk.limit()?, "128")?;
        Ok(disk)
    }

    /// Mounts it.
    pub(crate) fn mount(&self) -> Result<(), Failed> {
        let point = self.point();
        let point = point.to_str().ok_or("a path that is no text")?;
        tool(&["mount", &self.device, point]).map(drop)
    }

    /// Where it is mounted.
    pub(crate) fn point(&self) -> PathBuf {
        self.folder.join("point")
    }

    /// The file of its read-ahead.
    pub(crate) fn limit(&self) -> Result<PathBuf, Failed> {
        let name = Path::new(&self.device).file_name().ok_or("no device")?;
        let bdi = Path::new("/sys/block").join(name).join("bdi");
        Ok(fs::canonicalize(bdi)?.join("read_ahead_kb"))
    }

    /// `forerun watch` on it, once it works; it ends when its input is dropped.
    pub(crate) fn watch(&self, forerun: &Path, flags: &[&str]) -> Result<Child, Failed> {
        let mut child = Command::new(forerun)
            .args(["watch", "--until-input-ends"])
            .args(flags)
            .arg(self.point())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut first = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut first)?;
        match first.starts_with("watching ") {
            true => Ok(child),
            false => Err(format!("the watch did not begin: {first}").into()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = tool(&["umount", self.point().to_str().unwrap_or_default()]);
        let _ = tool(&["losetup", "--detach", &self.device]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}
