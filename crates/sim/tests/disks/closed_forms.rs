//! What follows from a drive's figures.
