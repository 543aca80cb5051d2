//! Tidy: the house rules that a program can check, as ordinary tests.
//!
//! Reads the repository it was built from; calls nothing of the project. Each rule is a function
//! from the files to a list of complaints, so that it runs twice: over the repository, where it
//! must find nothing, and over a made-up file that breaks it, where it must find exactly that
//! (a rule that cannot fail holds nothing). The reasons stand in `docs/STYLE.md`.
//!
//! Words that must not occur in the repository are spelled in two halves here.
//!
//! It does not judge names, prose or design: that is what a reader is for.

#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/locks.rs"]
mod locks;
#[path = "tidy/stages.rs"]
mod stages;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dependencies::dependencies;
use locks::locks;
use stages::{kinds, stages};

/// A module header longer than this is a document and belongs in `docs`.
const HEADER_LINES_MAX: usize = 25;
/// Beyond this a file has more than one purpose.
const FILE_LINES_MAX: usize = 600;

/// Names that do not tell a file's contents.
const NAMELESS: &str = "manager helper util common handler processor data info";

/// Folders of Rust sources to which the rules apply.
const SOURCES: &[&str] = &["crates/", "python/src/"];

/// Crates and files in which unsafe code may stand.
const UNSAFE_CRATES: &[&str] = &[
    "crates/io/",
    "crates/watch/",
    "python/src/buffer.rs",
    "python/src/deferred.rs",
];

/// Crate roots in which the compiler itself refuses unsafe code.
const FORBID_ROOTS: &[&str] = &[
    "crates/core/src/lib.rs",
    "crates/baselines/src/lib.rs",
    "crates/sim/src/lib.rs",
];

/// The families: `<folder>.rs` holds the interface and the list, `<folder>/` one file a member. A
/// member that is a family of its own needs no entry.
const FAMILIES: &[(&str, &str)] = &[
    (
        "crates/core/src",
        "detect depth dispatch hinted/policy next_file reclaim",
    ),
    (
        "crates/baselines/src",
        "detect depth dispatch hinted measure next_file reclaim shape",
    ),
    (
        "crates/sim/src",
        "device trace/format device/scheduler workload",
    ),
    ("crates/io/src", "backend"),
];

/// The paths of the families.
fn family_paths() -> Vec<String> {
    let paths = |(folder, names): &(&str, &str)| {
        let path = |name| format!("{folder}/{name}");
        names.split(' ').map(path).collect::<Vec<_>>()
    };
    FAMILIES.iter().flat_map(paths).collect()
}

/// Leftovers of unfinished work: text, and whether it must stand as a word of its own.
fn leftovers() -> [(String, bool); 7] {
    let halves = |a: &str, b: &str, whole| ([a, b].concat(), whole);
    [
        halves("TO", "DO", true),
        halves("FIX", "ME", true),
        halves("XX", "X", true),
        halves("to", "do!(", false),
        halves("unimple", "mented!(", false),
        halves("db", "g!(", false),
        halves("#[ig", "nore", false),
    ]
}

/// Text files by path relative to the repository, `/` between the parts.
type Files = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn repository() -> Files {
    let mut files = Files::new();
    walk(&root(), "", &mut files);
    assert!(
        files.contains_key("Cargo.toml"),
        "not run from its repository"
    );
    files
}

fn walk(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let entry = entry.expect("a readable entry");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let (path, kind) = (entry.path(), entry.file_type().expect("a file type"));
        if kind.is_dir() {
            // Cargo marks its target folders, wherever they are.
            let built = name == "target" || path.join("CACHEDIR.TAG").exists();
            if !built && (!name.starts_with('.') || name == ".ci") {
                walk(&path, &format!("{prefix}{name}/"), files);
            }
        } else if kind.is_file()
            && (name == "Makefile"
                || prefix == ".ci/"
                || [".rs", ".md", ".toml", ".lock", ".py", ".sh"]
                    .iter()
                    .any(|end| name.ends_with(end)))
        {
            let text = fs::read_to_string(&path).expect("text in UTF-8");
            files.insert(format!("{prefix}{name}"), text);
        }
    }
}

fn rust(files: &Files) -> impl Iterator<Item = (&String, &String)> {
    files
        .iter()
        .filter(|(path, _)| SOURCES.iter().any(|folder| path.starts_with(folder)))
        .filter(|(path, _)| path.ends_with(".rs"))
}

