//! History: files are opened again in an order in which they were opened before, whatever it is.
//!
//! A data loader's second epoch, a build that is repeated. Remembered is which file each opener
//! opened after which:
//!
//! ```text
//! opener 7:  f3 -> f9 -> f1 -> f4          links f3:f9  f9:f1  f1:f4
//! later:     f3 .. f9 .. f1                two right predictions: followed, f4 is next
//! ```
//!
//! One file has one successor, the latest. The table holds `links` of them; a full one, or one that
//! has no room, forgets the oldest for each new one. So an order longer than the table is never
//! predicted, and no two orders that share files. A wrong prediction ends a run at once.
//!
//! Griffioen and Appleton (USENIX Summer 1994) predict files by the opens that followed soon; this
//! is their graph with one arrow a file, because a loader's order has one.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use forerun_core::folder::Folders;
use forerun_core::next_file::{
    BYTES, CONFIRM, FILES, Limits, NextFile, Opened, Place, RunId, Step,
};
use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, FolderId};

pub(super) const METHOD: Method<Box<dyn NextFile>> = Method {
    spec: Spec {
        name: "history",
        summary: "files opened in the order in which they were opened before",
        source: "griffioen94, one successor a file; design note 0011",
        unfit: "first passes, and orders that change",
        knows: Knows::Online,
        params: &[
            CONFIRM,
            FILES,
            BYTES,
            Param {
                name: "links",
                summary: "files whose successor is remembered; 65,536 are the largest folder and 6 MiB",
                default: 1 << 16,
                min: 1,
                max: 1 << 20,
            },
        ],
    },
    build: |values| {
        Box::new(History {
            confirm: values.get("confirm"),
            limits: Limits {
                files: u32::try_from(values.get("files")).unwrap_or(u32::MAX),
                bytes: Bytes(values.get("bytes")),
            },
            links_max: usize::try_from(values.get("links")).unwrap_or(usize::MAX),
            links: BTreeMap::new(),
            order: VecDeque::new(),
            openers: VecDeque::new(),
        })
    },
};

/// Openers told apart; the one that opened nothing for longest gives way. A loader has some dozens
/// of threads.
const OPENERS_MAX: usize = 64;
/// Memory charged for a link: its entry in the map, at least half full, and in the queue.
const LINK_BYTES: u64 = 96;

/// Where an opener is.
#[derive(Clone, Copy, Debug)]
struct Opener {
    number: u64,
    last: Place,
    /// Right predictions in a row.
    right: u64,
}

#[derive(Debug)]
struct History {
    confirm: u64,
    limits: Limits,
    links_max: usize,
    links: BTreeMap<Place, Place>,
    /// Files with a link, the oldest first.
    order: VecDeque<Place>,
    /// The one that opened something last is last.
    openers: VecDeque<Opener>,
}

impl History {
    fn link(&mut self, from: Place, to: Place, has_room: bool) {
        if let Some(next) = self.links.get_mut(&from) {
            *next = to;
            return;
        }
        if self.links.len() >= self.links_max || !has_room {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.links.remove(&oldest);
        }
        self.links.insert(from, to);
        self.order.push_back(from);
    }

    /// Takes an opener out of the list, to be put back last.
    fn take(&mut self, number: u64) -> Option<Opener> {
        let at = self.openers.iter().position(|o| o.number == number)?;
        self.openers.remove(at)
    }
}

impl NextFile for History {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn entered(&mut self, opened: &Opened, _: &Folders) -> Step {
        let (place, number) = (opened.place, opened.opener);
        let run = RunId(number);
        let Some(mut opener) = self.take(number) else {
            if self.openers.len() == OPENERS_MAX {
                self.openers.pop_front();
            }
            let (last, right) = (place, 0);
            self.openers.push_back(Opener {
                number,
                last,
                right,
            });
            return Step::Unsure;
        };
        let mut step = Step::Unsure;
        if opener.last != place {
            let was_followed = opener.right >= self.confirm;
            if self.links.get(&opener.last) == Some(&place) {
                opener.right += 1;
            } else {
                opener.right = 0;
                self.link(opener.last, place, opened.has_room);
            }
            let carried = false;
            if opener.right >= self.confirm {
                step = Step::Follows { run, carried };
            } else if was_followed {
                step = Step::Breaks(run);
            }
            opener.last = place;
        }
        self.openers.push_back(opener);
        step
    }

    fn next(&self, _: RunId, after: Place, folders: &Folders) -> Option<Place> {
        let next = *self.links.get(&after)?;
        folders.entry(next).map(|_| next)
    }

    fn forget(&mut self, folder: FolderId) {
        self.openers.retain(|opener| opener.last.folder != folder);
        let stays = |from: &Place, to: &Place| from.folder != folder && to.folder != folder;
        self.links.retain(|from, to| stays(from, to));
        let links = &self.links;
        self.order.retain(|from| links.contains_key(from));
    }

    fn bytes(&self) -> u64 {
        LINK_BYTES * self.links.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::next_file::Entry;

    #[test]
    fn a_repeated_order_is_followed_and_another_one_breaks_it() {
        let mut folders = Folders::default();
        folders.list(FolderId(0), [Entry::default(); 20].into_iter().collect());
        let mut method = METHOD.of(&[2, 256, 4096, 100]);
        let mut open = |entry, opener| {
            let folder = FolderId(0);
            let place = Place { folder, entry };
            let pass = folders.open(place).unwrap();
            let opened = Opened {
                place,
                opener,
                pass,
                has_room: true,
            };
            let step = method.entered(&opened, &folders);
            (step, method.next(RunId(opener), place, &folders))
        };
        for entry in [3, 9, 1, 4, 7] {
            assert_eq!(open(entry, 7), (Step::Unsure, None));
            open(19 - entry, 8);
        }
        assert_eq!(open(3, 7).0, Step::Unsure);
        assert_eq!(open(9, 7).0, Step::Unsure);
        let follows = Step::Follows {
            run: RunId(7),
            carried: false,
        };
        let folder = FolderId(0);
        let four = Place { folder, entry: 4 };
        assert_eq!(open(1, 7), (follows, Some(four)));
        assert_eq!(open(2, 7).0, Step::Breaks(RunId(7)));
    }
}
