//! Tables: the mounts that processes see, by which a descriptor's file system is known.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use forerun_surface::below::mounts::{own_table, table_of};

use crate::mounts;

/// Tables that are remembered.
const TABLES_MAX: usize = 256;
/// A table is read again at most that often where a descriptor is not found.
const MOUNTS_EVERY: Duration = Duration::from_secs(1);

/// Which mounts a table has: a mount namespace, and a root in it. The table of a process leaves out mounts outside
/// of its root.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct View {
    namespace: PathBuf,
    /// None for our namespace and our root: the paths of all its processes are told from there.
    root: Option<PathBuf>,
}

/// A mount of a file system.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) number: u64,
    pub(super) device: u32,
    /// Its folder there, and where it is mounted, from the root of the namespace.
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Tables {
    /// Of each view: when its table was read, and its mounts.
    tables: HashMap<View, (Instant, Vec<Mounted>)>,
    /// The mount namespace of this process.
    own: Option<PathBuf>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            tables: HashMap::new(),
            own: fs::read_link("/proc/self/ns/mnt").ok(),
        }
    }
}

impl Tables {
    /// The mounts that a process sees.
    pub(super) fn view(&self, process: u32) -> io::Result<View> {
        let namespace = fs::read_link(format!("/proc/{process}/ns/mnt"))?;
        let root = match self.own.as_ref() == Some(&namespace) {
            true => None,
            false => Some(fs::read_link(format!("/proc/{process}/root"))?),
        };
        Ok(View { namespace, root })
    }

    /// Whether a table was read.
    pub(super) fn has(&self, view: &View) -> bool {
        self.tables.contains_key(view)
    }

    /// The mount of this number.
    pub(super) fn mount(&self, view: &View, number: u64) -> Option<&Mounted> {
        let (_, table) = self.tables.get(view)?;
        table.iter().find(|of| of.number == number)
    }

    /// Reads the table that a process sees, unless that was done just before. One that cannot be read stays as it is.
    pub(super) fn read_old(&mut self, process: u32, view: &View) {
        let read = self.tables.get(view).map(|(read, _)| read.elapsed());
        if read.is_some_and(|since| since < MOUNTS_EVERY) {
            return;
        }
        let table = match view.root {
            None => own_table(),
            Some(_) => table_of(process),
        };
        let Ok(table) = table else {
            return;
        };
        if self.tables.len() >= TABLES_MAX {
            self.tables.clear();
        }
        let table = table.into_iter().map(|mount| Mounted {
            number: mount.id,
            device: mounts::packed(mount.device),
            root: mount.root,
            point: match (&view.root, mount.point.strip_prefix("/")) {
                (Some(root), Ok(point)) => root.join(point),
                _ => mount.point,
            },
        });
        self.tables
            .insert(view.clone(), (Instant::now(), table.collect()));
    }

    /// A table that was read then.
    #[cfg(test)]
    pub(super) fn with(process: u32, read: Instant, mounts: Vec<Mounted>) -> Self {
        let mut own = Self::default();
        let view = own.view(process).unwrap();
        own.tables.insert(view, (read, mounts));
        own
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::thread;

    use forerun_surface::below::mounts::mount_id;

    use super::*;

    /// Does this with a thread that has a namespace of its own where that is wanted, and one of the same namespace that has
    /// no mount below its root.
    #[expect(unsafe_code, reason = "unshare has no safe interface")]
    fn beside(is_apart: bool, act: impl FnOnce(u32, u32) + Send) -> io::Result<()> {
        let unshare = |namespaces| {
            // SAFETY: the thread has its own working directory and mounts from then on, and the same memory and files.
            match unsafe { libc::unshare(namespaces) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        let number = || -> u32 {
            let own = fs::read_link("/proc/thread-self").unwrap();
            own.file_name().unwrap().to_str().unwrap().parse().unwrap()
        };
        let folder = tempfile::tempdir()?;
        let confined = |tell: &dyn Fn(u32), wait: &dyn Fn()| {
            let own = number();
            unshare(libc::CLONE_FS)?;
            rustix::process::chroot(folder.path())?;
            tell(own);
            wait();
            Ok(())
        };
        thread::scope(|scope| {
            let whole = scope.spawn(|| {
                unshare(libc::CLONE_FS | if is_apart { libc::CLONE_NEWNS } else { 0 })?;
                let ((tell, told), (end, ended)) = (channel(), channel::<()>());
                thread::scope(|scope| {
                    let confined = scope.spawn(move || {
                        confined(&|of| tell.send(of).unwrap(), &|| {
                            let _ = ended.recv();
                        })
                    });
                    if let Ok(of) = told.recv() {
                        act(number(), of);
                    }
                    drop(end);
                    confined.join().unwrap()
                })
            });
            whole.join().unwrap()
        })
    }

    #[test]
    fn a_process_with_another_root_hides_no_mount_from_others() {
        for is_apart in [false, true] {
            let mut tables = Tables::default();
            let looked = beside(is_apart, |whole, confined| {
                let views = [confined, whole].map(|of| tables.view(of).unwrap());
                // In another namespace it has another number.
                let root = format!("/proc/{whole}/root");
                let root = mount_id(Path::new(&root)).unwrap();
                tables.read_old(confined, &views[0]);
                tables.read_old(whole, &views[1]);
                let point = |view| Some(&*tables.mount(view, root)?.point);
                assert_eq!(point(&views[1]), Some(Path::new("/")), "{is_apart}");
            });
            if let Err(error) = looked {
                return crate::skipped::skipped(format!("another root: {error}"));
            }
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_stays_as_it_is() {
        let mut tables = Tables::default();
        let view = View {
            namespace: "mnt:[1]".into(),
            root: Some("/".into()),
        };
        tables.read_old(u32::MAX, &view);
        assert!(!tables.has(&view));
        tables.read_old(std::process::id(), &view);
        assert!(tables.has(&view));
        let old = Instant::now().checked_sub(MOUNTS_EVERY).unwrap();
        tables.tables.get_mut(&view).unwrap().0 = old;
        tables.read_old(u32::MAX, &view);
        assert!(!tables.tables[&view].1.is_empty());
    }

    #[test]
    fn points_are_told_from_the_root_of_the_namespace() {
        let mut tables = Tables::default();
        let own = std::process::id();
        let mut points = |root: &str| {
            let view = View {
                namespace: "mnt:[1]".into(),
                root: Some(root.into()),
            };
            tables.read_old(own, &view);
            let proc = mount_id(Path::new("/proc")).unwrap();
            tables.mount(&view, proc).unwrap().point.clone()
        };
        assert_eq!(points("/"), Path::new("/proc"));
        assert_eq!(points("/jail"), Path::new("/jail/proc"));
    }
}