/// Every module begins with a header, and the header stays short.
fn headers(files: &Files) -> Vec<String> {
    let complaint = |(path, text): (&String, &String)| match text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .count()
    {
        0 => Some(format!("{path}:1: must begin with a module header")),
        lines if lines > HEADER_LINES_MAX => Some(format!(
            "{path}:{lines}: header of more than {HEADER_LINES_MAX} lines"
        )),
        _ => None,
    };
    rust(files).filter_map(complaint).collect()
}

/// No file grows past its purpose.
fn lengths(files: &Files) -> Vec<String> {
    let complaint = |(path, text): (&String, &String)| {
        let lines = text
            .lines()
            .take_while(|line| line.trim() != "#[cfg(test)]")
            .count();
        (lines > FILE_LINES_MAX)
            .then(|| format!("{path}: {lines} lines before its tests, at most {FILE_LINES_MAX}"))
    };
    rust(files).filter_map(complaint).collect()
}

/// A member of a family is a file, a `mod` line and an entry in a list, all three or none.
fn families(files: &Files) -> Vec<String> {
    let mut complaints = Vec::new();
    let families = family_paths();
    for family in &families {
        let parent = format!("{family}.rs");
        let Some(text) = files.get(&parent) else {
            complaints.push(format!("{parent}: the family has no interface"));
            continue;
        };
        let lists = lists(text);
        let members: Vec<&str> = files
            .keys()
            .filter_map(|path| {
                path.strip_prefix(&format!("{family}/"))?
                    .strip_suffix(".rs")
            })
            .filter(|name| !name.contains('/'))
            .collect();
        if members.is_empty() {
            complaints.push(format!("{family}/: the family has no member"));
        }
        for name in members {
            let line = format!("mod {name};");
            if !text.lines().any(|own| {
                own.trim_start_matches("pub(crate) ")
                    .trim_start_matches("pub ")
                    == line
            }) {
                complaints.push(format!("{parent}: no line \"{line}\""));
            }
            let path = format!("{family}/{name}");
            // Devices share `needs` and `server`.
            let is_shared = ["needs", "server"].contains(&name);
            let is_member = !is_shared && !families.contains(&path);
            if is_member && !lists.iter().any(|list| names(list, name)) {
                complaints.push(format!("{parent}: no entry for {name} in a list"));
            }
        }
    }
    complaints
}

/// The initialisers of the static and constant slices of a file.
fn lists(text: &str) -> Vec<&str> {
    text.match_indices("&[")
        .filter(|(at, _)| text[..*at].trim_end().ends_with('='))
        .filter_map(|(at, _)| text[at..].split("];").next())
        .collect()
}

fn names(list: &str, module: &str) -> bool {
    words(list).any(|(at, word)| word == module && list[at + word.len()..].starts_with("::"))
}

/// Words of letters, digits and underscores, with where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(part)
        .filter(move |(at, _)| !text[..*at].ends_with(part))
        .map(move |(at, _)| {
            (
                at,
                text[at..].split(|c| !part(c)).next().unwrap_or_default(),
            )
        })
}

/// Nothing unfinished stays behind.
fn leftover_markers(files: &Files) -> Vec<String> {
    let markers = leftovers();
    let mut complaints = Vec::new();
    for (path, text) in files {
        for (number, line) in (1..).zip(text.lines()) {
            for (marker, whole) in &markers {
                let found = if *whole {
                    words(line).any(|(_, word)| word == marker)
                } else {
                    line.contains(marker.as_str())
                };
                if found {
                    complaints.push(format!("{path}:{number}: leftover {marker}"));
                }
            }
        }
    }
    complaints
}

/// Unsafe code stands in few crates, and the compiler refuses it in the pure ones.
fn unsafe_code(files: &Files) -> Vec<String> {
    let keyword = ["un", "safe"].concat();
    let forbid = format!("#![forbid({keyword}_code)]");
    let mut complaints = Vec::new();
    for path in FORBID_ROOTS {
        if files
            .get(*path)
            .is_some_and(|text| !text.lines().any(|line| line == forbid))
        {
            complaints.push(format!("{path}: must say {forbid}"));
        }
    }
    for (path, text) in rust(files) {
        if UNSAFE_CRATES.iter().any(|prefix| path.starts_with(prefix)) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            if words(code).any(|(_, word)| word == keyword) {
                complaints.push(format!("{path}:{number}: {keyword} code"));
            }
        }
    }
    complaints
}

