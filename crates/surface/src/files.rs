//! Files of the user: a check for reading, and writing one whole or not at all.
//!
//! Called by every command that takes a path. [`check`] looks at a file before any work starts, so
//! that a missing last file stops a command before it printed the first; a file that goes away
//! later is the driver's to report. What is written must be none of what is read. [`NewFile`] writes to a file without a name
//! beside the target and names it at the end: a command that fails or is killed leaves the old file,
//! or none, and nothing else. A journal is of most use when its run hung or was killed: a [`RunFile`] is written
//! under its name as the run goes on, from [`RunFile::begin`] on. A journal replaces nothing but a journal.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forerun_core::journal::MAGIC;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, open};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Makes sure that a file can be read: it is there, a regular file or a block device, and opens.
///
/// # Errors
/// Says which of these does not hold.
pub fn check(path: &Path) -> Result<(), Failure> {
    let kind = fs::metadata(path)
        .map_err(|e| Failure::unusable(path, plain(&e)))?
        .file_type();
    if kind.is_dir() {
        return Err(Failure::unusable(path, "is a directory"));
    }
    // Opening a pipe or a terminal would wait for its other end, and neither can be read ahead.
    if !kind.is_file() && !kind.is_block_device() {
        return Err(Failure::unusable(
            path,
            "is neither a regular file nor a block device",
        ));
    }
    File::open(path).map_err(|e| Failure::unusable(path, plain(&e)))?;
    Ok(())
}

/// Opens a file that is read once from its start: here a pipe is as good.
///
/// # Errors
/// It is a directory, or cannot be opened.
pub fn open_stream(path: &Path) -> Result<File, Failure> {
    let unusable = |e: io::Error| Failure::unusable(path, plain(&e));
    let file = File::open(path).map_err(unusable)?;
    if file.metadata().map_err(unusable)?.is_dir() {
        return Err(Failure::unusable(path, "is a directory"));
    }
    Ok(file)
}

/// A small text file of the user, whole. Text has no control characters but tabs and line ends, so
/// a message may quote it on a terminal.
///
/// # Errors
/// It cannot be read, is larger than `bytes_max` or is not text.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = open_stream(path)?
        .take(bytes_max + 1)
        .read_to_end(&mut bytes);
    read.map_err(|e| Failure::unusable(path, plain(&e)))?;
    if bytes.len() as u64 > bytes_max {
        return Err(Failure::unusable(
            path,
            format!("larger than {bytes_max} bytes"),
        ));
    }
    let is_foreign = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains(is_foreign))
        .ok_or_else(|| Failure::unusable(path, "is not text"))
}

/// As many links as Linux follows.
const LINKS_MAX: usize = 40;

/// Standard output, as the value of a flag.
const STDOUT: &str = "-";

/// The file that a flag names; none for standard output, which is written `-`, as is the default of many.
#[must_use]
pub fn named(output: Option<&Path>) -> Option<&Path> {
    output.filter(|path| *path != Path::new(STDOUT))
}

/// Makes sure that no pipe is read under two names: each reader would get a part of it. `-` is standard input.
///
/// # Errors
/// One is named twice.
pub fn check_once(read: &[&Path]) -> Result<(), Failure> {
    let pipe = |path: &Path| {
        let there = match named(Some(path)) {
            Some(path) => fs::metadata(path).ok()?,
            None => fs::metadata("/dev/stdin").ok()?,
        };
        let is_pipe = there.file_type().is_fifo() || named(Some(path)).is_none();
        is_pipe.then(|| (there.dev(), there.ino()))
    };
    let pipes: Vec<Option<(u64, u64)>> = read.iter().map(|path| pipe(path)).collect();
    for (at, path) in read.iter().enumerate() {
        if pipes[at].is_some() && pipes[..at].contains(&pipes[at]) {
            return Err(Failure::unusable(
                path,
                "is named twice, and can be read only once",
            ));
        }
    }
    Ok(())
}

/// Makes sure that a name does not mean standard output, where a file is written that must be one.
///
/// # Errors
/// It does.
pub fn check_named(path: &Path) -> Result<(), Failure> {
    match named(Some(path)) {
        Some(_) => Ok(()),
        None => Err(Failure::unusable(
            path,
            "must be a file; one of this name is ./-",
        )),
    }
}

