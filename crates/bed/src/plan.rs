//! The plan: the steps of making a bed, before any of them is done.
//!
//! `up` carries it out in order; `up --dry-run` prints it. It is computed from the bed and the
//! state directory alone, so it is the same on every machine; only which loop devices are free is
//! found out on the way.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::bed::{Bed, Disks, Kind, Queue};
use crate::export::image_name;
use crate::failure::{At, Failure};

/// Paths of the parts of a bed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BedPaths {
    /// The images: in tmpfs, or, of local disks, in the state directory.
    pub images: PathBuf,
    /// Mount point of the export of emulated disks.
    pub export: Option<PathBuf>,
    /// Mount point of the file system.
    pub files: PathBuf,
    /// Mount point of the candidates of `table` and `small`.
    pub rival: PathBuf,
}

impl BedPaths {
    /// The place of the bed whose state is in `folder`.
    ///
    /// # Errors
    /// The folder cannot be named.
    pub fn of(at: &Path, disks: &Disks) -> Result<Self, Failure> {
        // The kernel names backing files and mounts by paths without links.
        let folder = at.canonicalize().or_else(|_| std::path::absolute(at));
        let folder = folder.at(at)?;
        let (files, rival) = (folder.join("files"), folder.join("mount"));
        if disks.is_local() {
            return Ok(Self {
                images: folder.join("images"),
                export: None,
                files,
                rival,
            });
        }
        // One folder of images for each state directory: its path, as a name.
        let name: String = folder.display().to_string().replace('/', "-");
        Ok(Self {
            images: format!("/dev/shm/forerun-bed{name}").into(),
            export: Some(folder.join("export")),
            files,
            rival,
        })
    }

    /// The file a loop device is attached to: that of the export, or of a local disk the image.
    #[must_use]
    pub fn image(&self, index: usize) -> PathBuf {
        let folder = self.export.as_ref().unwrap_or(&self.images);
        folder.join(image_name(index))
    }
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Make the folders to mount on.
    Folders(Vec<PathBuf>),
    /// Make the folder of the images; of local disks, with the images, sparse.
    Images(PathBuf),
    /// Start the daemon, which mounts the export and does not delay.
    Serve(PathBuf),
    /// Attach a loop device to an image, with direct I/O.
    Attach(PathBuf),
    /// Make the file system over all loop devices.
    Format(Kind),
    /// Mount it for writing, write the files, unmount it.
    Fill(PathBuf),
    /// Mount it for reading.
    Mount(PathBuf),
    /// Set schedulers and readahead.
    Queue(Queue),
    /// Turn the delay of this export on.
    Delay(PathBuf),
}

