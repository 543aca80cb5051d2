//! Next file: the order of earlier opens. For the interface, and walks of folders, see
//! [`forerun_core::next_file`].

pub mod history;

use alloc::boxed::Box;

use forerun_core::next_file::NextFile;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn NextFile>>] = &[history::METHOD];