/// Makes sure that a file to be written is none of those to be read: it would replace them.
///
/// # Errors
/// It is.
pub fn check_not_read(target: Option<&Path>, read: &[PathBuf]) -> Result<(), Failure> {
    let identity = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|there| (there.dev(), there.ino()))
    };
    let Some((target, written)) = target.and_then(|path| Some((path, identity(path)?))) else {
        return Ok(());
    };
    if read.iter().any(|path| identity(path) == Some(written)) {
        return Err(Failure::unusable(
            target,
            "is to be read, so it is not written",
        ));
    }
    Ok(())
}

/// Makes sure that a file can be written, and that no directory and no disk is in its place.
///
/// # Errors
/// Says which of these does not hold.
pub fn check_target(target: &Path) -> Result<(), Failure> {
    check_named(target)?;
    match fs::metadata(target) {
        Ok(there) if there.is_dir() => Err(Failure::unusable(target, "is a directory")),
        // A few lines over the beginning of a disk are surely a mistake.
        Ok(there) if there.file_type().is_block_device() => {
            Err(Failure::unusable(target, "is a block device"))
        }
        Ok(_) => Ok(()),
        Err(_) => fs::metadata(folder_of(target))
            .map(drop)
            .map_err(|e| Failure::unusable(target, no_folder(&e))),
    }
}

/// Makes a folder for files that are written; the one above it must be there, as that of a file.
///
/// # Errors
/// It cannot be made, or is there and no folder.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    match fs::create_dir(folder) {
        Err(_) if folder.is_dir() => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::unusable(folder, "is not a directory"))
        }
        made => made.map_err(|e| Failure::unusable(folder, no_folder(&e))),
    }
}

/// Makes sure that a journal replaces nothing but a journal, of any version, or an empty file, and that no run writes to
/// it now; changes nothing.
///
/// # Errors
/// Another file has its name, another run writes to it, or it cannot be written there.
pub fn check_journal(target: &Path) -> Result<(), Failure> {
    check_target(target)?;
    if !target.is_file() {
        return match place_of(target) {
            Some(place) if place.exists() => Ok(()),
            // A file without a name is gone when it is closed.
            Some(place) => NewFile::create(&place).map(drop),
            None => RunFile::open(target).map(drop),
        };
    }
    let name = MAGIC.split_inclusive(' ').next().unwrap_or(MAGIC);
    let mut first = Vec::new();
    let file = open_stream(target)?;
    let read = file.take(name.len() as u64).read_to_end(&mut first);
    read.map_err(|e| Failure::unusable(target, plain(&e)))?;
    match first.is_empty() || first == name.as_bytes() {
        true => RunFile::open(target).map(drop),
        false => Err(Failure::unusable(
            target,
            "exists already and is no journal: a journal replaces journals only",
        )),
    }
}

/// The place of a file that is to be written, free of links, also if it is not there yet.
fn place_of(target: &Path) -> Option<PathBuf> {
    let mut target = target.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(there) = target.canonicalize() {
            return Some(there);
        }
        let folder = folder_of(&target).canonicalize().ok()?;
        let place = folder.join(target.file_name()?);
        // A link to a file that is not there makes that file.
        let Ok(link) = fs::read_link(&place) else {
            return Some(place);
        };
        target = folder.join(link);
    }
    None
}

/// Whether a file that is to be written lies in a folder, or is that file.
#[must_use]
pub fn is_within(target: &Path, folder: &Path) -> bool {
    let (target, folder) = (place_of(target), place_of(folder));
    matches!((target, folder), (Some(target), Some(folder)) if target.starts_with(&folder))
}

/// The message of an I/O error without its number.
#[must_use]
pub fn plain(error: &io::Error) -> String {
    match error.kind() {
        // Of the same kind as a missing right to the file, which it is not.
        _ if error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) => {
            "operation not permitted".to_owned()
        }
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "is not text".to_owned(),
        _ => {
            let text = error.to_string();
            let words = text.split(" (os error ").next();
            words.unwrap_or(&text).to_owned()
        }
    }
}

fn no_folder(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such directory".to_owned(),
        _ => plain(error),
    }
}

/// A file being written, which appears under its name when it is complete.
#[derive(Debug)]
pub struct NewFile {
    target: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Without a name until it is complete: it is gone with the process.
    Unnamed(File),
    /// To be renamed over the target, where files need a name.
    Beside(NamedTempFile),
    /// The target is there and no regular file (`/dev/null`, a pipe): written as it goes.
    Direct(File),
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    /// Its directory cannot be written.
    pub fn create(target: &Path) -> Result<Self, Failure> {
        let unusable = |e: io::Error| Failure::unusable(target, plain(&e));
        check_target(target)?;
        let place = match fs::metadata(target) {
            Ok(there) if !there.is_file() => {
                Place::Direct(File::options().write(true).open(target).map_err(unusable)?)
            }
            _ => Place::within(folder_of(target))
                .map_err(|e| Failure::unusable(target, no_folder(&e)))?,
        };
        Ok(Self {
            target: target.to_owned(),
            place,
        })
    }

