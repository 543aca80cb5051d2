//! The names in the kernel's cache: a number for each path in each version.
//!
//! Used by the [file system](super). A node begins with the first look-up that finds its name in its
//! version, and ends when the kernel has forgotten it as often as it was looked up. Numbers are given once.
//!
//! ```text
//! found(1, "a", folder) = 2      found(2, "b", version x) = 3     again = 3, looked up twice
//! found(2, "b", version y) = 4   path(3) = path(4) = "a/b"        forget(3, 2): 3 is no more
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use forerun_io::source::tree::{Entry, Stat};
use rustix::io::Errno;

use crate::fs::nodes::{Node, ROOT};
use crate::fuse::forget::least;
use crate::lock;

/// The deepest path: a key has at most 1,024 bytes, so at most half as many names.
const DEPTH_MAX: usize = 512;

/// So many forgotten nodes had a MiB and more, which is worth a call.
const GIVEN_BACK_FROM: usize = 4096;

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Its folder.
    pub(super) parent: Node,
    /// Its name there.
    pub(super) name: Arc<str>,
    /// Its kind and version.
    pub(super) entry: Entry,
    /// When the store was asked last.
    pub(super) as_of: Instant,
    /// Of an object that was opened: whether a read failed since.
    doubted: Option<Arc<AtomicBool>>,
    lookups: u64,
}

#[derive(Debug)]
struct Table {
    nodes: HashMap<u64, Known>,
    /// The newest version of each name.
    names: HashMap<(u64, Arc<str>), u64>,
    last: u64,
    /// Nodes forgotten since memory was given back.
    forgotten: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Nodes(Mutex<Table>);

impl Default for Nodes {
    fn default() -> Self {
        let root = Known {
            parent: ROOT,
            name: "".into(),
            entry: Entry::Folder,
            as_of: Instant::now(),
            doubted: None,
            lookups: 1,
        };
        Self(Mutex::new(Table {
            nodes: HashMap::from([(ROOT.0, root)]),
            names: HashMap::new(),
            last: ROOT.0,
            forgotten: 0,
        }))
    }
}

/// Whether two looks found one version. A listing may not tell a version: then size and time must do.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    let tells = one.version.is_some() && other.version.is_some();
    one.bytes == other.bytes
        && match tells {
            true => one.version == other.version,
            false => one.modified == other.modified,
        }
}

fn is_same_entry(one: &Entry, other: &Entry) -> bool {
    match (one, other) {
        (Entry::Folder, Entry::Folder) => true,
        (Entry::Object(one), Entry::Object(other)) => is_same(one, other),
        _ => false,
    }
}

impl Nodes {
    /// A name was found as of this time, and the kernel is told of it: its newest version, which is another one if it was
    /// found later.
    pub(super) fn found(
        &self,
        parent: Node,
        name: &str,
        entry: &Entry,
        as_of: Instant,
    ) -> (Node, Known) {
        let mut table = lock(&self.0);
        let name: Arc<str> = name.into();
        let number = table.names.get(&(parent.0, name.clone())).copied();
        if let Some(number) = number
            && let Some(known) = table.nodes.get_mut(&number)
            && (is_same_entry(&known.entry, entry) || as_of < known.as_of)
        {
            known.lookups += 1;
            known.saw(entry, as_of);
            return (Node(number), known.clone());
        }
        table.last += 1;
        let number = table.last;
        let known = Known {
            parent,
            name: name.clone(),
            entry: entry.clone(),
            as_of,
            doubted: None,
            lookups: 1,
        };
        table.nodes.insert(number, known.clone());
        table.names.insert((parent.0, name), number);
        (Node(number), known)
    }

    /// A name whose answer is younger than this, and the kernel is told of it.
    pub(super) fn recall(
        &self,
        parent: Node,
        name: &str,
        believed: Duration,
    ) -> Option<(Node, Known)> {
        let mut table = lock(&self.0);
        let number = *table.names.get(&(parent.0, name.into()))?;
        let known = table.nodes.get_mut(&number)?;
        if known.as_of.elapsed() >= believed || known.is_doubted() {
            return None;
        }
        known.lookups += 1;
        Some((Node(number), known.clone()))
    }

