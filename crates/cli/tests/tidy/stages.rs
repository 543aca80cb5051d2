//! The order of the engine's stages: the list in its header, held by the calls in their files.

use super::{Files, words};

const ENGINE: &str = "crates/core/src/engine.rs";

/// Files beside the stages: reports, the list of work for stages above, tests.
const NO_STAGES: &[&str] = &["view", "work", "tests"];

/// Each call of a stage to one above it in the list, and each file that the list leaves out.
pub(super) fn stages(files: &Files) -> Vec<String> {
    let header = files.get(ENGINE).map_or("", String::as_str);
    let stages: Vec<(&str, String)> = listed(header)
        .into_iter()
        .map(|stage| (stage, text(files, stage)))
        .collect();
    let mut complaints = unlisted(files, header);
    for (at, (stage, text)) in stages.iter().enumerate() {
        if text.is_empty() {
            complaints.push(format!("{ENGINE}: no file of the stage {stage}"));
        }
        let own: Vec<&str> = methods(text).collect();
        for (above, above_text) in &stages[..at] {
            let calls = calls(text).filter(|name| !own.contains(name));
            for name in calls {
                if methods(above_text).any(|method| method == name) {
                    complaints.push(format!("{stage} calls {name} of {above}, a stage above it"));
                }
            }
        }
    }
    complaints
}

/// Files of the core that name the kind of a device. Two may: `kind.rs` says what follows from it, and a profile has
/// it as a field.
pub(super) fn kinds(files: &Files) -> Vec<String> {
    let core = files.iter().filter(|(path, _)| {
        let name = path.strip_prefix("crates/core/src/");
        name.is_some_and(|name| {
            !["kind.rs", "profile.rs"].contains(&name) && !name.contains("tests")
        })
    });
    let asking = core.filter(|(_, text)| text.contains("kind::Kind"));
    asking
        .map(|(path, _)| format!("{path}: asks for the kind of a device, not for a consequence"))
        .collect()
}

/// The first words of the lines in the header's block of text.
fn listed(engine: &str) -> Vec<&str> {
    let mut lines = engine.lines().map_while(|line| line.strip_prefix("//!"));
    let block = lines.by_ref().skip_while(|line| line.trim() != "```text");
    let block = block.skip(1).take_while(|line| line.trim() != "```");
    block
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// Stages with a file that the header does not name.
fn unlisted(files: &Files, header: &str) -> Vec<String> {
    let folder = format!("{}/", ENGINE.trim_end_matches(".rs"));
    let names = files.keys().filter_map(|path| path.strip_prefix(&*folder));
    let stages = names.filter_map(|path| path.split(['/', '.']).next());
    let known = listed(header);
    let unknown = stages.filter(|stage| !known.contains(stage) && !NO_STAGES.contains(stage));
    unknown
        .map(|stage| format!("{ENGINE}: its list has no stage {stage}"))
        .collect()
}

/// A stage's file and those of its folder, without tests.
fn text(files: &Files, stage: &str) -> String {
    let base = ENGINE.trim_end_matches(".rs");
    let (file, folder) = (format!("{base}/{stage}.rs"), format!("{base}/{stage}/"));
    let own = files
        .iter()
        .filter(|(path, _)| **path == file || path.starts_with(&folder));
    own.map(|(_, text)| text.split("#[cfg(test)]").next().unwrap_or_default())
        .collect()
}

/// Functions of a stage that take the engine.
fn methods(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| {
        let (name, arguments) = rest.split_once('(')?;
        let takes_self = ["&self", "&mut self"]
            .iter()
            .any(|this| arguments.trim_start().starts_with(this));
        let (_, name) = words(name).next().filter(|_| takes_self)?;
        Some(name)
    })
}

/// Functions that are called on the engine.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    ["self", "engine"].into_iter().flat_map(move |this| {
        text.split(this).skip(1).filter_map(|rest| {
            let rest = rest.trim_start().strip_prefix('.')?;
            let (name, _) = rest.split_once('(')?;
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then_some(name)
        })
    })
}