    /// Begins a file in a folder that is made with it, at the end.
    ///
    /// # Errors
    /// The folder is there and cannot be written, or cannot be made.
    pub fn create_with_folder(target: &Path) -> Result<Self, Failure> {
        if folder_of(target).exists() {
            return Self::create(target);
        }
        let above = folder_of(target).ancestors().map(not_empty);
        let above = above.into_iter().find(|folder| folder.exists());
        let place = Place::within(above.unwrap_or(Path::new(".")));
        Ok(Self {
            target: target.to_owned(),
            place: place.map_err(|e| Failure::unusable(folder_of(target), no_folder(&e)))?,
        })
    }

    /// A handle to write to; several are one file with one position.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn writer(&self) -> Result<BufWriter<File>, Failure> {
        let file = match &self.place {
            Place::Beside(temporary) => temporary.as_file().try_clone(),
            Place::Unnamed(file) | Place::Direct(file) => file.try_clone(),
        };
        file.map(BufWriter::new)
            .map_err(|e| Failure::broken(&self.target, e))
    }

    /// Writes all of it, and gives it no name yet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, content: &[u8]) -> Result<(), Failure> {
        let mut writer = self.writer()?;
        let written = writer.write_all(content).and_then(|()| writer.flush());
        written.map_err(|e| Failure::broken(&self.target, plain(&e)))
    }

    /// Writes all of it and gives it its name.
    ///
    /// # Errors
    /// It cannot be written; the old one, if there was one, is untouched.
    pub fn write(self, content: &[u8]) -> Result<(), Failure> {
        self.put(content)?;
        self.finish()
    }

    /// Gives the file its name. Bytes written through [`NewFile::writer`] must be flushed.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn finish(self) -> Result<(), Failure> {
        let folder = folder_of(&self.target);
        let named = fs::create_dir_all(folder).and_then(|()| match self.place {
            Place::Beside(temporary) => {
                temporary.persist(&self.target)?;
                Ok(())
            }
            Place::Unnamed(file) => {
                // A link replaces nothing, and a rename does.
                let from = descriptor(&file);
                let link = |to: &Path| {
                    let linked = linkat(CWD, &from, CWD, to, AtFlags::SYMLINK_FOLLOW);
                    linked.map_err(io::Error::from)
                };
                let beside = beside().make_in(folder, link)?;
                beside.persist(&self.target)?;
                Ok(())
            }
            Place::Direct(_) => Ok(()),
        });
        named.map_err(|e: io::Error| Failure::broken(&self.target, plain(&e)))
    }
}

/// A file that is written under its own name while a run goes on. A run that does not come about leaves the file that was
/// there, or none: writes before [`RunFile::begin`] are kept until it, and dropped without it.
#[derive(Debug)]
pub struct RunFile {
    target: PathBuf,
    file: File,
    is_new: bool,
    before: Arc<Before>,
}

/// Lines written before a run has begun; none once it has.
type Before = Mutex<Option<Vec<u8>>>;

impl RunFile {
    /// Opens it, and changes nothing that is there. A link to a file that is not there makes that file.
    ///
    /// # Errors
    /// It cannot be written, or is written to already, by another run or option.
    pub fn open(target: &Path) -> Result<Self, Failure> {
        check_target(target)?;
        let is_new = !target.exists();
        let file = File::options()
            .write(true)
            .create(is_new)
            .truncate(false)
            .open(target);
        let file = file.map_err(|e| Failure::unusable(target, plain(&e)))?;
        let is_file = file.metadata().is_ok_and(|there| there.is_file());
        // Where a file system has no locks this is not seen.
        if is_file
            && flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
        {
            return Err(Failure::unusable(
                target,
                "is written to already, by another run or option",
            ));
        }
        Ok(Self {
            target: target.canonicalize().unwrap_or_else(|_| target.to_owned()),
            file,
            is_new: is_new && is_file,
            before: Arc::new(Mutex::new(Some(Vec::new()))),
        })
    }

    /// Opens a journal.
    ///
    /// # Errors
    /// It would replace a file that is none, or cannot be written.
    pub fn journal(target: &Path) -> Result<Self, Failure> {
        check_journal(target)?;
        Self::open(target)
    }