    /// The mark of an object that is opened, to be set where a read of it fails: what was told of it is not believed
    /// then.
    pub(super) fn doubts(&self, node: Node) -> Option<Arc<AtomicBool>> {
        let mut table = lock(&self.0);
        let known = table.nodes.get_mut(&node.0)?;
        Some(known.doubted.get_or_insert_default().clone())
    }

    /// Whether a read of the newest version of a name failed since the store was asked for it.
    pub(super) fn is_doubted(&self, parent: Node, name: &str) -> bool {
        let table = lock(&self.0);
        let number = table.names.get(&(parent.0, name.into()));
        let known = number.and_then(|number| table.nodes.get(number));
        known.is_some_and(Known::is_doubted)
    }

    /// The store was asked for a node after a read of it had failed, and has it.
    pub(super) fn believe(&self, node: Node) {
        if let Some(known) = lock(&self.0).nodes.get_mut(&node.0) {
            known.doubted = None;
        }
    }

    /// The newest version of a name in the kernel's cache, however old the answer is.
    pub(super) fn newest(&self, parent: Node, name: &str) -> Option<Entry> {
        let table = lock(&self.0);
        let number = table.names.get(&(parent.0, name.into()))?;
        table.nodes.get(number).map(|known| known.entry.clone())
    }

    /// The store was asked for a node again, and has the same version as of this time.
    pub(super) fn saw(&self, node: Node, now: &Stat, as_of: Instant) {
        if let Some(known) = lock(&self.0).nodes.get_mut(&node.0) {
            known.saw(&Entry::Object(now.clone()), as_of);
        }
    }

    /// The kernel forgot a node this many times.
    pub(super) fn forget(&self, node: Node, lookups: u64) {
        let mut table = lock(&self.0);
        let Some(known) = table.nodes.get_mut(&node.0).filter(|_| node != ROOT) else {
            return;
        };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 {
            return;
        }
        let name = (known.parent.0, known.name.clone());
        table.nodes.remove(&node.0);
        table.forgotten += 1;
        if table.names.get(&name) == Some(&node.0) {
            table.names.remove(&name);
        }
    }

    /// Whether memory of so many nodes is free that it is worth while to give it back; once. Those that stay may be as
    /// many, since the kernel keeps the newest of a folder that was listed.
    pub(super) fn is_to_be_given_back(&self) -> bool {
        let mut table = lock(&self.0);
        if table.forgotten < GIVEN_BACK_FROM {
            return false;
        }
        table.forgotten = 0;
        let now = table.nodes.len();
        table.nodes.shrink_to(now * 2);
        table.names.shrink_to(now * 2);
        true
    }

    /// A node.
    ///
    /// # Errors
    /// `ESTALE` if it is none.
    pub(super) fn known(&self, node: Node) -> Result<Known, Errno> {
        let table = lock(&self.0);
        table.nodes.get(&node.0).cloned().ok_or(Errno::STALE)
    }

    /// The path of a node.
    ///
    /// # Errors
    /// `ESTALE` if it or a folder above it is none.
    pub(super) fn path(&self, node: Node) -> Result<String, Errno> {
        let table = lock(&self.0);
        let (mut names, mut at) = (Vec::new(), node);
        while at != ROOT {
            let known = table.nodes.get(&at.0).ok_or(Errno::STALE)?;
            if names.len() == DEPTH_MAX {
                return Err(Errno::NAMETOOLONG);
            }
            names.push(&*known.name);
            at = known.parent;
        }
        names.reverse();
        Ok(names.join("/"))
    }

