//! Lock files: each has the dependencies that the manifests of its packages name. Cargo writes a stale one anew without
//! a word, or refuses it (`--locked`); for the workspaces of examples no test would do either.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Files;

fn parsed(text: &str) -> Table {
    text.parse().expect("a manifest or lock file")
}

/// The dependencies of a package that no feature decides on.
fn needed(manifest: &Table) -> Vec<String> {
    let named = manifest.get("dependencies").and_then(Value::as_table);
    let named = named.into_iter().flatten();
    let needed = named.filter(|(_, how)| how.get("optional") != Some(&Value::Boolean(true)));
    let packages = needed.map(|(name, how)| {
        let renamed = how.get("package").and_then(Value::as_str);
        renamed.unwrap_or(name).to_owned()
    });
    packages.collect()
}

pub(crate) fn locks(files: &Files) -> Vec<String> {
    let mut packages = BTreeMap::new();
    for (path, text) in files {
        if path.ends_with("Cargo.toml") {
            let manifest = parsed(text);
            let name = manifest.get("package").and_then(|own| own.get("name"));
            if let Some(name) = name.and_then(Value::as_str) {
                packages.insert(name.to_owned(), needed(&manifest));
            }
        }
    }
    let mut complaints = Vec::new();
    for (path, text) in files {
        if !path.ends_with("Cargo.lock") {
            continue;
        }
        let lock = parsed(text);
        let locked = lock.get("package").and_then(Value::as_array);
        for package in locked.into_iter().flatten() {
            let name = package.get("name").and_then(Value::as_str).unwrap_or("");
            // One with a source is of a registry, whatever its name.
            let needed = match package.get("source") {
                Some(_) => None,
                None => packages.get(name),
            };
            let has = package.get("dependencies").and_then(Value::as_array);
            let has = has.into_iter().flatten().filter_map(Value::as_str);
            let has: Vec<&str> = has.filter_map(|one| one.split(' ').next()).collect();
            for one in needed.into_iter().flatten() {
                if !has.contains(&one.as_str()) {
                    complaints.push(format!(
                        "{path}: {name} depends on {one}, which it does not have"
                    ));
                }
            }
        }
    }
    complaints
}
