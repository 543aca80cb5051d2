//! `down`: undoes everything a bed made, from the last resource to the first.
//!
//! Called by `main`, by `up` when a step failed, and by `table` at its end. A resource
//! that cannot be undone does not stop it: the others are undone, the state stays, and `down` can
//! be tried again when, for example, a shell has left the file system.

use std::path::Path;

use crate::failure::Failure;
use crate::state::State;

/// Takes down the bed of a state directory.
///
/// # Errors
/// No bed there; resources that could not be undone, one line each.
pub fn run(folder: &Path) -> Result<(), Failure> {
    undo(State::open(folder)?)
}

/// Undoes the resources of a state, the last first, and removes it.
///
/// # Errors
/// Resources that could not be undone, one line each.
pub fn undo(state: State) -> Result<(), Failure> {
    let things = state.things().iter().rev();
    let failures: Vec<String> = things
        .filter_map(|thing| Some(format!("{thing}: {}", thing.undo().err()?)))
        .collect();
    if failures.is_empty() {
        return state.remove();
    }
    let kept = state.folder().display();
    let list = failures.join("\n  ");
    Err(Failure::Run(format!(
        "the bed in {kept} is not down:\n  {list}"
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::bed;
    use crate::thing::Thing;

    /// Folders in folders can only be removed from the inside out.
    #[test]
    fn the_last_thing_is_undone_first_and_a_second_down_finds_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (state_folder, outer) = (place.path().join("state"), place.path().join("a"));
        let bed = bed::parse(include_str!("../beds/disk.toml")).unwrap();
        let mut state = State::create(&state_folder, &bed).unwrap();
        for path in [outer.clone(), outer.join("b"), outer.join("b/c")] {
            state.record(Thing::Folder { path: path.clone() }).unwrap();
            fs::create_dir(path).unwrap();
        }
        // One that was written down, and the machine stopped before it was made.
        state
            .record(Thing::Folder {
                path: outer.join("d"),
            })
            .unwrap();
        drop(state);
        fs::write(outer.join("b/foreign"), "").unwrap();
        let said = run(&state_folder).unwrap_err().to_string();
        assert!(said.contains("not down") && said.contains("a/b"), "{said}");
        assert!(!outer.join("b/c").exists() && outer.join("b/foreign").exists());
        fs::remove_file(outer.join("b/foreign")).unwrap();
        run(&state_folder).unwrap();
        assert!(!outer.exists() && !state_folder.exists());
        assert!(
            run(&state_folder)
                .unwrap_err()
                .to_string()
                .contains("no bed is up")
        );
    }
}
