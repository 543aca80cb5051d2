//! Variables of the environment that decide anything; read once, in `main`.

use std::ffi::OsString;
use std::path::PathBuf;

/// See the [module](self).
#[derive(Clone, Default, Debug)]
pub struct Environment {
    /// `FORERUN_RUNTIME_DIR`: the folder of control sockets in place of the usual ones.
    pub forerun_runtime_dir: Option<OsString>,
    /// `XDG_RUNTIME_DIR`, which root does not use: a mount by systemd does not have it.
    pub xdg_runtime_dir: Option<OsString>,
    /// `XDG_CACHE_HOME`: the folder of caches in place of `~/.cache`.
    pub xdg_cache_home: Option<OsString>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl Environment {
    /// The folder of forerun's caches, which need not exist. As the base directory specification has it, a
    /// relative path counts for nothing.
    #[must_use]
    pub fn cache(&self) -> Option<PathBuf> {
        let absolute = |path: &Option<OsString>| {
            let path = path.as_ref().map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = || Some(absolute(&self.home)?.join(".cache"));
        Some(
            absolute(&self.xdg_cache_home)
                .or_else(home)?
                .join("forerun"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_where_the_user_has_them() {
        let cache = |cache: Option<&str>, home: Option<&str>| {
            let environment = Environment {
                xdg_cache_home: cache.map(Into::into),
                home: home.map(Into::into),
                ..Environment::default()
            };
            environment.cache().map(|path| path.display().to_string())
        };
        assert_eq!(cache(Some("/c"), Some("/h")).as_deref(), Some("/c/forerun"));
        assert_eq!(
            cache(None, Some("/h")).as_deref(),
            Some("/h/.cache/forerun")
        );
        assert_eq!(
            cache(Some("c"), Some("/h")).as_deref(),
            Some("/h/.cache/forerun")
        );
        assert_eq!(cache(Some(""), None), None);
    }
}
