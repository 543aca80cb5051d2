//! The crates that each crate may depend on: the table of `docs/ARCHITECTURE.md`, held by its manifests.

use super::Files;

/// The dependencies allowed between crates, and the crates that may depend on listed ones only.
struct Allowed {
    manifest: &'static str,
    ours: &'static [&'static str],
    foreign: Foreign,
}

enum Foreign {
    Any,
    Only(&'static [&'static str]),
}

const fn any(manifest: &'static str, ours: &'static [&'static str]) -> Allowed {
    let foreign = Foreign::Any;
    Allowed {
        manifest,
        ours,
        foreign,
    }
}

const fn only(
    manifest: &'static str,
    ours: &'static [&'static str],
    foreign: &'static [&'static str],
) -> Allowed {
    let foreign = Foreign::Only(foreign);
    Allowed {
        manifest,
        ours,
        foreign,
    }
}

const CORE: &str = "forerun-core";
const BASELINES: &str = "forerun-baselines";
const SIM: &str = "forerun-sim";
const IO: &str = "forerun-io";
const SURFACE: &str = "forerun-surface";
const PACKERS: &[&str] = &["flate2", "lzma-rust2", "ruzstd", "serde", "toml"];
const EMULATED: &str = "forerun-emulated";
const MOUNT: &str = "forerun-mount";
const STEERING: &str = "forerun-steering";
const WATCH: &str = "forerun-watch";
const CLI: &str = "forerun";
const LAB: &str = "forerun-lab";
const STORE: &str = "forerun-store";
const COMMANDS: &str = "forerun";
const ALL: &[&str] = &[
    CORE, BASELINES, SIM, IO, EMULATED, SURFACE, MOUNT, STEERING, WATCH, STORE,
];

/// Crates that stand above others, and the tests of these on them.
const IN_TESTS: &[(&str, &str)] = &[
    ("crates/core/Cargo.toml", BASELINES),
    ("crates/io/Cargo.toml", BASELINES),
    ("crates/io/Cargo.toml", EMULATED),
    ("crates/watch/Cargo.toml", SIM),
];

const DEPENDENCIES: &[Allowed] = &[
    only("crates/core/Cargo.toml", &[], &[]),
    only("crates/baselines/Cargo.toml", &[CORE], &[]),
    only("crates/steering/Cargo.toml", &[CORE, BASELINES], &[]),
    only(
        "crates/sim/Cargo.toml",
        &[CORE, BASELINES, STEERING],
        PACKERS,
    ),
    any("crates/io/Cargo.toml", &[CORE]),
    any("crates/emulated/Cargo.toml", &[CORE, IO, SIM]),
    any("crates/surface/Cargo.toml", &[CORE, IO]),
    any("crates/store/Cargo.toml", &[CORE, IO]),
    any("crates/object-store/Cargo.toml", &[CORE, IO]),
    any("crates/mount/Cargo.toml", &[CORE, IO, SURFACE]),
    any("crates/watch/Cargo.toml", &[CORE, IO, STEERING, SURFACE]),
    any("crates/lab/Cargo.toml", &[CORE, BASELINES, SIM, SURFACE]),
    any("crates/cli/Cargo.toml", ALL),
    any("crates/reproduce/Cargo.toml", &[CLI, CORE, LAB]),
    any("crates/bed/Cargo.toml", &[CORE, SIM, EMULATED, SURFACE]),
    only(
        "python/Cargo.toml",
        &[
            CORE, BASELINES, IO, SIM, EMULATED, SURFACE, LAB, STORE, COMMANDS,
        ],
        &["pyo3", "rustix", "serde_json", "tracing-subscriber"],
    ),
];

/// Crates see only the crates they may see. Development dependencies count for our own crates,
/// but not for foreign ones.
pub(crate) fn dependencies(files: &Files) -> Vec<String> {
    let mut complaints = Vec::new();
    for path in files.keys() {
        let inside = path
            .strip_prefix("crates/")
            .and_then(|p| p.strip_suffix("/Cargo.toml"));
        let listed = DEPENDENCIES.iter().any(|allowed| allowed.manifest == path);
        if inside.is_some_and(|name| !name.contains('/')) && !listed {
            complaints.push(format!("{path}: tidy has no dependencies listed for it"));
        }
    }
    for Allowed {
        manifest,
        ours,
        foreign,
    } in DEPENDENCIES
    {
        let Some(text) = files.get(*manifest) else {
            continue;
        };
        let table: toml::Table = text.parse().expect("a manifest");
        let mut tables = vec![&table];
        if let Some(targets) = table.get("target").and_then(toml::Value::as_table) {
            tables.extend(targets.values().filter_map(toml::Value::as_table));
        }
        for table in tables {
            for (kind, ours_only) in [
                ("dependencies", false),
                ("build-dependencies", false),
                ("dev-dependencies", true),
            ] {
                let names = table.get(kind).and_then(toml::Value::as_table);
                for name in names.into_iter().flat_map(toml::Table::keys) {
                    let fine = if name == "forerun" || name.starts_with("forerun-") {
                        let is_test = kind == "dev-dependencies";
                        let name = name.as_str();
                        ours.contains(&name) || is_test && IN_TESTS.contains(&(*manifest, name))
                    } else {
                        match foreign {
                            Foreign::Any => true,
                            Foreign::Only(names) => ours_only || names.contains(&name.as_str()),
                        }
                    };
                    if !fine {
                        complaints.push(format!("{manifest}: {kind} may not name {name}"));
                    }
                }
            }
        }
    }
    complaints
}
