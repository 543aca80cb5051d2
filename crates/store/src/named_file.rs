//! Files that variables and profiles name: keys, tokens, logins.
//!
//! A pipe in the place of one would keep its reader for ever, and a device might have no end, so only files are read,
//! of at most [`BYTES_MAX`] bytes; the open itself does not wait either. `/dev/null` is an empty file: so programs are
//! told to have none (`AWS_CONFIG_FILE=/dev/null`).

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Longest file, in bytes: 10,000 profiles.
pub(crate) const BYTES_MAX: u64 = 4 << 20;

/// The device number of `/dev/null`, in whatever name it has.
const NULL: u64 = libc::makedev(1, 3);

/// Opens a file; its length.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.file_type().is_char_device() && metadata.rdev() == NULL {
        return Ok((file, 0));
    }
    let refused = match metadata.len() {
        _ if metadata.is_dir() => "a directory in place of a file".to_owned(),
        _ if !metadata.is_file() => "a pipe or a device in place of a file".to_owned(),
        length if length > BYTES_MAX => {
            format!("{length} bytes, more than {} MiB", BYTES_MAX >> 20)
        }
        length => return Ok((file, length)),
    };
    Err(io::Error::other(refused))
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read, is longer than [`BYTES_MAX`], or is no file.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let (file, length) = open(path)?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| io::Error::other("no text of UTF-8"))
}

/// Whether a path may be read by a library that does not look: it is not there, or this module
/// would read it.
///
/// # Errors
/// The thing that stands there instead, in words.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => match open(path) {
            Err(error) if error.raw_os_error().is_none() => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn pipes_devices_folders_and_long_files_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        File::create(at("long"))
            .unwrap()
            .set_len(BYTES_MAX + 1)
            .unwrap();
        std::fs::write(at("file"), "text").unwrap();
        for path in [at("pipe"), "/dev/zero".into(), at("long")] {
            assert!(bytes(&path).is_err(), "{}", path.display());
            let why = check(&path).unwrap_err();
            assert!(why.contains(path.to_str().unwrap()), "{why}");
        }
        assert!(bytes(folder.path()).is_err());
        assert_eq!(check(folder.path()), Ok(()), "a library says so");
        assert_eq!(check(&at("absent")), Ok(()));
        assert_eq!(text(&at("file")).unwrap(), "text");
        assert_eq!(text(Path::new("/dev/null")).unwrap(), "");
        assert_eq!(check(Path::new("/dev/null")), Ok(()));
    }
}
