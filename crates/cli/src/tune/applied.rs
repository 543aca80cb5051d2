//! Settings that stay: `--apply` and `--undo`.
//!
//! One record holds all that was applied since the boot, each with its value from before the first time. `--undo` puts
//! the values of one file system back; a value that somebody else has set since stays, and is said.

use std::path::Path;

use super::knob::Knob;
use super::record::{Change, Folder, Record, Restored, in_words};
use super::trying;
use crate::failure::Failure;
use crate::files::plain;

/// Name of the record.
const NAME: &str = "tune-applied.json";

/// A value before and after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The value's file.
    pub knob: Knob,
    /// What it was just now.
    pub from: String,
    /// What it is.
    pub to: String,
}

/// Sets values for good.
///
/// # Errors
/// A value that is refused; those before it are put back.
pub fn apply(folder: &Folder, values: &[(Knob, String)]) -> Result<Vec<Applied>, Failure> {
    let _lock = folder.lock()?;
    trying::clear(folder);
    let path = folder.path(NAME);
    let unusable = |e: std::io::Error| Failure::unusable(&path, plain(&e));
    let mut record = Record::load(&path)
        .map_err(unusable)?
        .unwrap_or_else(|| Record::new(Vec::new()));
    let earlier = record.clone();
    let mut done = Vec::new();
    for (knob, value) in values {
        match set(&mut record, &path, knob, value) {
            Ok(applied) => done.push(applied),
            Err(failure) => {
                undo_all(&done);
                earlier.save(&path).map_err(unusable)?;
                return Err(failure);
            }
        }
    }
    Ok(done)
}

/// Sets a value, with the record ahead of it.
fn set(record: &mut Record, path: &Path, knob: &Knob, value: &str) -> Result<Applied, Failure> {
    let broken = |e: std::io::Error| Failure::broken(knob.path(), plain(&e));
    let unusable = |e: std::io::Error| Failure::unusable(path, plain(&e));
    let from = knob.read().map_err(broken)?;
    note(record, knob, &from, value);
    record.save(path).map_err(unusable)?;
    let to = knob.write(value).map_err(broken)?;
    let mut changes = record.changes.iter_mut();
    if let Some(change) = changes.find(|change| &change.knob == knob) {
        change.ours = vec![to.clone()];
    }
    record.save(path).map_err(unusable)?;
    let knob = knob.clone();
    Ok(Applied { knob, from, to })
}

/// Writes into the record that a value was this and may be that.
fn note(record: &mut Record, knob: &Knob, present: &str, next: &str) {
    let ours = vec![present.to_owned(), next.to_owned()];
    let known = record
        .changes
        .iter_mut()
        .find(|change| &change.knob == knob);
    match known {
        Some(change) if change.ours.iter().any(|ours| ours == present) => change.ours = ours,
        Some(change) => {
            // Somebody else set it since: that value is the one to come back.
            change.before = present.to_owned();
            change.ours = ours;
        }
        None => record.changes.push(Change {
            knob: knob.clone(),
            before: present.to_owned(),
            ours,
        }),
    }
}

fn undo_all(done: &[Applied]) {
    for applied in done.iter().rev() {
        let change = Change {
            knob: applied.knob.clone(),
            before: applied.from.clone(),
            ours: vec![applied.to.clone()],
        };
        if let Some(line) = in_words(&change, &change.restore()) {
            tracing::error!("{line}");
        }
    }
}

/// Puts the values of these files back, and forgets them.
///
/// # Errors
/// None of them was applied since the boot.
pub fn undo(folder: &Folder, knobs: &[Knob]) -> Result<Vec<(Change, Restored)>, Failure> {
    let _lock = folder.lock()?;
    trying::clear(folder);
    let path = folder.path(NAME);
    let unusable = |e: std::io::Error| Failure::unusable(&path, plain(&e));
    let record = Record::load(&path).map_err(unusable)?;
    let mut record = record.unwrap_or_else(|| Record::new(Vec::new()));
    let is_here = |change: &Change| knobs.contains(&change.knob);
    let (here, others) = record.changes.into_iter().partition(is_here);
    record.changes = others;
    let here = Record::new(here);
    if here.changes.is_empty() {
        return Err(Failure::Usage(
            "--undo: nothing was applied here since the system was started".to_owned(),
        ));
    }
    let restored = here.restore();
    record.save(&path).map_err(unusable)?;
    Ok(restored)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::environment::Environment;
    use crate::tune::knob::{READ_AHEAD, SCHEDULER};

    fn knob(folder: &Path, name: &str, value: &str) -> Knob {
        fs::create_dir_all(folder).unwrap();
        let knob = Knob::new(folder.join(name));
        fs::write(knob.path(), value).unwrap();
        knob
    }

    fn folder(path: &Path) -> Folder {
        Folder::of(&Environment {
            forerun_runtime_dir: Some(path.join("run").into()),
            ..Environment::default()
        })
    }

    #[test]
    fn undo_puts_back_what_was_before_the_first_apply() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let a = knob(&dir.path().join("a"), READ_AHEAD, "128");
        let b = knob(&dir.path().join("b"), READ_AHEAD, "8192");
        let set = |value: &str| {
            apply(&folder, &[(a.clone(), value.to_owned())]).unwrap();
        };
        set("1024");
        set("2048");
        apply(&folder, &[(b.clone(), "512".to_owned())]).unwrap();
        let restored = undo(&folder, std::slice::from_ref(&a)).unwrap();
        assert_eq!((restored.len(), &restored[0].1), (1, &Restored::Back));
        assert_eq!(
            (a.read().unwrap(), b.read().unwrap()),
            ("128".into(), "512".into())
        );
        assert!(matches!(
            undo(&folder, std::slice::from_ref(&a)),
            Err(Failure::Usage(_))
        ));
        // A value that an administrator set in between comes back, not the one of before that.
        set("1024");
        fs::write(a.path(), "4096").unwrap();
        set("2048");
        undo(&folder, std::slice::from_ref(&a)).unwrap();
        assert_eq!(a.read().unwrap(), "4096");
    }

    #[test]
    fn a_value_that_is_refused_takes_those_before_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let a = knob(dir.path(), READ_AHEAD, "128");
        let gone = Knob::new(dir.path().join("gone").join(SCHEDULER));
        let values = [(a.clone(), "1024".to_owned()), (gone, "bfq".to_owned())];
        apply(&folder, &values).unwrap_err();
        assert_eq!(a.read().unwrap(), "128");
        assert!(matches!(undo(&folder, &[a]), Err(Failure::Usage(_))));
    }
}
