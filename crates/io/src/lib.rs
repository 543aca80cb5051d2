//! forerun-io
