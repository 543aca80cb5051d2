//! A report: rows of any command as one page, with figures.
//!
//! Problem: a sweep is some hundred rows. The question behind them is which preset with how much memory, and whoever
//! asked it reads no JSON.
//!
//! Mechanism: rows become points (a memory and its figures), points of one input on one device are a chart, and those of
//! one preset a line of it; points that differ in the seed alone are one, with an interval. The page is HTML with inline
//! SVG: no script, no font, no network.
//!
//! ```text
//! rows.jsonl --points--> Point --chart--> Chart { lines } --figures--> SVG, CSV
//!                                                  \--answer-----------> page.html
//! ```
//!
//! Example: 5 presets by 7 memories by 3 devices are 3 charts of 5 lines; each is drawn as throughput, miss ratio and p99
//! against memory, and its answer is the smallest memory that is within 5 % of the best in throughput and in p99.

pub use forerun_surface::{figure, text};

pub mod advice;
pub mod answer;
pub mod chart;
pub mod kinds;
pub mod page;
pub mod points;
