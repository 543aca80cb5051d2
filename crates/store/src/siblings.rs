//! Names of one folder that are asked for one after the other, answered by pages of its listing.
//!
//! Problem: a program that walks a folder looks at each name again when the answers of the listing are too old. Name by
//! name that is a HEAD and a listing of one key each, 2,000 requests for 1,000 names, and a page of the listing has them
//! all.
//!
//! Mechanism: the second name of a folder that is asked for has the page listed that begins with it, and its other names
//! are answered from that page for as long as the asker believes answers. A page that answered no other name is followed
//! by names asked for alone: 1, then 2, 4, up to 64, until a page is of use again.
//!
//! ```text
//! k000   HEAD, and a listing of one key
//! k001   a page from k001 on: k001..k999
//! k002   of that page, without a request
//! ```
//!
//! The folder itself is looked at again as well, before its next name. Where pages of it were of use, the next one is
//! listed then, from the last name on: its names say that the folder is there.
//!
//! A page says that a name is missing, or is no folder, as far as its keys are in order and go beyond `name/`.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forerun_io::source::tree::{Age, Entry};
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::address::Address;
use crate::listing::{KEYS_MAX, LAST, stat};
use crate::pages::NAME_BYTES;
use crate::store::Store;
use crate::{Limits, asked};

/// All pages together, the newest one always: six of 1,000 names of 20 bytes.
const BYTES_MAX: usize = 1 << 20;

/// Pages, most: each look goes through them.
const PAGES_MAX: usize = 64;

/// Folders of which it is known whether pages are of use.
const FOLDERS_MAX: usize = 64;

/// Names asked for alone after a page without use, most.
const ALONE_MAX: u32 = 64;

/// For a page that another name waits for; longer, and it is asked for alone.
const WAIT: Duration = Duration::from_secs(1);

/// An answer, and its time.
type Recalled = (Option<Entry>, Instant);

/// A page of a folder's listing.
struct Page {
    folder: String,
    as_of: Instant,
    /// Names behind this are in it, up to the last key; without one, all.
    behind: String,
    last: Option<String>,
    /// Without an entry, a name that its own answer alone tells.
    entries: HashMap<String, Option<Entry>>,
    bytes: usize,
}

impl Page {
    /// None if it is of no use: its keys are in no order.
    fn of(
        address: &Address,
        folder: &str,
        behind: String,
        page: &PaginatedListResult,
    ) -> Option<Self> {
        let prefix = address.prefix();
        let below = |key: &str| Some(key.strip_prefix(&prefix)?.to_owned());
        let objects = page.result.objects.iter();
        let keys = objects.clone().map(|meta| meta.location.as_ref());
        let folders = page.result.common_prefixes.iter();
        let is_sorted = keys.clone().is_sorted() && folders.clone().is_sorted();
        let as_key = |folder: &str| Some(below(folder)? + "/");
        let ends = keys.filter_map(below);
        let ends = ends.chain(folders.clone().filter_map(|path| as_key(path.as_ref())));
        let last = ends.max();
        let mut entries = HashMap::new();
        for meta in objects {
            // An empty one of Azure may stand for a folder; and one without a version is not to be opened.
            let stat = stat(meta);
            let is_told = stat.version.is_some() && (address.scheme != "az" || meta.size > 0);
            let entry = is_told.then_some(Entry::Object(stat));
            // All but the object that stands for the folder itself.
            if let Some(name) = below(meta.location.as_ref()) {
                entries.insert(name, entry);
            }
        }
        for path in folders {
            entries.insert(below(path.as_ref())?, Some(Entry::Folder));
        }
        let goes_on = page.page_token.is_some();
        let bytes = entries.keys().map(|name| name.len() + NAME_BYTES).sum();
        (is_sorted && (last.is_some() || !goes_on)).then(|| Self {
            folder: folder.to_owned(),
            as_of: Instant::now(),
            behind,
            last: last.filter(|_| goes_on),
            entries,
            bytes,
        })
    }