    /// The path of a name in a folder.
    ///
    /// # Errors
    /// As [`path`](Self::path).
    pub(super) fn path_of(&self, parent: Node, name: &str) -> Result<String, Errno> {
        let folder = self.path(parent)?;
        Ok(match folder.is_empty() {
            true => name.to_owned(),
            false => format!("{folder}/{name}"),
        })
    }

    /// So many nodes with none below them, those first that the store was asked for longest ago.
    pub(super) fn least_needed(&self, count: usize, folders: bool) -> Vec<Node> {
        let table = lock(&self.0);
        let above: HashSet<u64> = table.nodes.values().map(|known| known.parent.0).collect();
        let idle = table.nodes.iter().filter(|(number, known)| {
            let is_kind = folders || !matches!(known.entry, Entry::Folder);
            is_kind && !above.contains(number)
        });
        let keyed = idle.map(|(number, known)| (known.as_of, Node(*number)));
        least(keyed.collect(), count)
    }

    /// How many there are, beside the root.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).nodes.len() - 1
    }
}

impl Known {
    /// Whether a read failed since the store was asked.
    pub(super) fn is_doubted(&self) -> bool {
        let is_set = |doubted: &Arc<AtomicBool>| doubted.load(Ordering::Relaxed);
        self.doubted.as_ref().is_some_and(is_set)
    }

