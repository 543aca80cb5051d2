//! Exclude: readers that are left alone.
//!
//! Asked once for each stream that begins. A rule is `KIND=VALUE`; a read is excluded if one of them is true of it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::mounts::{Below, Named};
use crate::process::Program;

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exclude {
    /// Files at or below this path.
    Path(PathBuf),
    /// Programs of this user.
    User(u32),
    /// Programs of this name.
    Program(String),
    /// Programs in or below this control group.
    Group(PathBuf),
}

impl Exclude {
    /// Whether it is true of a program's read of a file.
    #[must_use]
    pub fn is_true_of(&self, program: &Program, file: &Path) -> bool {
        match self {
            Self::Path(path) => file.starts_with(path),
            Self::User(user) => program.user == *user,
            Self::Program(name) => program.name == *name,
            Self::Group(path) => program
                .groups
                .iter()
                .any(|group| group.path.starts_with(path)),
        }
    }
}

/// The rules of a watch.
#[derive(Debug)]
pub(crate) struct Excludes {
    /// Each, and of a path that is there its file system and its path there.
    rules: Vec<(Exclude, Option<(u32, Below)>)>,
}

impl Excludes {
    /// Each path also as the path that its links lead to, which is the one that the kernel tells of a descriptor, and as that
    /// on the file system, to which bind mounts lead.
    pub(crate) fn new(rules: Vec<Exclude>) -> Self {
        let of = |rule: &Exclude| match rule {
            Exclude::Path(path) => Below::of(path),
            _ => None,
        };
        let with = |rule| {
            let place = of(&rule);
            (rule, place)
        };
        Self {
            rules: rules.into_iter().map(with).collect(),
        }
    }

    /// Whether one is true of a program's read of a file: by the path that the program has for it, and by its file system
    /// and the path there.
    pub(crate) fn are_true_of(&self, program: &Program, file: Named<'_>) -> bool {
        let is_true = |(rule, place): &(Exclude, Option<(u32, Below)>)| {
            let Some((device, below)) = place else {
                return rule.is_true_of(program, file.path);
            };
            let inner = file.inner.filter(|_| *device == file.device);
            let path = file.path();
            path.is_some_and(|path| rule.is_true_of(program, path)) || below.has(path, inner)
        };
        self.rules.iter().any(is_true)
    }
}

impl FromStr for Exclude {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms = "must be path=/FOLDER, uid=NUMBER, program=NAME or cgroup=/GROUP";
        let (kind, value) = text.split_once('=').ok_or(forms)?;
        let absolute = |value: &str| match value.starts_with('/') {
            true => Ok(PathBuf::from(value)),
            false => Err(format!("{value:?} must be a path that begins with /")),
        };
        match kind {
            "path" => absolute(value).map(Self::Path),
            "cgroup" => absolute(value).map(Self::Group),
            "program" if !value.is_empty() => Ok(Self::Program(value.to_owned())),
            "uid" => {
                let user = value.parse().map(Self::User);
                user.map_err(|_| format!("{value:?} must be a whole number from 0 to {}", u32::MAX))
            }
            _ => Err(forms.to_owned()),
        }
    }
}

impl fmt::Display for Exclude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "path={}", path.display()),
            Self::User(user) => write!(f, "uid={user}"),
            Self::Program(name) => write!(f, "program={name}"),
            Self::Group(path) => write!(f, "cgroup={}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process::Group;

    #[test]
    fn a_rule_of_a_path_is_true_of_the_files_it_leads_to_by_each_way() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("data")).unwrap();
        std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
        let rules = vec![
            Exclude::Path(root.join("link")),
            Exclude::Path("/nowhere".into()),
            Exclude::User(1000),
        ];
        let rules = Excludes::new(rules);
        let program = Program {
            name: "cat".into(),
            user: 0,
            is_kernel: false,
            groups: Vec::new(),
        };
        let is_true = |path: &Path, is_here, device, inner: Option<&Path>| {
            let file = Named {
                device,
                path,
                is_here,
                inner,
            };
            rules.are_true_of(&program, file)
        };
        let is_excluded = |path: PathBuf| is_true(&path, true, 0, None);
        assert!(is_excluded(root.join("data/file")) && is_excluded(root.join("link/file")));
        assert!(!is_excluded(root.join("file")) && is_excluded("/nowhere/file".into()));
        // By a bind mount.
        let (device, data) = Below::of(&root.join("data")).unwrap();
        let is_excluded =
            |device: u32, inner: &Path| is_true("/bound/file".as_ref(), true, device, Some(inner));
        let (file, other) = (data.inner.join("file"), data.inner.with_file_name("data2"));
        assert!(is_excluded(device, &file) && !is_excluded(device, &other));
        assert!(!is_excluded(device + 1, &file), "another file system");
        // The same paths in a container, of files of its own.
        let of_container =
            |path: PathBuf| is_true(&path, false, device + 1, Some("/own/file".as_ref()));
        assert!(!of_container(root.join("data/file")) && !of_container(root.join("link/file")));
        assert!(of_container("/nowhere/file".into()));
    }

    #[test]
    fn each_rule_is_true_of_its_own_and_of_nothing_else() {
        let program = Program {
            name: "rsync".into(),
            user: 1000,
            is_kernel: false,
            groups: vec![Group {
                controllers: String::new(),
                path: "/backup/a".into(),
            }],
        };
        let file = Path::new("/data/films/a");
        for (rule, is) in [
            ("path=/data/films", true),
            ("path=/data/film", false),
            ("uid=1000", true),
            ("uid=0", false),
            ("program=rsync", true),
            ("program=rsyn", false),
            ("cgroup=/backup", true),
            ("cgroup=/back", false),
        ] {
            let parsed: Exclude = rule.parse().unwrap();
            assert_eq!(parsed.is_true_of(&program, file), is, "{rule}");
            assert_eq!(parsed.to_string(), rule);
        }
        for wrong in [
            "",
            "path",
            "path=data",
            "uid=-1",
            "uid=x",
            "program=",
            "user=1",
        ] {
            let message = wrong.parse::<Exclude>().unwrap_err();
            assert!(message.contains("must be"), "{wrong}: {message}");
        }
    }
}
