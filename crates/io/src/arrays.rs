//! The arrays of the files that are opened: asked for once a file, and a refusal is reported once.
//!
//! Between [`opening`](crate::opening) and [`geometry`](crate::geometry). A file that lies on one device needs no
//! map, nor one on an array that the user described.

use std::os::fd::BorrowedFd;
use std::sync::Once;

use crate::geometry::{Discovery, Geometry, Refusal};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Arrays {
    discovery: Option<Discovery>,
    said: Once,
}

impl Arrays {
    /// Whether any are to be looked for.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self {
            discovery: is_wanted.then(Discovery::default),
            said: Once::new(),
        }
    }

    /// The geometry of a local file that lies in strips on several devices.
    pub(crate) fn of(&self, file: BorrowedFd<'_>) -> Option<Geometry> {
        match self.discovery.as_ref()?.of(file) {
            Ok(geometry) => Some(geometry).filter(Geometry::is_striped),
            Err(refusal) => {
                self.say(&refusal);
                None
            }
        }
    }

    /// Names the reason why an array is not seen, if there may be one.
    fn say(&self, refusal: &Refusal) {
        match refusal {
            // No array, or no place at all: nothing is lost.
            Refusal::FileSystem(_) | Refusal::NotAFile | Refusal::Nowhere { .. } => {}
            refusal => self.said.call_once(|| {
                tracing::warn!(
                    "whether files lie on an array is not known: {refusal}; reading them as from one disk \
                     (--stripe says otherwise)"
                );
            }),
        }
    }
}
