//! None: no file is opened ahead. The baseline, and the default.
//!
//! The engine does not keep folders for it.

use alloc::boxed::Box;

use super::{Limits, NextFile, Opened, Place, RunId, Step};
use crate::folder::Folders;
use crate::spec::{Knows, Method, Spec};
use crate::units::{Bytes, FolderId};

pub(crate) const METHOD: Method<Box<dyn NextFile>> = Method {
    spec: Spec {
        name: "none",
        summary: "no file is opened ahead",
        source: "baseline",
        unfit: "folders of small files",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Nothing),
};

#[derive(Debug)]
struct Nothing;

impl NextFile for Nothing {
    fn limits(&self) -> Limits {
        Limits {
            files: 0,
            bytes: Bytes(0),
        }
    }

    fn entered(&mut self, _: &Opened, _: &Folders) -> Step {
        Step::Unsure
    }

    fn next(&self, _: RunId, _: Place, _: &Folders) -> Option<Place> {
        None
    }

    fn forget(&mut self, _: FolderId) {}
}
