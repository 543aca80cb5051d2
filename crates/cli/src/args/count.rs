//! Flags of `forerun trace count`: policies, capacities, samples.
//!
//! Part of `args`. The policies come from the simulator's list.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as Group;
use forerun_core::Bytes;
use forerun_sim::count::counting::Counter;
use forerun_sim::count::references::WHOLE;

use super::trace::parse_block_bytes;
use super::{Format, Reading, split_names};
use crate::quantity::parse_size;

/// `forerun trace count`.
#[derive(Debug, Group)]
pub struct TraceCount {
    /// The trace, or - for standard input; gzip, zstd and xz are read as they are
    #[arg(value_name = "TRACE")]
    pub file: PathBuf,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub reading: Reading,

    /// Policies, with commas between (see `forerun list policies`)
    #[arg(long, value_name = "A,B,..", default_value = "lru,opt")]
    pub policy: Policies,

    /// Capacities, with commas between: shares of all different objects (5%), numbers of objects, or sizes
    #[arg(
        long,
        value_name = "C,..",
        value_delimiter = ',',
        default_value = "1%,5%,10%"
    )]
    #[arg(value_parser = str::parse::<Capacity>)]
    pub cache: Vec<Capacity>,

    /// So many capacities from a thousandth of all different objects to all, evenly apart in the logarithm
    #[arg(long, value_name = "N", conflicts_with = "cache")]
    #[arg(value_parser = |text: &str| super::parse_count(text, 1000))]
    pub curve: Option<u32>,

    /// Share of the objects to count, with an error of 95 %, as in 1% [default: all, exactly]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub sample: Option<u32>,

    /// Objects weigh their bytes, and blocks of ranges a block
    #[arg(long)]
    pub sizes: bool,

    /// Writes count as reads
    #[arg(long)]
    pub writes: bool,

    /// References at the beginning that fill the caches and are not counted
    #[arg(long, value_name = "N", default_value = "0", value_parser = super::parse_number::<u64>)]
    pub warm_up: u64,

    /// Size of the blocks of ranges
    #[arg(long, value_name = "SIZE", default_value = "8KiB", value_parser = parse_block_bytes)]
    pub block_bytes: u32,

    /// Most memory for references and objects
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub trace_memory: Bytes,

    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
}

/// Policies by their names, each as it was typed.
#[derive(Clone, Debug)]
pub struct Policies(pub Vec<(String, Counter)>);

impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str| {
            let counter = name.parse::<Counter>().map_err(|error| error.to_string())?;
            Ok((name.to_owned(), counter))
        };
        split_names(text)
            .map(named)
            .collect::<Result<_, String>>()
            .map(Self)
    }
}

/// A capacity as it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capacity {
    /// A share of the weight of all different objects, in millionths.
    Share(u32),
    /// Objects.
    Objects(u64),
    /// Bytes.
    Bytes(u64),
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let accepted = "must be a share as 5%, a number of objects as 1000, or a size as 64MiB, each more than 0";
        let capacity = if text.ends_with('%') {
            parse_share(text).map(Self::Share)
        } else if is_number {
            text.parse()
                .map(Self::Objects)
                .map_err(|_| accepted.to_owned())
        } else {
            let size = parse_size(text).map_err(|_| accepted.to_owned());
            size.map(|Bytes(bytes)| Self::Bytes(bytes))
        };
        capacity.and_then(|capacity| match capacity {
            Self::Objects(0) | Self::Bytes(0) => Err(accepted.to_owned()),
            _ => Ok(capacity),
        })
    }
}

/// A share in per cent with up to four decimals, in millionths.
fn parse_share(text: &str) -> Result<u32, String> {
    let share = || {
        let (whole, part) = {
            let number = text.strip_suffix('%')?;
            number.split_once('.').unwrap_or((number, ""))
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 4 || !is_digits(whole) || !is_digits(part) {
            return None;
        }
        format!("{whole}{part:0<4}").parse::<u32>().ok()
    };
    let share = share().filter(|share| (1..=WHOLE).contains(share));
    share.ok_or_else(|| "must be a share from 0.0001% to 100%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_shares_numbers_or_sizes() {
        let parsed = |text: &str| text.parse::<Capacity>();
        assert_eq!(parsed("5%"), Ok(Capacity::Share(50_000)));
        assert_eq!(parsed("0.0125%"), Ok(Capacity::Share(125)));
        assert_eq!(parsed("100%"), Ok(Capacity::Share(WHOLE)));
        assert_eq!(parsed("1000"), Ok(Capacity::Objects(1000)));
        assert_eq!(parsed("64MiB"), Ok(Capacity::Bytes(64 << 20)));
        for wrong in [
            "", "0", "0%", "%", "101%", "0.00001%", "-1", "5.%x", "many", "0KiB",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commas_inside_parentheses_are_of_a_policy() {
        let policies: Policies = "lru,2q(in_per_mille=100,out_per_mille=900),opt"
            .parse()
            .unwrap();
        let names: Vec<&str> = policies.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["lru", "2q(in_per_mille=100,out_per_mille=900)", "opt"]
        );
        let wrong = "lru,lirs(x=1)".parse::<Policies>().unwrap_err();
        assert!(wrong.contains("lirs has no parameter"), "{wrong}");
        assert!(
            "mru"
                .parse::<Policies>()
                .unwrap_err()
                .contains("there is lru, fifo")
        );
    }
}
