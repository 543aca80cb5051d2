//! File system and disks below a path, through overlays.
//!
//! An overlay is followed to the file system of the layer that holds the path: files of an overlay are opened there, with the
//! read-ahead of that file system. All else is found by [`below`](forerun_surface::below).

use std::path::{Path, PathBuf};

use forerun_surface::below::mounts::{self, Mount};
use forerun_surface::below::sysfs::{Below, Sys};

use crate::failure::Failure;
use crate::files::plain;

/// An overlay may lie on an overlay; the kernel stacks two at most.
const OVERLAYS_MAX: u32 = 4;

/// File system and disks below a path, or a block device.
///
/// # Errors
/// A path that is not there, or a file system that cannot be tuned.
pub fn below(path: &Path) -> Result<Below, Failure> {
    let unusable = |e: std::io::Error| Failure::unusable(path, plain(&e));
    let real = path.canonicalize().map_err(unusable)?;
    let mounts = mounts::own_table().map_err(unusable)?;
    let sys = Sys::default();
    let below = match mounts::device_of(&real) {
        Some(device) => sys
            .of_block(device)
            .unwrap_or_else(|| Err("there is no such block device".to_owned())),
        None => find(&real, &mounts, &mounts::mount_id, OVERLAYS_MAX).and_then(|it| sys.of(it)),
    };
    below.map_err(|why| Failure::unusable(path, why))
}

type MountId<'a> = &'a dyn Fn(&Path) -> Option<u64>;

fn find<'a>(
    path: &Path,
    mounts: &'a [Mount],
    id: MountId<'_>,
    overlays: u32,
) -> Result<&'a Mount, String> {
    let mount = mounts::mount_of(path, mounts, id);
    let mount = mount.ok_or("its mount is not in /proc/self/mountinfo")?;
    if mount.kind == "overlay" {
        let layer = layer_of(path, mount)?;
        if overlays == 0 {
            return Err("overlays lie on overlays without an end".to_owned());
        }
        return find(&layer, mounts, id, overlays - 1)
            .map_err(|why| format!("overlayfs, whose layer {} is on {why}", layer.display()));
    }
    mount.refusal().map_or(Ok(mount), Err)
}

/// The path in the layer of an overlay that holds it, the upper one first, as the overlay shows it.
fn layer_of(path: &Path, overlay: &Mount) -> Result<PathBuf, String> {
    let below = path.strip_prefix(&overlay.point).unwrap_or(Path::new(""));
    let layers = layers(&overlay.options);
    let found = layers.iter().find(|layer| layer.join(below).exists());
    found.map(|layer| layer.join(below)).ok_or_else(|| {
        let names: Vec<_> = layers.iter().map(|l| l.display().to_string()).collect();
        format!(
            "overlayfs: none of its layers ({}) can be seen from here, as in a container: name a path on one of them",
            names.join(", ")
        )
    })
}

/// `upperdir=/u` and `lowerdir=/a:/b` (or `lowerdir+=/a`) among the options; colons of names are escaped.
fn layers(options: &str) -> Vec<PathBuf> {
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    for option in split_unescaped(options, ',') {
        if let Some(name) = option.strip_prefix("upperdir=") {
            upper.push(unescaped(name));
        } else if let Some(name) = option.strip_prefix("lowerdir+=") {
            lower.push(unescaped(name));
        } else if let Some(names) = option.strip_prefix("lowerdir=") {
            lower.extend(
                split_unescaped(names, ':')
                    .iter()
                    .map(|name| unescaped(name)),
            );
        }
    }
    upper.extend(lower.into_iter().filter(|name| !name.is_empty()));
    upper.into_iter().map(PathBuf::from).collect()
}

fn split_unescaped(text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut is_escaped) = (0, false);
    for (place, c) in text.char_indices() {
        if c == at && !is_escaped {
            parts.push(&text[begin..place]);
            begin = place + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[begin..]);
    parts
}

fn unescaped(text: &str) -> String {
    let mut is_escaped = false;
    let keep = |c: &char| {
        is_escaped = *c == '\\' && !is_escaped;
        !is_escaped
    };
    text.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        20 1 8:2 / / rw - ext4 /dev/sda2 rw\n\
        21 20 0:30 / /tmp rw - tmpfs tmpfs rw\n\
        22 20 0:31 / /z rw - zfs pool/z rw\n\
        23 20 0:32 / /export/a\\040b rw - nfs4 server:/export rw\n\
        24 20 8:2 /data /bound rw - ext4 /dev/sda2 rw\n\
        25 20 0:33 / /f rw - fuse.forerun forerun rw\n\
        26 20 0:40 / /merged rw - overlay overlay rw,lowerdir=/no\\134:lower:LOWER,upperdir=/none,workdir=/w\n\
        27 20 0:41 / /container rw - overlay overlay rw,lowerdir=/nowhere/1:/nowhere/2\n\
        no line of this form\n";

    fn found(path: &str, id: u64, mounts: &str) -> Result<Mount, String> {
        let mounts = mounts::parse(mounts.as_bytes());
        let id = |at: &Path| Some(if at == Path::new(path) { id } else { 20 });
        find(Path::new(path), &mounts, &id, OVERLAYS_MAX).cloned()
    }

    #[test]
    fn file_systems_that_cannot_be_tuned_are_named() {
        for (path, id, words) in [
            ("/tmp/a", 21, "tmpfs: its files are in memory"),
            ("/z/a", 22, "zfs: it reads ahead by itself"),
            ("/export/a b/c", 23, "nfs4: its files are another machine's"),
            ("/f/a", 25, "fuse.forerun: a daemon of FUSE"),
            (
                "/container/a",
                27,
                "overlayfs: none of its layers (/nowhere/1, /nowhere/2)",
            ),
            ("/a", 99, "not in /proc/self/mountinfo"),
        ] {
            let why = found(path, id, MOUNTS).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn an_overlay_is_followed_to_the_layer_that_holds_the_path() {
        let lower = tempfile::tempdir().unwrap();
        std::fs::create_dir(lower.path().join("x")).unwrap();
        let mounts = MOUNTS.replace("LOWER", lower.path().to_str().unwrap());
        assert_eq!(found("/merged/x", 26, &mounts).unwrap().device, (8, 2));
        let why = found("/merged/y", 26, &mounts).unwrap_err();
        assert!(why.contains("(/none, /no:lower, "), "{why}");
    }

    #[test]
    fn layers_are_read_in_both_forms_of_the_options() {
        let names = |options: &str| {
            let layers = layers(options);
            layers
                .iter()
                .map(|l| l.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("rw,lowerdir=/a:/b\\:c,upperdir=/u"),
            ["/u", "/a", "/b:c"]
        );
        assert_eq!(names("rw,lowerdir+=/a,lowerdir+=/b\\,c"), ["/a", "/b,c"]);
        assert_eq!(names("lowerdir=/a::/data"), ["/a", "/data"]);
    }
}