/// No path of a developer's machine.
fn home_paths(files: &Files) -> Vec<String> {
    let homes = [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"]].map(|halves| halves.concat());
    let mut complaints = Vec::new();
    for (path, text) in files {
        for (number, line) in (1..).zip(text.lines()) {
            if homes.iter().any(|home| line.contains(home.as_str())) {
                complaints.push(format!("{path}:{number}: path into a home folder"));
            }
        }
    }
    complaints
}

/// A file or folder is named after its contents.
fn file_names(files: &Files) -> Vec<String> {
    let nameless = |path: &&String| {
        path.split('/').any(|part| {
            let stem = part.strip_suffix(".rs").unwrap_or(part);
            let mut names = NAMELESS.split(' ');
            names.any(|name| stem == name || stem.strip_suffix('s') == Some(name))
        })
    };
    let paths = rust(files).map(|(path, _)| path).filter(nameless);
    paths
        .map(|path| format!("{path}: a name that says nothing"))
        .collect()
}

/// Targets named in the documents exist: relative links, and paths in backticks under `docs/` or
/// `crates/`.
fn document_paths(files: &Files, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut fenced = false;
        for (number, line) in (1..).zip(text.lines()) {
            fenced ^= line.starts_with("```");
            if fenced {
                continue;
            }
            let quoted = line.split('`').skip(1).step_by(2);
            let named = quoted
                .filter(|p| p.starts_with("docs/") || p.starts_with("crates/"))
                .filter(|p| !p.contains([' ', '*', '{', '<']))
                .map(str::to_string);
            let links = line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split([')', '#']).next());
            let linked = links
                .filter(|l| !l.is_empty() && !l.contains("://"))
                .map(|l| {
                    if folder.is_empty() {
                        l.to_string()
                    } else {
                        format!("{folder}/{l}")
                    }
                });
            for target in named.chain(linked) {
                if !exists(&target) {
                    complaints.push(format!("{path}:{number}: {target} does not exist"));
                }
            }
        }
    }
    complaints
}

