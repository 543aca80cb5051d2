//! Extended attributes: those of the source, `trusted.*` for the privileged only.
//!
//! Part of the [file system](super). The kernel also requests access lists and checks by them, so
//! the answers are recorded.
//!
//! `ls -l` asks for two attributes of each file, a label and an access list, which hardly a file has. On file systems
//! whose lists of attributes are complete the list is asked for instead, and an empty one answers the next questions
//! about the file, too, for as long as its attributes are believed.
//!
//! ```text
//! label of a?   list of a: empty -> ENODATA      access list of a?   ENODATA
//! attributes of a, changed                       access list of a?   list of a: one -> its value
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{fstatfs, getxattr, listxattr, listxattr_query};
use rustix::io::Errno;

use super::nodes::Node;
use super::{SourceFs, XATTR_BYTES_MAX, beneath, opening};
use crate::lock;

/// How extended attributes begin that only the privileged see.
const TRUSTED: &[u8] = b"trusted.";

/// How labels begin: of a file that has none stored the system may make one.
const SECURITY: &[u8] = b"security.";

/// File systems of disks and memory, by the numbers of `statfs(2)`, which list all attributes of a file: ext4, XFS, Btrfs,
/// F2FS, tmpfs, and overlays of them. Others have some that are in no list.
const COMPLETE: [i64; 6] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0xF2F5_2010,
    0x0102_1994,
    0x794C_7630,
];

/// Whether a part of the system makes labels of files (SELinux, Smack).
static LABELS: LazyLock<bool> = LazyLock::new(|| {
    let known = std::fs::read_to_string("/proc/filesystems");
    known.map_or(true, |known| {
        known.contains("selinuxfs") || known.contains("smackfs")
    })
});

/// Whether lists of attributes are complete, by devices.
#[derive(Debug, Default)]
pub(super) struct Lists(Mutex<HashMap<(u32, u32), bool>>);

impl Lists {
    fn are_complete(&self, device: (u32, u32), file: &File) -> bool {
        if let Some(known) = lock(&self.0).get(&device) {
            return *known;
        }
        // Without the lock: its server may not answer.
        let number = fstatfs(file).map(|space| i64::from(space.f_type as u32));
        let is_complete = number.is_ok_and(|number| COMPLETE.contains(&number));
        lock(&self.0).insert(device, is_complete);
        is_complete
    }
}

/// Whether an attribute of this name is in a complete list if the file has it.
fn is_listed(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.starts_with(TRUSTED) && !(name.starts_with(SECURITY) && *LABELS)
}

impl SourceFs {
    /// An extended attribute; that there is none may be an answer of so long ago.
    ///
    /// # Errors
    /// `ENODATA` if there is none of that name.
    pub fn xattr(&self, node: Node, name: &OsStr, believed: Duration) -> Result<Vec<u8>, Errno> {
        let is_listed = is_listed(name);
        let found = match is_listed && self.nodes.is_bare(node, believed) {
            true => Err(Errno::NODATA),
            false => self.xattr_of_source(node, name, is_listed)?,
        };
        if name == opening::ACCESS_LIST {
            self.nodes.told_access_list(node, opening::digest(&found));
        }
        found
    }

    fn xattr_of_source(
        &self,
        node: Node,
        name: &OsStr,
        is_listed: bool,
    ) -> Result<Result<Vec<u8>, Errno>, Errno> {
        // Before the list is asked for: a change that the kernel is told of meanwhile counts.
        let (device, told) = self.nodes.device_and_told(node)?;
        let descriptor = self.descriptor(node)?;
        let path = beneath::path_of(&descriptor);
        if is_listed && self.lists.are_complete(device, &descriptor) {
            let asked = Instant::now();
            if listxattr_query(&path) == Ok(0) {
                self.nodes.found_bare(node, told, asked);
                return Ok(Err(Errno::NODATA));
            }
        }
        let mut value = vec![0; XATTR_BYTES_MAX];
        let found = getxattr(path, name, &mut value[..]);
        Ok(found.map(|bytes| {
            value.truncate(bytes);
            value
        }))
    }

    /// The names of all extended attributes, each with a zero byte behind it, as whoever
    /// `may_see_all` sees them in the source; others see no `trusted.*`.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn xattrs(&self, node: Node, may_see_all: bool) -> Result<Vec<u8>, Errno> {
        let descriptor = self.descriptor(node)?;
        let mut names = vec![0; XATTR_BYTES_MAX];
        let bytes = listxattr(beneath::path_of(&descriptor), &mut names[..])?;
        names.truncate(bytes);
        if !may_see_all {
            let all = names.split_inclusive(|byte| *byte == 0);
            names = all
                .filter(|name| !name.starts_with(TRUSTED))
                .flatten()
                .copied()
                .collect();
        }
        Ok(names)
    }
}
