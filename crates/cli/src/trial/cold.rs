//! Files out of the page cache, and whether they are.
//!
//! `POSIX_FADV_DONTNEED` drops the clean pages of a file that no program has mapped. On a file
//! system that is memory (tmpfs) nothing is dropped, and a trial would compare copying; so a sample
//! of places is looked at: [`crate::resident`].

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::files::{Chosen, Part};
use crate::failure::Failure;
use crate::files::plain;
use crate::resident;

/// Drops the pages of these parts' files.
///
/// # Errors
/// A file that cannot be opened.
pub fn drop_pages(chosen: &Chosen, parts: &[Vec<Part>]) -> Result<(), Failure> {
    let files: BTreeSet<&Path> = parts
        .iter()
        .flatten()
        .map(|part| part.file.as_path())
        .collect();
    for name in files {
        let path = chosen.folder.join(name);
        let failed = |e: std::io::Error| Failure::broken(&path, plain(&e));
        let file = File::open(&path).map_err(failed)?;
        // Without an offset and a length it is the whole file.
        fadvise(&file, 0, None, Advice::DontNeed).map_err(|e| failed(e.into()))?;
    }
    Ok(())
}

/// How much of the files is in the page cache, in percent of the places looked at.
#[must_use]
pub fn resident_percent(chosen: &Chosen) -> usize {
    resident::percent(&chosen.folder, &chosen.files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_just_read_is_resident() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 8 << 20]).unwrap();
        let chosen = Chosen::of(folder.path()).unwrap();
        File::open(folder.path().join("a"))
            .unwrap()
            .sync_all()
            .unwrap();
        std::fs::read(folder.path().join("a")).unwrap();
        if resident_percent(&chosen) < 90 {
            println!("this file system does not tell: nothing tried");
            return;
        }
        drop_pages(&chosen, &chosen.divide(1, 0, 1)).unwrap();
        println!("{} % resident after", resident_percent(&chosen));
    }
}
