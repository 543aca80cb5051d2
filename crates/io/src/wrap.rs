//! Wrappers fit around any backend.
//!
//! Each is a [`Backend`] that passes requests on to the one it wraps and a
//! [`Sink`] that passes their outcomes back. It is built from a function that starts
//! the wrapped one on a given sink, because the sink must exist first.

pub mod fault;

use std::sync::Arc;

use crate::backend::{Backend, Sink};
use crate::error::Error;

/// Starts the backend to be wrapped, reporting to the given sink.
pub type Start<'a> = Box<dyn FnOnce(Arc<dyn Sink>) -> Result<Arc<dyn Backend>, Error> + 'a>;
