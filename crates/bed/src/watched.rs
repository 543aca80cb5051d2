//! A `forerun watch` on the bed's file system: started, waited for, ended.
//!
//! Used by `table` and `small`, as [`Mounted`](crate::mounted::Mounted) is for mounts. It has no mount that would be
//! left behind: it ends with its input, so also when this program is killed.
//!
//! ```text
//! start -> [join a memory group] -> wait for its first line, "watching .."  .. measured ..  end its input -> wait
//! ```

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::failure::{At, Failure};
use crate::{memory_group, tool};

/// A running watch.
#[derive(Debug)]
pub(crate) struct Watched {
    child: Child,
}

impl Watched {
    /// Starts it on a folder, with these options more, and waits until it works.
    pub(crate) fn start(
        program: &Path,
        options: &[&str],
        folder: &Path,
        group: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut command = tool::at_ordinary_io_priority(program);
        command
            .args(["watch", "--until-input-ends"])
            .args(options)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().at(program)?;
        let joined = group.map_or(Ok(()), |group| memory_group::add(group, child.id()));
        let mut first = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            output.read_line(&mut first).at(program)?;
            // The lines that it prints at its end are of no use, and must not break it.
            std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        }
        let began = match first.starts_with("watching ") {
            true => joined,
            false => Err(Failure::Run("forerun watch did not begin".into())),
        };
        match began {
            Ok(()) => Ok(Self { child }),
            Err(failure) => {
                // It may have ended already, and then there is nothing to end.
                let _ = child.kill();
                let _ = child.wait();
                Err(failure)
            }
        }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and waits until it is gone.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        let status = self.child.wait();
        let status = status.map_err(|e| Failure::Run(format!("forerun watch: {e}")))?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::Run(format!("forerun watch: {status}"))),
        }
    }
}