    /// A handle to write to.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn writer(&self) -> Result<RunWriter, Failure> {
        let file = self.file.try_clone();
        Ok(RunWriter {
            file: file.map_err(|e| Failure::broken(&self.target, e))?,
            before: self.before.clone(),
        })
    }

    /// The run has come about: the old content goes, and lines are written from now on, those kept first.
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn begin(&self) -> Result<(), Failure> {
        if self.file.metadata().is_ok_and(|there| there.is_file()) {
            let emptied = self.file.set_len(0);
            emptied.map_err(|e| Failure::broken(&self.target, plain(&e)))?;
        }
        // Lines of writers come behind these.
        let mut before = lock(&self.before);
        let lines = before.take().unwrap_or_default();
        let written = (&self.file).write_all(&lines);
        written.map_err(|e| Failure::broken(&self.target, plain(&e)))
    }
}

fn lock(before: &Before) -> MutexGuard<'_, Option<Vec<u8>>> {
    before.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if self.is_new && lock(&self.before).is_some() {
            let _ = fs::remove_file(&self.target);
        }
    }
}

/// Writes to a [`RunFile`].
#[derive(Debug)]
pub struct RunWriter {
    file: File,
    before: Arc<Before>,
}

impl Write for RunWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(before) = &mut *lock(&self.before) {
            return before.write(bytes);
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Place {
    /// A file in this folder without a name, or where the file system has none such, with one.
    fn within(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match open(folder, flags, Mode::from_raw_mode(0o666)).map(File::from) {
            Ok(file) if Path::new(&descriptor(&file)).exists() => Ok(Self::Unnamed(file)),
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                let mode = fs::Permissions::from_mode(0o666);
                beside()
                    .permissions(mode)
                    .tempfile_in(folder)
                    .map(Self::Beside)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// How a file that is open is found without a name of its own.
fn descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn beside() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".forerun-");
    builder
}

fn folder_of(target: &Path) -> &Path {
    not_empty(target.parent().unwrap_or(target))
}

/// The folder, which is the working directory if nothing is said.
fn not_empty(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_not_finished_leaves_the_old_one_and_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        NewFile::create(&target).unwrap().write(b"old").unwrap();
        {
            let file = NewFile::create(&target).unwrap();
            file.writer().unwrap().write_all(b"half").unwrap();
        }
        {
            let deep = folder.path().join("a/b/out");
            let file = NewFile::create_with_folder(&deep).unwrap();
            file.writer().unwrap().write_all(b"half").unwrap();
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        NewFile::create(&target).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        let deep = folder.path().join("a/b/out");
        let file = NewFile::create_with_folder(&deep).unwrap();
        file.write(b"whole").unwrap();
        assert_eq!(fs::read_to_string(&deep).unwrap(), "whole");
        assert!(NewFile::create_with_folder(&target.join("b")).is_err());
    }

    #[test]
    fn what_cannot_be_read_ahead_is_refused_before_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            check(folder.path())
                .unwrap_err()
                .to_string()
                .ends_with("is a directory")
        );
        let missing = folder.path().join("missing");
        assert!(
            check(&missing)
                .unwrap_err()
                .to_string()
                .ends_with("no such file")
        );
        assert!(
            check(Path::new("/dev/null"))
                .unwrap_err()
                .to_string()
                .contains("neither")
        );
    }

