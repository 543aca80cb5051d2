//! Flags of `forerun report`.

use std::path::PathBuf;

use clap::Args as Group;

/// `forerun report`.
#[derive(Debug, Group)]
pub struct Report {
    /// Rows as JSON lines, of simulate, sweep, bench, try, trace count or advise; - is standard input
    #[arg(required = true, value_name = "ROWS")]
    pub rows: Vec<PathBuf>,

    /// The page, or - for standard output
    #[arg(short, long, value_name = "HTML")]
    pub output: PathBuf,

    /// How near to the best is near enough, 0% to 100%
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse_share)]
    pub within: f64,

    /// Rows to compare with: drawn dashed, and as differences
    #[arg(long, value_name = "ROWS")]
    pub against: Option<PathBuf>,

    /// Write each figure into this directory as well, as SVG and as CSV
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Heading of the page [default: the names of the rows]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let percent = number
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent));
    let percent = percent.ok_or_else(|| "must lie from 0% to 100%".to_owned())?;
    Ok(percent / 100.0)
}
