//! `up`: carries out the plan of a bed, each resource written down before it is made.
//!
//! Called by `main` and by `table`. If a step fails, the steps before are undone at once and the
//! failure is the step's. If `up` itself is killed, `down` finds the list.

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::bed::{Bed, Kind};
use crate::cold::{self, Mode};
use crate::export::image_name;
use crate::failure::{At, Failure};
use crate::plan::{BedPaths, Plan, Step};
use crate::state::State;
use crate::thing::Thing;
use crate::{down, fill, kernel, needs, serve, tool};

/// Makes the bed; each step is printed when it begins.
///
/// # Errors
/// Resources missing on this machine, or the step that failed.
pub fn run(bed: &Bed, folder: &Path, out: &mut dyn Write) -> Result<State, Failure> {
    needs::check(bed)?;
    let mut state = State::create(folder, bed)?;
    let place = BedPaths::of(state.folder(), &bed.disks)?;
    let plan = Plan::new(bed, &place);
    for step in &plan.steps {
        let said = writeln!(out, "{}", plan.describe(step)).at(folder);
        let Err(failure) = said.and_then(|()| carry_out(step, bed, &place, &mut state)) else {
            continue;
        };
        let undone = down::undo(state).map_or_else(|e| format!("; then {e}"), |()| String::new());
        return Err(Failure::Run(format!("{failure}{undone}")));
    }
    Ok(state)
}

fn carry_out(step: &Step, bed: &Bed, place: &BedPaths, state: &mut State) -> Result<(), Failure> {
    match step {
        Step::Folders(paths) => {
            for path in paths {
                state.record(Thing::Folder { path: path.clone() })?;
                make_private(path)?;
            }
            Ok(())
        }
        Step::Images(path) => make_images(path, bed, state),
        Step::Serve(path) => {
            state.record(Thing::Mount {
                path: path.clone(),
                kind: serve::FILE_SYSTEM.into(),
            })?;
            serve::start(state.folder())
        }
        Step::Attach(image) => attach(image, bed, state),
        Step::Format(kind) => format(*kind, &loops(bed, place)?),
        Step::Fill(path) => {
            let kind = bed.file_system.kind.mount_type().to_owned();
            state.record(Thing::Mount {
                path: path.clone(),
                kind,
            })?;
            cold::mount(bed, place, Mode::ToFill)?;
            fill::run(path, &bed.files)?;
            cold::unmount(place)
        }
        Step::Mount(_) => cold::mount(bed, place, Mode::ToMeasure),
        Step::Queue(queue) => cold::set(bed, place, queue),
        Step::Delay(_) => cold::delay(place, true),
    }
}

fn make_private(path: &Path) -> Result<(), Failure> {
    fs::DirBuilder::new().mode(0o755).create(path).at(path)
}

/// The folder is outside of the state directory, so an existing one is not ours.
fn make_images(path: &Path, bed: &Bed, state: &mut State) -> Result<(), Failure> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Failure::broken(
            path,
            "is there already, and not of this bed: remove it",
        ));
    }
    let names: Vec<String> = (0..bed.disks.count).map(image_name).collect();
    let files = match bed.disks.is_local() {
        true => names,
        false => {
            let both = |name| [format!("{name}.raw"), format!("{name}.tags")];
            names.into_iter().flat_map(both).collect()
        }
    };
    state.record(Thing::Images {
        path: path.into(),
        files: files.clone(),
    })?;
    fs::DirBuilder::new().mode(0o700).create(path).at(path)?;
    if bed.disks.is_local() {
        for image in files.iter().map(|name| path.join(name)) {
            let file = fs::File::create_new(&image).at(&image)?;
            file.set_len(bed.disks.image_bytes).at(&image)?;
        }
    }
    Ok(())
}

fn attach(image: &Path, bed: &Bed, state: &mut State) -> Result<(), Failure> {
    state.record(Thing::Loop {
        image: image.into(),
    })?;
    let arguments = ["--find", "--show", "--direct-io=on"].map(AsRef::as_ref);
    let device = tool::run("losetup", arguments.into_iter().chain([image.as_os_str()]))?;
    let device = Path::new(&device);
    if bed.disks.is_local() && !kernel::is_direct(device) {
        return Err(Failure::broken(
            image,
            "its file system has no direct I/O: give a state directory on another",
        ));
    }
    for name in ["scheduler", "read_ahead_kb", "rotational"] {
        let before = kernel::queue_setting(device, name)?;
        state.record(Thing::Setting {
            image: image.into(),
            name: name.into(),
            before,
        })?;
    }
    // Before a file system is made: they ask for it too.
    let is_rotational = u8::from(bed.disks.is_rotational);
    kernel::set_queue(device, "rotational", &is_rotational.to_string())
}

/// The loop devices of a bed, in the order of its disks.
///
/// # Errors
/// One is gone.
pub fn loops(bed: &Bed, place: &BedPaths) -> Result<Vec<PathBuf>, Failure> {
    let images = (0..bed.disks.count).map(|index| place.image(index));
    images
        .map(|image| {
            kernel::loop_of(&image)?.ok_or_else(|| Failure::broken(&image, "has no loop device"))
        })
        .collect()
}

fn format(kind: Kind, devices: &[PathBuf]) -> Result<(), Failure> {
    let (program, options) = match kind.btrfs_profiles() {
        Some([data, metadata]) => {
            let options = vec!["-q", "-f", "-K", "-d", data, "-m", metadata];
            ("mkfs.btrfs", options)
        }
        // Without a journal there is nothing to replay when it is mounted read-only; nothing is
        // discarded or zeroed because the image is new.
        None => {
            let mut options = vec!["-q", "-F", "-b", "4096", "-m", "0"];
            options.extend(["-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=1"]);
            ("mkfs.ext4", options)
        }
    };
    let options = options.into_iter().map(AsRef::as_ref);
    tool::run(
        program,
        options.chain(devices.iter().map(|d| d.as_os_str())),
    )
    .map(|_| ())
}
