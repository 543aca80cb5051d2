//! The suite of next-file methods finds methods that are wrong, each in one way.
//!
//! They are `history` with a defect, because it predicts, grows and forgets.

use std::sync::atomic::{AtomicU64, Ordering};

use forerun_baselines::next_file::LIST;
use forerun_core::FolderId;
use forerun_core::conformance::{self, Rule};
use forerun_core::folder::Folders;
use forerun_core::next_file::{Limits, NextFile, Opened, Place, RunId, Step};

/// The defect of a next-file method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Prediction {
    BeyondTheLast,
    Itself,
    FollowsChance,
    Remembers,
    GrowsWithoutRoom,
    CountsQuestions,
}

const FILES: &[(Rule, Prediction)] = &[
    (Rule::FileExists, Prediction::BeyondTheLast),
    (Rule::FileIsNext, Prediction::Itself),
    (Rule::RarelyByChance, Prediction::FollowsChance),
    (Rule::Forgets, Prediction::Remembers),
    (Rule::TablesBounded, Prediction::GrowsWithoutRoom),
    (Rule::Deterministic, Prediction::CountsQuestions),
];

/// History, but for one thing.
#[derive(Debug)]
struct Misleads {
    inner: Box<dyn NextFile>,
    lie: Prediction,
    questions: AtomicU64,
}

impl Misleads {
    fn boxed(lie: Prediction) -> Box<dyn NextFile> {
        Box::new(Self {
            inner: LIST[0].of(&[2, 256, 4096, 1000]),
            lie,
            questions: AtomicU64::new(0),
        })
    }
}

impl NextFile for Misleads {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn entered(&mut self, opened: &Opened, folders: &Folders) -> Step {
        let mut opened = *opened;
        opened.has_room |= self.lie == Prediction::GrowsWithoutRoom;
        let step = self.inner.entered(&opened, folders);
        match self.lie {
            Prediction::FollowsChance if opened.place.entry.is_multiple_of(64) => Step::Follows {
                run: RunId(0),
                carried: false,
            },
            _ => step,
        }
    }

    fn next(&self, run: RunId, after: Place, folders: &Folders) -> Option<Place> {
        let next = self.inner.next(run, after, folders)?;
        let asked = self.questions.fetch_add(1, Ordering::Relaxed);
        let entry = match self.lie {
            Prediction::BeyondTheLast => folders.get(next.folder)?.len(),
            Prediction::Itself => return Some(after),
            Prediction::CountsQuestions if asked % 7 == 3 => 0,
            _ => next.entry,
        };
        Some(Place { entry, ..next })
    }

    fn forget(&mut self, folder: FolderId) {
        if self.lie != Prediction::Remembers {
            self.inner.forget(folder);
        }
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

#[test]
fn a_next_file_method_that_lies_is_found() {
    for (rule, lie) in FILES {
        let make = || Misleads::boxed(*lie);
        let mut results = (0..20).map(|seed| conformance::next_file(&make, seed, &[]));
        let broken = results.find_map(Result::err).map(|broken| broken.rule);
        assert_eq!(broken, Some(*rule), "{lie:?}");
    }
}
