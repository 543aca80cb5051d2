//! Settings that stay: `--apply` and `--undo`.
//!
//! One record holds all that was applied since the boot, each with its value from before the first time. `--undo` puts
//! the values of one file system back; a value that another program has set since stays, and is printed.

use forerun_surface::undo::knob::Knob;
use forerun_surface::undo::record::{Change, Record, Restored, in_words};

use super::folder::Folder;
use super::trying;
use crate::failure::Failure;
use crate::files::plain;

/// Name of the record.
const NAME: &str = "tune-applied";

/// A value before and after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The value's file.
    pub knob: Knob,
    /// The value before.
    pub from: String,
    /// The value that it has since.
    pub to: String,
}

/// Sets values for good.
///
/// # Errors
/// A watch steers the read-ahead of this bdi; or a value is refused: those before it are put back.
pub fn apply(
    folder: &Folder,
    bdi: &str,
    values: &[(Knob, String)],
) -> Result<Vec<Applied>, Failure> {
    let _alone = folder.alone(bdi)?;
    let _lock = folder.lock()?;
    trying::clear(folder);
    let path = folder.path(NAME);
    let unusable = |e: std::io::Error| Failure::unusable(&path, plain(&e));
    let mut record = Record::open(&path).map_err(unusable)?;
    let earlier = record.changes().to_vec();
    let mut done = Vec::new();
    for (knob, value) in values {
        match set(&mut record, knob, value) {
            Ok(applied) => done.push(applied),
            Err(failure) => {
                undo_all(&done);
                record.replace(earlier).map_err(unusable)?;
                return Err(failure);
            }
        }
    }
    Ok(done)
}

/// Sets a value, with the record ahead of it.
fn set(record: &mut Record, knob: &Knob, value: &str) -> Result<Applied, Failure> {
    let broken = |e: std::io::Error| Failure::broken(knob.path(), plain(&e));
    let path = record.path().to_owned();
    let unusable = |e: std::io::Error| Failure::unusable(&path, plain(&e));
    let from = knob.read().map_err(broken)?;
    let mut known = record.changes().iter();
    let known = known.find(|change| &change.knob == knob && change.ours.contains(&from));
    // One that another program set since is the one to come back.
    let before = known.map_or_else(|| from.clone(), |change| change.before.clone());
    let ours = vec![from.clone(), value.to_owned()];
    record
        .note_of(knob, before.clone(), ours)
        .map_err(unusable)?;
    let to = knob.write(value).map_err(broken)?;
    record
        .note_of(knob, before, vec![to.clone()])
        .map_err(unusable)?;
    let knob = knob.clone();
    Ok(Applied { knob, from, to })
}

fn undo_all(done: &[Applied]) {
    for applied in done.iter().rev() {
        let change = Change {
            knob: applied.knob.clone(),
            before: applied.from.clone(),
            ours: vec![applied.to.clone()],
            count: 0,
        };
        if let Some(line) = in_words(&change, &change.restore()) {
            tracing::error!("{line}");
        }
    }
}

/// Puts the values of these files back, and forgets them.
///
/// # Errors
/// A watch steers the read-ahead of this bdi, or none of them was applied since the boot.
pub fn undo(
    folder: &Folder,
    bdi: &str,
    knobs: &[Knob],
) -> Result<Vec<(Change, Restored)>, Failure> {
    let _alone = folder.alone(bdi)?;
    let _lock = folder.lock()?;
    trying::clear(folder);
    let path = folder.path(NAME);
    let unusable = |e: std::io::Error| Failure::unusable(&path, plain(&e));
    let mut record = Record::open(&path).map_err(unusable)?;
    let changes = record.changes().iter().cloned();
    let (here, others): (Vec<Change>, Vec<Change>) =
        changes.partition(|change| knobs.contains(&change.knob));
    if here.is_empty() {
        return Err(Failure::Usage(
            "--undo: nothing was applied here since the system was started".to_owned(),
        ));
    }
    let restored = here.into_iter().rev().map(|change| {
        let how = change.restore();
        (change, how)
    });
    let restored = restored.collect();
    record.replace(others).map_err(unusable)?;
    Ok(restored)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::environment::Environment;
    use forerun_surface::undo::knob::{READ_AHEAD, SCHEDULER};

    const BDI: &str = "8:0";

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
            apply(&folder, BDI, &[(a.clone(), value.to_owned())]).unwrap();
        };
        set("1024");
        set("2048");
        apply(&folder, BDI, &[(b.clone(), "512".to_owned())]).unwrap();
        let restored = undo(&folder, BDI, std::slice::from_ref(&a)).unwrap();
        assert_eq!((restored.len(), &restored[0].1), (1, &Restored::Back));
        assert_eq!(
            (a.read().unwrap(), b.read().unwrap()),
            ("128".into(), "512".into())
        );
        assert!(matches!(
            undo(&folder, BDI, std::slice::from_ref(&a)),
            Err(Failure::Usage(_))
        ));
        // A value that an administrator set in between comes back, not the one of before that.
        set("1024");
        fs::write(a.path(), "4096").unwrap();
        set("2048");
        undo(&folder, BDI, std::slice::from_ref(&a)).unwrap();
        assert_eq!(a.read().unwrap(), "4096");
    }

    #[test]
    fn a_value_that_is_refused_takes_those_before_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let a = knob(dir.path(), READ_AHEAD, "128");
        let gone = Knob::new(dir.path().join("gone").join(SCHEDULER));
        let values = [(a.clone(), "1024".to_owned()), (gone, "bfq".to_owned())];
        apply(&folder, BDI, &values).unwrap_err();
        assert_eq!(a.read().unwrap(), "128");
        assert!(matches!(undo(&folder, BDI, &[a]), Err(Failure::Usage(_))));
    }

    #[test]
    fn nothing_is_applied_or_undone_beside_a_process_that_changes_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let a = knob(dir.path(), READ_AHEAD, "128");
        let values = [(a.clone(), "1024".to_owned())];
        let watch = folder.alone(BDI).unwrap();
        for refused in [
            apply(&folder, BDI, &values).unwrap_err(),
            undo(&folder, BDI, std::slice::from_ref(&a)).unwrap_err(),
        ] {
            let process = format!("(process {})", std::process::id());
            let said = refused.to_string();
            assert!(
                said.contains("bdi 8:0 is changed by ") && said.contains(&process),
                "{said}"
            );
        }
        assert_eq!(a.read().unwrap(), "128");
        apply(&folder, "8:16", &values).unwrap();
        drop(watch);
        undo(&folder, BDI, std::slice::from_ref(&a)).unwrap();
        assert_eq!(a.read().unwrap(), "128");
    }
}
