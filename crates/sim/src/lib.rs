//! forerun-sim