    /// The entry of a name, if this page tells it.
    fn answer(&self, name: &str) -> Option<Option<Entry>> {
        let entry = match self.entries.get(name) {
            Some(Some(Entry::Folder)) => return Some(Some(Entry::Folder)),
            Some(entry) => Some(entry.clone()?),
            None => None,
        };
        let as_key = format!("{name}/");
        let is_in = name > self.behind.as_str() && self.last.as_ref().is_none_or(|l| as_key <= *l);
        is_in.then_some(entry)
    }
}

/// A folder some of whose names were asked for.
struct Folder {
    path: String,
    /// One page at a time.
    turn: Arc<Semaphore>,
    /// Names to ask for alone before the next page, now and after a page without use.
    alone: u32,
    penalty: u32,
    /// The name asked for last.
    last: String,
}

#[derive(Default)]
struct State {
    /// The newest last.
    pages: VecDeque<Page>,
    folders: VecDeque<Folder>,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Siblings(Mutex<State>);

impl fmt::Debug for Siblings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Siblings")
    }
}

impl Siblings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of a name in a folder, if a page tells it or can: none if it is to be asked for alone.
    pub(crate) async fn recall(
        &self,
        (store, limits): (&Arc<Store>, &Limits),
        (address, folder): (&Address, &str),
        name: &str,
        age: Age,
    ) -> Option<Recalled> {
        if age.present.is_zero() {
            return None;
        }
        let (walked, turn) = {
            let mut state = self.state();
            if let Some(known) = state.known(folder, name, age) {
                return Some(known);
            }
            match state.walked(folder, name) {
                Some(walked) => (Some(walked), None),
                None => (None, state.turn(folder)),
            }
        };
        if let Some(walked) = walked {
            return self.inside((store, limits), address, name, walked).await;
        }
        let turn = turn?;
        let _turn = timeout(WAIT, turn.acquire_owned()).await.ok()?.ok()?;
        if let Some(known) = self.state().known(folder, name, age) {
            return Some(known);
        }
        let behind = before(name);
        let listed = list(store, limits, address, &behind).await;
        let page = listed
            .ok()
            .and_then(|page| Page::of(address, folder, behind, &page));
        let mut state = self.state();
        let answer = page
            .as_ref()
            .and_then(|page| Some((page.answer(name)?, page.as_of)));
        state.listed(folder, page);
        answer
    }

    /// A folder that a program walks: there, if the page that it is at has names.
    async fn inside(
        &self,
        (store, limits): (&Arc<Store>, &Limits),
        above: &Address,
        name: &str,
        (path, last, turn): (String, String, Arc<Semaphore>),
    ) -> Option<Recalled> {
        let _turn = timeout(WAIT, turn.acquire_owned()).await.ok()?.ok()?;
        let address = above.below(name)?;
        let behind = before(&last);
        let page = list(store, limits, &address, &behind).await.ok()?;
        let page = Page::of(&address, &path, behind, &page);
        let page = page.filter(|page| !page.entries.is_empty());
        let as_of = page.as_ref().map(|page| page.as_of);
        self.state().listed(&path, page);
        Some((Some(Entry::Folder), as_of?))
    }
}

impl State {
    /// The answer of a page that is believed.
    fn known(&mut self, folder: &str, name: &str, age: Age) -> Option<Recalled> {
        let known = self.pages.iter().rev().find_map(|page| {
            let answer = (page.folder == folder).then(|| page.answer(name))??;
            let most = answer.as_ref().map_or(age.absent, |_| age.present);
            (page.as_of.elapsed() < most).then_some((answer, page.as_of))
        })?;
        if let Some(folder) = self.folder(folder) {
            (folder.alone, folder.penalty) = (0, 1);
            name.clone_into(&mut folder.last);
        }
        Some(known)
    }

    fn folder(&mut self, path: &str) -> Option<&mut Folder> {
        self.folders.iter_mut().find(|folder| folder.path == path)
    }