#[track_caller]
fn clean(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_module_has_a_header_and_it_is_short() {
    clean(headers(&repository()));
}

#[test]
fn no_file_is_too_long() {
    clean(lengths(&repository()));
}

#[test]
fn crates_depend_only_on_what_they_may() {
    clean(dependencies(&repository()));
}

#[test]
fn lock_files_are_those_of_the_manifests() {
    clean(locks(&repository()));
}

#[test]
fn stages_of_the_engine_call_down_the_list() {
    clean(stages(&repository()));
}

#[test]
fn the_kind_of_a_device_is_asked_for_in_one_file() {
    clean(kinds(&repository()));
}

#[test]
fn every_member_of_a_family_is_in_its_list() {
    clean(families(&repository()));
}

#[test]
fn nothing_unfinished_is_left() {
    clean(leftover_markers(&repository()));
}

#[test]
fn pure_crates_are_safe_and_others_say_where_they_are_not() {
    clean(unsafe_code(&repository()));
}

#[test]
fn no_paths_of_a_machine() {
    clean(home_paths(&repository()));
}

#[test]
fn files_are_named_after_what_is_inside() {
    clean(file_names(&repository()));
}

#[test]
fn documents_name_what_exists() {
    clean(document_paths(&repository(), &|path| {
        root().join(path).exists()
    }));
}

mod each_rule_can_fail {
    use super::*;

    fn files<const N: usize>(files: [(&str, &str); N]) -> Files {
        files
            .into_iter()
            .map(|(path, text)| (path.to_string(), text.to_string()))
            .collect()
    }

    #[test]
    fn headers_missing_and_long() {
        let long = "//! a\n".repeat(HEADER_LINES_MAX + 1);
        let found = headers(&files([
            ("crates/core/src/a.rs", "use b;\n//! late"),
            ("crates/core/src/b.rs", &long),
            ("crates/core/src/c.rs", "//! fine\n"),
        ]));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn length_stops_at_the_tests() {
        let code = "//! a\n".repeat(FILE_LINES_MAX);
        let tested = format!("{code}#[cfg(test)]\nmod tests {{}}\n");
        assert!(lengths(&files([("crates/io/src/a.rs", &tested)])).is_empty());
        let longer = format!("{code}\n{tested}");
        assert_eq!(lengths(&files([("crates/io/src/a.rs", &longer)])).len(), 1);
    }

    #[test]
    fn dependencies_that_cross_a_line() {
        let found = dependencies(&files([
            ("crates/core/Cargo.toml", "[dependencies]\nlibc = \"0\"\n"),
            (
                "crates/io/Cargo.toml",
                "[dev-dependencies]\nforerun-sim.workspace = true\n",
            ),
            (
                "crates/sim/Cargo.toml",
                "[target.'cfg(unix)'.dependencies]\nforerun-io = \"0\"\n",
            ),
            ("crates/new/Cargo.toml", ""),
        ]));
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn dependencies_that_are_not_locked() {
        let package =
            |dependencies: &str| format!("[package]\nname = \"a\"\n[dependencies]\n{dependencies}");
        let lock = "[[package]]\nname = \"a\"\ndependencies = [\"b 1.0\", \"c\"]\n";
        let found = locks(&files([
            ("Cargo.lock", lock),
            ("one/Cargo.toml", &package("b = \"1\"\nd = \"1\"\n")),
        ]));
        assert_eq!(
            found,
            ["Cargo.lock: a depends on d, which it does not have"]
        );
        let fine = package("b = \"1\"\n[dependencies.d]\noptional = true\n");
        let found = locks(&files([("Cargo.lock", lock), ("one/Cargo.toml", &fine)]));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn calls_up_the_list_of_stages() {
        let list = "//! ```text\n//! upper  first\n//! lower  second\n//! third  gone\n//! ```\n";
        let found = stages(&files([
            ("crates/core/src/engine.rs", list),
            (
                "crates/core/src/engine/upper.rs",
                "fn begin(&mut self) { self.end() }\nfn own(&self) {}\n",
            ),
            (
                "crates/core/src/engine/lower/part.rs",
                "fn end(&mut self) { self.own(); self\n.begin() }\nfn own(&self) {}\n",
            ),
            ("crates/core/src/engine/work.rs", ""),
            ("crates/core/src/engine/unlisted.rs", ""),
        ]));
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn a_stage_that_asks_for_the_kind_of_a_device() {
        let uses = "use crate::kind::Kind;\n";
        let found = kinds(&files([
            ("crates/core/src/kind.rs", ""),
            ("crates/core/src/profile.rs", uses),
            ("crates/core/src/depth.rs", uses),
            (
                "crates/core/src/queues/memory.rs",
                "device.kind().any_worker()",
            ),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn members_without_mod_or_entry() {
        let parent =
            "pub mod listed;\nmod unlisted;\nstatic LIST: &[M] =\n    &[listed::METHOD];\n";
        let found = families(&files([
            ("crates/core/src/depth.rs", parent),
            ("crates/core/src/depth/listed.rs", ""),
            ("crates/core/src/depth/unlisted.rs", ""),
            ("crates/core/src/depth/lost.rs", ""),
        ]));
        let of_depth = found
            .iter()
            .filter(|complaint| complaint.contains("core/src/depth"));
        assert_eq!(of_depth.count(), 3, "{found:?}");
    }

    #[test]
    fn leftovers_as_words_and_calls() {
        for (marker, _) in leftovers() {
            let found = leftover_markers(&files([("a.md", &format!("see {marker} here"))]));
            assert_eq!(found.len(), 1, "{marker}");
        }
        let inside = format!("A{}S", leftovers()[0].0);
        assert!(leftover_markers(&files([("a.md", &inside)])).is_empty());
    }

    #[test]
    fn unsafe_outside_its_crates() {
        let code = ["fn a() { un", "safe { b() } }"].concat();
        let found = unsafe_code(&files([
            ("crates/io/src/a.rs", &code),
            ("crates/cli/src/a.rs", &code),
            ("crates/sim/src/lib.rs", ""),
        ]));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn paths_and_names() {
        let home = ["see /ho", "me/someone"].concat();
        assert_eq!(home_paths(&files([("a.md", &home)])).len(), 1);
        let named = files([
            ("crates/io/src/helpers.rs", ""),
            ("crates/io/src/database.rs", ""),
        ]);
        assert_eq!(file_names(&named).len(), 1);
    }

    #[test]
    fn documents_that_name_nothing() {
        let text = "`docs/a.md` and `crates/x` and [there](b.md#c) and [out](https://d.e)\n";
        let found = document_paths(&files([("docs/z.md", text)]), &|path| path == "docs/b.md");
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
