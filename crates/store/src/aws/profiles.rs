//! The two files of AWS's own programs: profiles with keys and settings.
//!
//! ```text
//! ~/.aws/credentials    [a] aws_access_key_id, ..
//! ~/.aws/config         [default], [profile a] region, role_arn, ..     [sso-session b] sso_start_url, ..
//! ```
//!
//! A profile may stand in both; the first has the word.

use std::io;
use std::path::{Path, PathBuf};

use super::sections::Sections;
use crate::credentials::{self, Variables};
use crate::named_file;

/// See the [module](self).
pub(crate) struct Profiles {
    name: Option<String>,
    home: PathBuf,
    keys: File,
    config: File,
}

struct File {
    path: PathBuf,
    /// Its sections, or the reason why there are none; a file that is not there has none.
    read: Result<Sections, String>,
}

impl File {
    fn read(path: PathBuf) -> Self {
        let read = text(&path).and_then(|text| Sections::parse(&text));
        let read = read.map_err(|why| format!("{}: {why}", path.display()));
        Self { path, read }
    }

    fn value(&self, section: &str, key: &str) -> Option<String> {
        let value = self.read.as_ref().ok()?.value(section, key)?;
        Some(value.to_owned())
    }

    fn sections(&self) -> impl Iterator<Item = &str> {
        self.read.iter().flat_map(Sections::names)
    }
}

fn text(path: &Path) -> Result<String, String> {
    match named_file::text(path) {
        Err(error) if is_none(&error) => Ok(String::new()),
        text => text.map_err(|error| error.to_string()),
    }
}

/// No file: nor is there one below a home that is no folder.
fn is_none(error: &io::Error) -> bool {
    [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
}

impl Profiles {
    pub(crate) fn read(variables: Variables<'_>) -> Self {
        let [keys, config] = credentials::files_of_aws(variables);
        Self {
            name: variables("AWS_PROFILE").filter(|name| !name.is_empty()),
            home: credentials::home(variables),
            keys: File::read(keys),
            config: File::read(config),
        }
    }

    /// The profile that is used.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("default")
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// A profile, for people.
    pub(crate) fn place(&self, name: &str) -> String {
        let (keys, config) = (self.keys.path.display(), self.config.path.display());
        let is_in = |file: &File, long: &str| file.sections().any(|section| section == long);
        let long = long(name);
        match (
            is_in(&self.keys, name),
            is_in(&self.config, &long) || is_in(&self.config, name),
        ) {
            (true, false) => format!("{keys}, profile {name}"),
            (false, true) => format!("{config}, profile {name}"),
            _ => format!("{keys} and {config}, profile {name}"),
        }
    }

    /// Both files can be read, and have the profile that is asked for by name.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn check(&self) -> Result<(), String> {
        for file in [&self.keys, &self.config] {
            if let Err(why) = &file.read {
                return Err(why.clone());
            }
        }
        self.check_asked()
    }

    /// There is the profile that is asked for by name.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn check_asked(&self) -> Result<(), String> {
        match &self.name {
            Some(name) => self.check_name(name, "AWS_PROFILE"),
            None => Ok(()),
        }
    }

    /// There is a profile of this name, which `by` names.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn check_name(&self, name: &str, by: &str) -> Result<(), String> {
        let of_config = self.config.sections();
        let of_config =
            of_config.map(|section| section.strip_prefix("profile ").unwrap_or(section));
        let mut known: Vec<&str> = self
            .keys
            .sections()
            .chain(of_config)
            .map(str::trim)
            .collect();
        if name == "default" || known.contains(&name) {
            return Ok(());
        }
        known.retain(|name| !name.starts_with("sso-session ") && !name.starts_with("services "));
        known.sort_unstable();
        known.dedup();
        let there = match known.is_empty() {
            true => "there are none".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        let (keys, config) = (self.keys.path.display(), self.config.path.display());
        Err(format!(
            "{by}: no profile {name:?} in {keys} or {config}: {there}"
        ))
    }

    /// A value of a profile.
    pub(crate) fn value(&self, name: &str, key: &str) -> Option<String> {
        let of_config = || {
            let value = self.config.value(&long(name), key);
            value.or_else(|| self.config.value(name, key))
        };
        self.keys.value(name, key).or_else(of_config)
    }

    /// A value of a login that several profiles share.
    pub(crate) fn session(&self, name: &str, key: &str) -> Option<String> {
        self.config.value(&format!("sso-session {name}"), key)
    }

    /// Whether a role of this profile is had by its own keys.
    pub(crate) fn is_own_source(&self, name: &str) -> bool {
        self.value(name, "source_profile").as_deref() == Some(name)
    }
}

/// The name of a profile's section in the second file.
fn long(name: &str) -> String {
    format!("profile {name}")
}