    /// The folder of this name, if the last page of it was of use: its path, the last name, and its turn.
    fn walked(&mut self, above: &str, name: &str) -> Option<(String, String, Arc<Semaphore>)> {
        let path = match above.is_empty() {
            true => name.to_owned(),
            false => format!("{above}/{name}"),
        };
        let folder = self.folder(&path)?;
        let is_walked = folder.alone == 0 && !folder.last.is_empty();
        is_walked.then(|| (path, folder.last.clone(), folder.turn.clone()))
    }

    /// The turn to list a page of this folder, unless the name is to be asked for alone.
    fn turn(&mut self, path: &str) -> Option<Arc<Semaphore>> {
        let Some(folder) = self.folder(path) else {
            if self.folders.len() == FOLDERS_MAX {
                self.folders.pop_front();
            }
            self.folders.push_back(Folder {
                path: path.to_owned(),
                turn: Arc::new(Semaphore::new(1)),
                alone: 0,
                penalty: 1,
                last: String::new(),
            });
            return None;
        };
        match folder.alone {
            0 => Some(folder.turn.clone()),
            _ => {
                folder.alone -= 1;
                None
            }
        }
    }

    /// A page was asked for; none came that is of use.
    fn listed(&mut self, path: &str, page: Option<Page>) {
        if let Some(folder) = self.folder(path) {
            folder.alone = folder.penalty;
            folder.penalty = (folder.penalty * 2).min(ALONE_MAX);
        }
        let Some(page) = page else { return };
        // An older one with the same names answers none of them any more.
        self.pages
            .retain(|old| old.folder != page.folder || old.behind != page.behind);
        self.pages.push_back(page);
        let mut bytes: usize = self.pages.iter().map(|page| page.bytes).sum();
        while self.pages.len() > PAGES_MAX || (bytes > BYTES_MAX && self.pages.len() > 1) {
            bytes -= self.pages.pop_front().map_or(0, |page| page.bytes);
        }
    }
}

/// The page of the names behind this one.
async fn list(
    store: &Arc<Store>,
    limits: &Limits,
    address: &Address,
    behind: &str,
) -> io::Result<PaginatedListResult> {
    let prefix = address.prefix();
    let options = PaginatedListOptions {
        delimiter: Some(Cow::Borrowed("/")),
        offset: (!behind.is_empty()).then(|| format!("{prefix}{behind}")),
        max_keys: Some(KEYS_MAX),
        ..PaginatedListOptions::default()
    };
    let ask = |with: Arc<crate::store::Connected>| {
        let (prefix, options) = (prefix.clone(), options.clone());
        async move { with.list(&prefix, options).await }
    };
    asked(store, limits, 1, ask).await
}