/// The whole plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    bed: Bed,
    /// In this order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The steps of making this bed.
    #[must_use]
    pub fn new(bed: &Bed, place: &BedPaths) -> Self {
        let folders = place.export.iter().chain([&place.files, &place.rival]);
        let mut steps = vec![
            Step::Folders(folders.cloned().collect()),
            Step::Images(place.images.clone()),
        ];
        steps.extend(place.export.clone().map(Step::Serve));
        steps.extend((0..bed.disks.count).map(|index| Step::Attach(place.image(index))));
        steps.extend([
            Step::Format(bed.file_system.kind),
            Step::Fill(place.files.clone()),
            Step::Mount(place.files.clone()),
            Step::Queue(bed.queue.clone()),
        ]);
        steps.extend(place.export.clone().map(Step::Delay));
        Self {
            bed: bed.clone(),
            steps,
        }
    }

    /// A step, in words.
    #[must_use]
    pub fn describe(&self, step: &Step) -> String {
        let Bed { disks, files, .. } = &self.bed;
        match step {
            Step::Folders(paths) => {
                let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
                format!("make {}", paths.join(", "))
            }
            Step::Images(path) if disks.is_local() => format!(
                "make {} with {} sparse images of {} bytes",
                path.display(),
                disks.count,
                disks.image_bytes
            ),
            Step::Images(path) => format!("make {} for the images", path.display()),
            Step::Serve(path) => format!(
                "serve {} x {} bytes on {}, each a {}",
                disks.count,
                disks.image_bytes,
                path.display(),
                disks.device
            ),
            Step::Attach(image) => {
                let kind = if disks.is_rotational {
                    ", rotational"
                } else {
                    ""
                };
                format!(
                    "attach a free loop device to {}, direct I/O{kind}",
                    image.display()
                )
            }
            Step::Format(kind) => format!("make {} on the loop devices", kind.name()),
            Step::Fill(path) => {
                let (count, sizes) = (files.count, files.sizes());
                let folders = match files.folders {
                    0 => String::new(),
                    folders => format!(" in {folders} folders"),
                };
                let path = path.display();
                let seed = files.seed;
                format!("write {count} x {sizes} bytes{folders} into {path}, seed {seed}")
            }
            Step::Mount(path) => format!("mount it read-only on {}", path.display()),
            Step::Queue(queue) => format!(
                "set scheduler {}, read-ahead {} KiB",
                queue.scheduler,
                queue.read_ahead_bytes / 1024
            ),
            Step::Delay(_) => "turn the delay on".into(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in (1..).zip(&self.steps) {
            writeln!(f, "{number:2} {}", self.describe(step))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    fn plan(text: &str) -> String {
        let bed = bed::parse(text).unwrap();
        let place = BedPaths::of(Path::new("/run/forerun-bed"), &bed.disks).unwrap();
        Plan::new(&bed, &place).to_string()
    }

    #[test]
    fn a_folder_has_one_place_by_whichever_link_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("bed"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let bed = bed::parse(include_str!("../beds/disk.toml")).unwrap();
        let places = [real, link].map(|path| BedPaths::of(&path, &bed.disks).unwrap());
        assert_eq!(places[0], places[1]);
    }

    const RAID0: &str =
        " 1 make /run/forerun-bed/export, /run/forerun-bed/files, /run/forerun-bed/mount
 2 make /dev/shm/forerun-bed-run-forerun-bed for the images
 3 serve 4 x 2000000000 bytes on /run/forerun-bed/export, each a \
        switching(cost_ns=8000000,rate_bytes_per_second=80000000)
 4 attach a free loop device to /run/forerun-bed/export/disk0, direct I/O, rotational
 5 attach a free loop device to /run/forerun-bed/export/disk1, direct I/O, rotational
 6 attach a free loop device to /run/forerun-bed/export/disk2, direct I/O, rotational
 7 attach a free loop device to /run/forerun-bed/export/disk3, direct I/O, rotational
 8 make btrfs_raid0 on the loop devices
 9 write 64 x 64000000 bytes into /run/forerun-bed/files, seed 1
10 mount it read-only on /run/forerun-bed/files
11 set scheduler none, read-ahead 128 KiB
12 turn the delay on
";

    #[test]
    fn the_plan_says_what_would_be_made() {
        assert_eq!(plan(include_str!("../beds/raid0.toml")), RAID0);
        let disk = plan(include_str!("../beds/disk.toml"));
        assert_eq!(disk.lines().count(), 9);
        assert!(disk.contains(" 5 make ext4 on the loop devices\n"));
    }

    const LOCAL: &str = " 1 make /run/forerun-bed/files, /run/forerun-bed/mount
 2 make /run/forerun-bed/images with 1 sparse images of 1600000000 bytes
 3 attach a free loop device to /run/forerun-bed/images/disk0, direct I/O
 4 make ext4 on the loop devices
 5 write 20000 x 3000 to 60000 bytes in 40 folders into /run/forerun-bed/files, seed 1
 6 mount it read-only on /run/forerun-bed/files
 7 set scheduler none, read-ahead 128 KiB
";

    #[test]
    fn a_local_disk_is_an_image_in_the_state_directory_and_nothing_is_served() {
        assert_eq!(plan(include_str!("../beds/small_local.toml")), LOCAL);
    }
}
