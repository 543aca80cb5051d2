//! Extended attributes: those of the source, `trusted.*` for the privileged only.
//!
//! Part of the [file system](super). The kernel also requests access lists and checks by them, so
//! the answers are recorded.

use std::ffi::OsStr;

use rustix::io::Errno;

use super::nodes::Node;
use super::{SourceFs, XATTR_BYTES_MAX, beneath, opening};

/// How extended attributes begin that only the privileged see.
const TRUSTED: &[u8] = b"trusted.";

impl SourceFs {
    /// An extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none of that name.
    pub fn xattr(&self, node: Node, name: &OsStr) -> Result<Vec<u8>, Errno> {
        let descriptor = self.descriptor(node)?;
        let mut value = vec![0; XATTR_BYTES_MAX];
        let path = beneath::path_of(&descriptor);
        let found = rustix::fs::getxattr(path, name, &mut value[..]);
        let found = found.map(|bytes| {
            value.truncate(bytes);
            value
        });
        if name == opening::ACCESS_LIST {
            self.nodes.told_access_list(node, opening::digest(&found));
        }
        found
    }

    /// The names of all extended attributes, each with a zero byte behind it, as whoever
    /// `may_see_all` sees them in the source; others see no `trusted.*`.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn xattrs(&self, node: Node, may_see_all: bool) -> Result<Vec<u8>, Errno> {
        let descriptor = self.descriptor(node)?;
        let mut names = vec![0; XATTR_BYTES_MAX];
        let bytes = rustix::fs::listxattr(beneath::path_of(&descriptor), &mut names[..])?;
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
