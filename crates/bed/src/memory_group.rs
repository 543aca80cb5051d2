//! A memory cgroup: the same memory for both candidates, page cache included.
//!
//! `table` makes one a run; the reading program joins it before it opens anything, so every page
//! the kernel caches for it is charged to the limit. Version 1 where it is mounted, version 2 where
//! the memory controller is; a machine with neither runs without, and the table notes it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{At, Failure};

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// Folder of the groups, and the name of their limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Controller {
    root: PathBuf,
    limit: &'static str,
}

/// The memory controller of this machine.
#[must_use]
pub fn controller() -> Option<Controller> {
    let is_v1 = Path::new(V1).join("memory.limit_in_bytes").exists();
    let enabled = fs::read_to_string(Path::new(V2).join("cgroup.subtree_control"));
    let is_v2 = enabled.is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"));
    match (is_v1, is_v2) {
        (true, _) => Some(Controller {
            root: V1.into(),
            limit: "memory.limit_in_bytes",
        }),
        (_, true) => Some(Controller {
            root: V2.into(),
            limit: "memory.max",
        }),
        _ => None,
    }
}

impl Controller {
    /// Path of the group of the bed in `folder`.
    #[must_use]
    pub fn path(&self, folder: &Path) -> PathBuf {
        self.root.join(format!(
            "forerun-bed{}",
            folder.display().to_string().replace('/', "-")
        ))
    }

    /// Makes the group, new, with this limit.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn make(&self, path: &Path, bytes: u64) -> Result<(), Failure> {
        fs::create_dir(path).at(path)?;
        let limit = path.join(self.limit);
        fs::write(&limit, bytes.to_string()).at(&limit)
    }
}

/// Moves this process into a group.
///
/// # Errors
/// There is no such group.
pub fn join(path: &Path) -> Result<(), Failure> {
    add(path, std::process::id())
}

/// Moves a process into a group.
///
/// # Errors
/// There is no such group or process.
pub fn add(path: &Path, process: u32) -> Result<(), Failure> {
    let members = path.join("cgroup.procs");
    fs::write(&members, process.to_string()).at(&members)
}