    /// The store was asked again. A version that was not told before is told now.
    fn saw(&mut self, now: &Entry, as_of: Instant) {
        if as_of < self.as_of {
            return;
        }
        self.as_of = as_of;
        if let (Entry::Object(known), Entry::Object(now)) = (&mut self.entry, now)
            && known.version.is_none()
        {
            known.version.clone_from(&now.version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn found(nodes: &Nodes, parent: Node, name: &str, entry: &Entry) -> Node {
        nodes.found(parent, name, entry, Instant::now()).0
    }

    #[test]
    fn an_answer_that_is_older_than_the_newest_version_changes_nothing() {
        let nodes = Nodes::default();
        let old = Instant::now();
        let new = old + Duration::from_secs(60);
        let (node, _) = nodes.found(ROOT, "a", &object(1, Some("y")), new);
        let (again, known) = nodes.found(ROOT, "a", &object(2, Some("x")), old);
        assert_eq!((again, known.as_of), (node, new));
        assert_eq!(known.entry, object(1, Some("y")));
        let later = new + Duration::from_secs(1);
        let (other, _) = nodes.found(ROOT, "a", &object(2, Some("z")), later);
        assert_ne!(other, node);
        // The kernel was told of it twice.
        nodes.forget(node, 1);
        assert!(nodes.known(node).is_ok());
        nodes.forget(node, 1);
        assert!(nodes.known(node).is_err());
    }

    #[test]
    fn an_answer_is_recalled_while_it_is_believed_and_no_longer() {
        let nodes = Nodes::default();
        let entry = object(1, Some("x"));
        let node = found(&nodes, ROOT, "a", &entry);
        let recall = |name, believed| nodes.recall(ROOT, name, believed).map(|(node, _)| node);
        assert_eq!(recall("a", Duration::MAX), Some(node));
        assert_eq!(recall("a", Duration::ZERO), None);
        assert_eq!(recall("b", Duration::MAX), None);
        // The kernel was told of it twice.
        nodes.forget(node, 1);
        assert_eq!(recall("a", Duration::MAX), Some(node));
        nodes.forget(node, 2);
        assert_eq!(recall("a", Duration::MAX), None);
    }

    fn object(bytes: u64, version: Option<&str>) -> Entry {
        Entry::Object(Stat {
            bytes,
            modified: SystemTime::UNIX_EPOCH,
            version: version.map(Into::into),
        })
    }

    #[test]
    fn a_version_is_a_node_until_the_kernel_has_forgotten_it() {
        let nodes = Nodes::default();
        let folder = found(&nodes, ROOT, "a", &Entry::Folder);
        let one = found(&nodes, folder, "b", &object(1, Some("x")));
        assert_eq!(found(&nodes, folder, "b", &object(1, Some("x"))), one);
        let other = found(&nodes, folder, "b", &object(1, Some("y")));
        assert_ne!(one, other);
        assert_eq!(nodes.path(one).unwrap(), "a/b");
        nodes.forget(one, 1);
        assert!(nodes.known(one).is_ok());
        nodes.forget(one, 1);
        assert_eq!(nodes.known(one).unwrap_err(), Errno::STALE);
        assert_eq!(found(&nodes, folder, "b", &object(1, Some("y"))), other);
        assert_ne!(found(&nodes, folder, "b", &Entry::Folder), other);
        nodes.forget(ROOT, 7);
        assert_eq!(nodes.path(ROOT).unwrap(), "");
    }

    #[test]
    fn a_version_told_late_is_the_same_if_size_and_time_are() {
        let nodes = Nodes::default();
        let node = found(&nodes, ROOT, "a", &object(1, None));
        assert_eq!(found(&nodes, ROOT, "a", &object(1, Some("x"))), node);
        assert_eq!(nodes.known(node).unwrap().entry, object(1, Some("x")));
        assert_eq!(found(&nodes, ROOT, "a", &object(1, None)), node);
        assert_ne!(found(&nodes, ROOT, "a", &object(2, None)), node);
    }

    #[test]
    fn those_that_were_asked_for_longest_ago_are_forgotten_first_and_folders_after_their_names() {
        let nodes = Nodes::default();
        let folder = found(&nodes, ROOT, "a", &Entry::Folder);
        let below: Vec<Node> = (0..9)
            .map(|name| found(&nodes, folder, &name.to_string(), &object(1, Some("x"))))
            .collect();
        assert_eq!(nodes.least_needed(1, true), below[..1]);
        assert_eq!(nodes.least_needed(99, true).len(), 9);
        below.iter().for_each(|node| nodes.forget(*node, 1));
        assert_eq!(nodes.least_needed(99, true), [folder]);
        assert_eq!(nodes.least_needed(99, false), []);
    }

    #[test]
    fn memory_of_many_forgotten_nodes_is_given_back_once() {
        let nodes = Nodes::default();
        let name = |name: u64| found(&nodes, ROOT, &name.to_string(), &object(1, Some("x")));
        let found: Vec<Node> = (0..GIVEN_BACK_FROM as u64).map(name).collect();
        assert!(!nodes.is_to_be_given_back());
        found.iter().for_each(|node| nodes.forget(*node, 1));
        assert!(nodes.is_to_be_given_back());
        assert!(lock(&nodes.0).nodes.capacity() < 1000);
        assert!(!nodes.is_to_be_given_back());
    }

    /// As of a listed folder, of which the kernel keeps the newest names.
    #[test]
    fn memory_of_forgotten_nodes_is_given_back_though_as_many_stay() {
        for stay in [GIVEN_BACK_FROM / 2, GIVEN_BACK_FROM, 4 * GIVEN_BACK_FROM] {
            let nodes = Nodes::default();
            let name = |name: usize| found(&nodes, ROOT, &name.to_string(), &object(1, Some("x")));
            let found: Vec<Node> = (0..stay + GIVEN_BACK_FROM).map(name).collect();
            found[stay..].iter().for_each(|node| nodes.forget(*node, 1));
            assert!(nodes.is_to_be_given_back(), "{stay}");
            assert_eq!(nodes.count(), stay);
            assert!(!nodes.is_to_be_given_back(), "{stay}");
        }
    }

    #[test]
    fn numbers_are_given_once_and_all_ends_when_all_is_forgotten() {
        let nodes = Nodes::default();
        let mut given = Vec::new();
        for _ in 0..3 {
            let node = found(&nodes, ROOT, "a", &Entry::Folder);
            assert!(!given.contains(&node));
            given.push(node);
            nodes.forget(node, 1);
        }
        assert_eq!(nodes.count(), 0);
        assert!(lock(&nodes.0).names.is_empty());
    }
}