/// A text before a name, with few others between the two: keys in the order of their bytes have none closer.
fn before(name: &str) -> String {
    let mut before = name.to_owned();
    // Control characters stand in no key that has a name here.
    let last = before.pop().filter(|last| *last > ' ');
    let previous = last.map(|last| match last {
        '\u{e000}' => '\u{d7ff}',
        last => char::from_u32(last as u32 - 1).unwrap_or(last),
    });
    if let Some(previous) = previous {
        before.extend([previous, LAST]);
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::path::Path;
    use object_store::{Extensions, ListResult, ObjectMeta};

    fn page(objects: &[&str], folders: &[&str], goes_on: bool) -> PaginatedListResult {
        let meta = |name: &&str| ObjectMeta {
            location: Path::parse(format!("f/{name}")).unwrap(),
            last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
            size: 1,
            e_tag: Some("\"x\"".to_owned()),
            version: None,
        };
        PaginatedListResult {
            result: ListResult {
                common_prefixes: folders
                    .iter()
                    .map(|name| Path::parse(format!("f/{name}")).unwrap())
                    .collect(),
                objects: objects.iter().map(meta).collect(),
                extensions: Extensions::default(),
            },
            page_token: goes_on.then(|| "t".to_owned()),
        }
    }

    fn told(objects: &[&str], folders: &[&str], goes_on: bool, behind: &str) -> Option<Page> {
        let address = Address::of_folder("s3://b/f").unwrap();
        let listed = page(objects, folders, goes_on);
        Page::of(&address, "f", behind.to_owned(), &listed)
    }

    #[test]
    fn a_page_tells_names_it_is_sure_of() {
        let page = told(&["b", "c", "c-1"], &["a", "d"], true, "a").unwrap();
        let kind = |name| {
            let answer = page.answer(name);
            answer.map(|entry| entry.map(|entry| entry == Entry::Folder))
        };
        assert_eq!(kind("b"), Some(Some(false)));
        assert_eq!(kind("d"), Some(Some(true)));
        assert_eq!(kind("bb"), Some(None));
        // The folder `d/` is its last key, and `a` is before it.
        assert_eq!((kind("d0"), kind("e"), kind("A")), (None, None, None));
        assert_eq!(kind("a"), Some(Some(true)));
        let cut = told(&["b", "c", "c-1"], &[], true, "a").unwrap();
        assert!(cut.answer("b").is_some());
        // `c/` would come behind `c-1`.
        assert!(cut.answer("c").is_none() && cut.answer("c-1").is_none());
        let whole = told(&["b", "c", "c-1"], &[], false, "a").unwrap();
        assert!(whole.answer("c").is_some() && whole.answer("z") == Some(None));
        assert!(told(&["c", "b"], &[], false, "a").is_none());
        assert!(told(&[], &[], true, "a").is_none());
        assert_eq!(told(&[], &[], false, "a").unwrap().answer("b"), Some(None));
    }

    #[test]
    fn the_text_before_a_name_is_before_it_and_behind_the_name_before() {
        for (previous, name) in [
            ("k0122", "k0123"),
            ("a", "b"),
            ("ab", "ac"),
            ("x", "x "),
            ("\u{d7ff}", "\u{e000}"),
            ("ú", "û"),
        ] {
            let text = before(name);
            assert!(text.as_str() < name, "{name}: {text:?}");
            assert!(text.as_str() >= previous, "{name}: {text:?}");
        }
        assert_eq!(before("a b "), "a b");
    }

    #[test]
    fn pages_without_use_are_listed_ever_more_seldom_until_one_is() {
        let mut state = State::default();
        let mut turns = Vec::new();
        for name in 0..40 {
            if state.turn("f").is_some() {
                turns.push(name);
                state.listed("f", None);
            }
        }
        assert_eq!(turns, [1, 3, 6, 11, 20, 37]);
        state.listed("f", told(&["b"], &[], false, "a"));
        let (present, absent) = (Duration::MAX, Duration::ZERO);
        let age = Age { present, absent };
        assert!(state.known("f", "b", age).is_some());
        assert!(state.known("f", "c", age).is_none() && state.known("g", "b", age).is_none());
        assert!(state.turn("f").is_some());
        let absent = Duration::MAX;
        let age = Age { present, absent };
        assert_eq!(state.known("f", "c", age).unwrap().0, None);
    }

    #[test]
    fn pages_and_folders_have_bounds() {
        let mut state = State::default();
        for folder in 0..200 {
            let path = folder.to_string();
            state.turn(&path);
            let name = "n".repeat(200);
            let names: Vec<_> = (0..500)
                .map(|number| format!("{number:03}{name}"))
                .collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let page = told(&names[..folder], &[], false, "");
            state.listed(
                &path,
                page.map(|page| Page {
                    folder: path.clone(),
                    ..page
                }),
            );
            let bytes: usize = state.pages.iter().map(|page| page.bytes).sum();
            assert!(bytes <= BYTES_MAX && state.pages.len() <= PAGES_MAX);
            assert!(state.folders.len() <= FOLDERS_MAX);
        }
    }
}
