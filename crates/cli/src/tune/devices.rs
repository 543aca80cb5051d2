//! Settings below a file system: the read-ahead of its bdi, and the scheduler of each disk.
//!
//! The read-ahead that a file gets when it is opened is that of its file system's bdi; a scheduler is a property of each
//! disk at the [bottom](forerun_surface::below::sysfs). A loop device is a disk: its file is read by the loop driver, which
//! has settings of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use forerun_surface::below::sysfs::{self, Below};
use forerun_surface::undo::knob::{self, Knob};

use super::place;
use crate::failure::Failure;

/// How long a device may take to answer requests of readers that stopped.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(5);

/// A disk, or a device that the kernel takes for one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its name: `sda`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The present scheduler; none where it has none.
    pub scheduler: Option<String>,
    /// Schedulers there are.
    pub schedulers: Vec<String>,
    /// Whether it rotates, as the kernel has it.
    pub is_rotational: Option<bool>,
    /// The file of a loop device.
    pub file: Option<String>,
}

/// Everything below a file system that can be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Devices {
    /// Type of the file system; none for a block device that was named itself.
    pub file_system: Option<String>,
    /// Name of the bdi: `8:0`, or `btrfs-1`.
    pub bdi: String,
    /// The file of its read-ahead.
    pub read_ahead: Knob,
    /// The present read-ahead.
    pub read_ahead_kib: u64,
    /// The one block device that all reads of the file system pass, by its name below `/dev`.
    pub top: Option<String>,
    /// The disks, each once, in the order of their names.
    pub leaves: Vec<Leaf>,
}

impl Devices {
    /// Those below a path.
    ///
    /// # Errors
    /// A path that is not there, or a file system that cannot be tuned.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        Self::below(place::below(path)?).map_err(|why| Failure::unusable(path, why))
    }

    fn below(below: Below) -> Result<Self, String> {
        let read_ahead = Knob::new(below.limit);
        let file = read_ahead.path().display();
        let present = read_ahead.read().map_err(|e| format!("{file}: {e}"))?;
        let read_ahead_kib = present.parse::<u64>();
        let read_ahead_kib =
            read_ahead_kib.map_err(|_| format!("{file}: {present:?} is no number"))?;
        Ok(Self {
            read_ahead_kib,
            file_system: below.kind,
            bdi: below.bdi,
            read_ahead,
            top: below.top,
            leaves: below.leaves.into_iter().map(Leaf::of).collect(),
        })
    }

    /// The schedulers that all leaves have.
    #[must_use]
    pub fn schedulers(&self) -> Vec<String> {
        let mut common = self
            .leaves
            .first()
            .map_or_else(Vec::new, |leaf| leaf.schedulers.clone());
        common.retain(|name| {
            self.leaves
                .iter()
                .all(|leaf| leaf.schedulers.contains(name))
        });
        common
    }

    /// The scheduler of all leaves, if it is the same.
    #[must_use]
    pub fn scheduler(&self) -> Option<String> {
        let first = self.leaves.first()?.scheduler.clone();
        let is_same = self.leaves.iter().all(|leaf| leaf.scheduler == first);
        first.filter(|_| is_same)
    }

    /// Waits until the leaves have answered all reads, or for as long as a trial can wait.
    pub fn wait_until_idle(&self, is_stopped: &dyn Fn() -> bool) {
        let begun = Instant::now();
        let is_busy = |leaf: &Leaf| leaf.in_flight().is_some_and(|reads| reads > 0);
        while self.leaves.iter().any(is_busy) && begun.elapsed() < IDLE_MAX && !is_stopped() {
            sleep(PERIOD);
        }
    }

    /// Whether a leaf rotates.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.leaves
            .iter()
            .any(|leaf| leaf.is_rotational == Some(true))
    }
}

impl Leaf {
    /// The file of its scheduler.
    #[must_use]
    pub fn scheduler_knob(&self) -> Knob {
        Knob::new(self.folder.join("queue").join(knob::SCHEDULER))
    }

    /// Reads that it has not answered yet; none if the kernel does not tell.
    #[must_use]
    pub fn in_flight(&self) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join("inflight")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }

    fn of(leaf: sysfs::Leaf) -> Self {
        let knob = Knob::new(leaf.folder.join("queue").join(knob::SCHEDULER));
        let file = fs::read_to_string(leaf.folder.join("loop/backing_file")).ok();
        let schedulers = knob.choices();
        let has_choice = schedulers.len() > 1;
        Self {
            // A device without a choice (`none` alone, or no file) has nothing to set.
            scheduler: knob.read().ok().filter(|_| has_choice),
            schedulers: if has_choice { schedulers } else { Vec::new() },
            is_rotational: leaf.is_rotational,
            file: file.map(|text| text.trim().to_owned()),
            name: leaf.name,
            folder: leaf.folder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk in a folder, as the kernel shows it.
    fn leaf(root: &Path, name: &str, schedulers: &str) -> sysfs::Leaf {
        let folder = root.join(name);
        for (path, text) in [
            ("queue/scheduler", schedulers),
            ("inflight", "       3        0\n"),
            ("loop/backing_file", "/images/0\n"),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        sysfs::Leaf {
            name: name.into(),
            number: (8, 0),
            folder,
            is_rotational: Some(true),
        }
    }

    fn devices(root: &Path, read_ahead: &str, leaves: Vec<sysfs::Leaf>) -> Result<Devices, String> {
        let limit = root.join("read_ahead_kb");
        fs::write(&limit, read_ahead).unwrap();
        Devices::below(Below {
            kind: None,
            bdi: "8:0".into(),
            limit,
            queues: vec![(8, 0)],
            top: Some("sda".into()),
            leaves,
            is_apart: false,
        })
    }

    #[test]
    fn a_scheduler_is_offered_where_all_leaves_have_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let sda = leaf(root, "sda", "none [mq-deadline] bfq\n");
        let found = devices(root, "128\n", vec![sda.clone()]).unwrap();
        assert_eq!(found.scheduler().as_deref(), Some("mq-deadline"));
        assert_eq!(found.schedulers(), ["none", "mq-deadline", "bfq"]);
        assert_eq!((found.read_ahead_kib, found.is_rotational()), (128, true));
        let only = &found.leaves[0];
        assert_eq!(
            (only.in_flight(), only.file.as_deref()),
            (Some(3), Some("/images/0"))
        );
        let nvme = leaf(root, "nvme0n1", "[none] mq-deadline\n");
        let found = devices(root, "128\n", vec![sda, nvme]).unwrap();
        assert_eq!(
            (found.schedulers(), found.scheduler()),
            (vec!["none".to_owned(), "mq-deadline".to_owned()], None)
        );
        // A device that has but one scheduler offers none.
        let ram = leaf(root, "ram0", "none\n");
        let found = devices(root, "128\n", vec![ram]).unwrap();
        assert_eq!((found.schedulers(), found.scheduler()), (vec![], None));
    }

    #[test]
    fn a_read_ahead_that_is_no_number_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let why = devices(root.path(), "long\n", Vec::new()).unwrap_err();
        assert!(
            why.contains("read_ahead_kb: \"long\" is no number"),
            "{why}"
        );
    }
}
