//! Variables of the environment that decide anything; read once, in `main`.

use std::ffi::OsString;

/// See the [module](self).
#[derive(Clone, Default, Debug)]
pub struct Environment {
    /// `FORERUN_RUNTIME_DIR`: the folder of control sockets in place of the usual ones.
    pub forerun_runtime_dir: Option<OsString>,
    /// `XDG_RUNTIME_DIR`, which root does not use: a mount by systemd does not have it.
    pub xdg_runtime_dir: Option<OsString>,
    /// `PATH`.
    pub path: Option<OsString>,
}