    #[test]
    fn a_file_that_is_read_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("a"), folder.path().join("b"));
        NewFile::create(&file).unwrap().write(b"a").unwrap();
        let read = [folder.path().join("./a")];
        assert!(check_not_read(Some(&file), &read).is_err());
        assert!(check_not_read(Some(&other), &read).is_ok());
        assert!(check_not_read(None, &read).is_ok());
    }

    #[test]
    fn a_journal_replaces_journals_only() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, content, is_replaced) in [
            ("empty", "", true),
            ("present", "forerun-journal 5\nsettings", true),
            ("older", "forerun-journal 1\n", true),
            ("film", "\0\0\0\u{18}ftyp", false),
            ("short", "forerun", false),
            ("alike", "forerun-journals\n", false),
        ] {
            fs::write(at(name), content).unwrap();
            std::os::unix::fs::symlink(at(name), at(&format!("to-{name}"))).unwrap();
            for name in [name.to_owned(), format!("to-{name}")] {
                assert_eq!(check_journal(&at(&name)).is_ok(), is_replaced, "{name}");
            }
        }
        assert!(check_journal(&at("new")).is_ok());
        assert!(check_journal(Path::new("/dev/null")).is_ok());
        let missing = check_journal(&at("missing/j")).unwrap_err().to_string();
        assert!(
            missing.ends_with("missing/j: no such directory"),
            "{missing}"
        );
        assert!(check_journal(folder.path()).is_err());
        let present = RunFile::journal(&at("to-present")).unwrap();
        let said = check_journal(&at("present")).unwrap_err().to_string();
        assert!(said.contains("is written to already"), "{said}");
        drop(present);
        assert!(check_journal(&at("present")).is_ok() && !at("new").exists());
        // No user makes files below /proc.
        for (to, name) in [
            ("/proc/new", "refused"),
            ("missing/new", "away"),
            ("round", "round"),
        ] {
            std::os::unix::fs::symlink(to, at(name)).unwrap();
            assert!(check_journal(&at(name)).is_err(), "{to}");
        }
        assert!(is_within(&at("new"), folder.path()) && !is_within(&at("new"), &at("other")));
    }

    #[test]
    fn a_folder_is_made_where_the_one_above_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        for (name, why) in [
            ("new", ""),
            ("new", ""),
            ("missing/new", "no such directory"),
            ("file", "is not a directory"),
            ("file/new", "not a directory"),
        ] {
            let made = make_folder(&at(name));
            let said = made.map_or_else(|e| e.to_string(), |()| String::new());
            assert!(said.to_lowercase().ends_with(why), "{name}: {said}");
            assert_eq!(said.is_empty(), why.is_empty(), "{name}: {said}");
        }
        assert!(at("new").is_dir() && !at("missing").exists());
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_lies_where_that_file_would() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("source")).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        link("source/new", "into");
        link("into", "again");
        link("new", "source/out");
        link("../beside", "source/away");
        link("round", "round");
        let is_in = |name| is_within(&at(name), &at("source"));
        assert!(is_in("into") && is_in("again") && is_in("source/out"));
        assert!(!is_in("source/away") && !is_in("round") && !is_in("new"));
    }

    #[test]
    fn a_file_has_one_run_that_writes_to_it_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        for names in [["link", "file"], ["file", "link"], ["file", "file"]] {
            let first = RunFile::open(&at(names[0])).unwrap();
            let second = RunFile::open(&at(names[1])).unwrap_err().to_string();
            assert!(
                second.ends_with("is written to already, by another run or option"),
                "{second}"
            );
            drop(first);
            assert!(!at("file").exists() && at("link").is_symlink());
        }
        let both = [(); 2].map(|()| RunFile::open(Path::new("/dev/null")));
        assert!(both.iter().all(Result::is_ok));
    }

    #[test]
    fn a_run_that_does_not_come_about_leaves_its_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new, at] = ["old", "new", "at"].map(|name| folder.path().join(name));
        fs::write(&old, "a long line").unwrap();
        let write = |path: &Path, begins: bool| {
            let file = RunFile::open(path).unwrap();
            if begins {
                file.begin().unwrap();
            }
            file.writer().unwrap().write_all(b"line").unwrap();
        };
        write(&old, false);
        write(&new, false);
        assert_eq!(fs::read_to_string(&old).unwrap(), "a long line");
        assert!(!new.exists());
        write(&old, true);
        write(&new, true);
        let file = RunFile::open(&at).unwrap();
        let mut writer = file.writer().unwrap();
        writer.write_all(b"first ").unwrap();
        assert_eq!(fs::read_to_string(&at).unwrap(), "");
        file.begin().unwrap();
        writer.write_all(b"second").unwrap();
        assert_eq!(fs::read_to_string(&at).unwrap(), "first second");
        drop(file);
        assert_eq!(fs::read_to_string(&old).unwrap(), "line");
        assert_eq!(fs::read_to_string(&new).unwrap(), "line");
    }

    #[test]
    fn a_text_file_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        assert!(
            read_text(&path, 4)
                .unwrap_err()
                .to_string()
                .ends_with("larger than 4 bytes")
        );
        // The limit cuts the second letter: its length is wrong, not its form.
        fs::write(&path, "éé").unwrap();
        assert!(
            read_text(&path, 2)
                .unwrap_err()
                .to_string()
                .ends_with("larger than 2 bytes")
        );
        fs::write(&path, "a\tb\r\n").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "a\tb\r\n");
        for binary in [&b"\xff\xfe"[..], b"a\0b", b"\x1b[2J"] {
            fs::write(&path, binary).unwrap();
            let said = read_text(&path, 5).unwrap_err().to_string();
            assert!(said.ends_with("is not text"), "{binary:?}: {said}");
        }
    }
}
