//! The order in which a reader reads its file: one of the simulator's workloads.
//!
//! Parsed from `--pattern`, by name or as name(param=value,..) against `forerun-sim`'s list, so a
//! workload added there is a pattern here. Sizes, thinking time and seed come from flags of their
//! own; two parameters follow them unless they are named: a random reader reads as many bytes as
//! its file has, and a strided one leaves out three of four reads.

use std::fmt::Write;
use std::str::FromStr;

use forerun_core::spec::{Choice, ChoiceError, Method, OutOfRange, Param};
use forerun_core::{Bytes, Nanos};
use forerun_sim::workload::{self, Workload};

use crate::failure::Failure;
use crate::papers::in_words;
use crate::quantity::{duration, size};

/// Parameters of workloads that flags of the bench decide.
const FLAGS: &[(&str, &str)] = &[
    ("file_bytes", "--file-bytes"),
    ("read_bytes", "--read-bytes"),
    ("think_ns", "--think"),
    ("seed", "--seed"),
    ("readers", "--readers"),
    ("shared", "--shared"),
    ("files", "--readers"),
];

/// A strided reader reads one piece in this many.
const STRIDE_READS: u64 = 4;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    choice: Choice<Box<dyn Workload>>,
    text: String,
}

/// Parameters of one reader's steps beside the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Size of its file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before a read.
    pub think: Nanos,
    /// Decides everything random.
    pub seed: u64,
    /// Number of files, for a pattern of one process that reads them all.
    pub files: u64,
}

/// The workloads of a single reader: `--readers` sets the number of readers. Those that take less
/// than they ask for are left out, too: `pread` cannot be given up half way. So are those whose
/// file size does not follow `--file-bytes`.
fn single() -> impl Iterator<Item = &'static Method<Box<dyn Workload>>> {
    let unfit = |p: &Param| ["readers", "take_bytes"].contains(&p.name);
    let is_sized = |p: &Param| p.name == "file_bytes";
    workload::LIST
        .iter()
        .filter(move |m| m.spec.params.iter().any(is_sized) && !m.spec.params.iter().any(unfit))
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.split('(').next().unwrap_or_default();
        if !single().any(|m| m.spec.name == name) {
            let known: Vec<_> = single().map(|m| m.spec.name).collect();
            return Err(format!(
                "no pattern {name:?}: there is {}",
                known.join(", ")
            ));
        }
        let pattern = Self {
            choice: Choice::parse("pattern", workload::LIST, text).map_err(|e| e.to_string())?,
            text: text.to_owned(),
        };
        match FLAGS.iter().find(|(param, _)| pattern.names(param)) {
            Some((param, flag)) => Err(format!("{param} is set by {flag}")),
            None => Ok(pattern),
        }
    }
}

impl Pattern {
    /// The pattern of this name, with its defaults.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, Failure> {
        name.parse().map_err(Failure::Usage)
    }

    /// Its name with the parameters that were named.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.choice.spec().name
    }

    /// Whether it is one process that reads all files, instead of a reader for each.
    #[must_use]
    pub fn is_one_process(&self) -> bool {
        self.takes("files")
    }

    /// One reader of this shape, as a workload with one file; or one process with all files.
    ///
    /// # Errors
    /// A size or time the workload does not accept: its flag and the range.
    pub fn workload(&self, shape: &Shape) -> Result<Box<dyn Workload>, String> {
        self.build(shape).map_err(|e| match e {
            ChoiceError::Range(OutOfRange {
                name,
                value,
                min,
                max,
            }) => {
                let flag = FLAGS.iter().find(|(param, _)| *param == name);
                let flag = flag.map_or(name, |(_, flag)| flag);
                let range = [value, min.to_string(), max.to_string()];
                let [value, min, max] = range.map(|number| as_typed(name, number));
                format!("{flag} {value}: must lie from {min} to {max}")
            }
            other => other.to_string(),
        })
    }

    fn build(&self, shape: &Shape) -> Result<Box<dyn Workload>, ChoiceError> {
        let mut choice = self.choice.clone();
        let reads = shape.file_bytes.div_ceil(shape.read_bytes.max(1));
        for (param, value) in [
            ("file_bytes", shape.file_bytes),
            ("read_bytes", shape.read_bytes),
            ("think_ns", shape.think.0),
            ("seed", shape.seed),
            ("files", shape.files),
            ("reads", reads),
            (
                "stride_bytes",
                shape.read_bytes.saturating_mul(STRIDE_READS),
            ),
        ] {
            if self.takes(param) && !self.names(param) {
                choice = choice.with(param, value)?;
            }
        }
        Ok(choice.build())
    }

    fn takes(&self, param: &str) -> bool {
        self.choice.spec().params.iter().any(|p| p.name == param)
    }

    /// Whether the user gave this parameter a value.
    fn names(&self, param: &str) -> bool {
        let arguments = self.text.split_once('(').map_or("", |(_, rest)| rest);
        arguments
            .split(',')
            .any(|a| a.split('=').next().map(str::trim) == Some(param))
    }
}

/// The patterns with the parameters that are theirs alone, for `--help`.
#[must_use]
pub fn help() -> String {
    let mut help =
        "Order in which a reader reads its file, as name or name(param=value,..):\n".to_owned();
    for Method { spec, .. } in single() {
        let _ = write!(help, "\n- {}: {}", spec.name, in_words(spec.summary));
        let own = spec
            .params
            .iter()
            .filter(|p| FLAGS.iter().all(|(name, _)| *name != p.name));
        for p in own {
            let _ = write!(
                help,
                "\n    {} ({} to {}): {}",
                p.name,
                p.min,
                p.max,
                in_words(p.summary)
            );
        }
    }
    help
}

/// A number of a parameter in the units of its option.
fn as_typed(param: &str, number: String) -> String {
    match (number.parse(), param.rsplit_once('_')) {
        (Ok(bytes), Some((_, "bytes"))) => size(Bytes(bytes)).to_string(),
        (Ok(time), Some((_, "ns"))) => duration(Nanos(time)).to_string(),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape() -> Shape {
        Shape {
            file_bytes: 1 << 20,
            read_bytes: 1 << 12,
            think: Nanos(0),
            seed: 1,
            files: 1,
        }
    }

    fn offsets(text: &str) -> Vec<u64> {
        let workload = text.parse::<Pattern>().unwrap().workload(&shape()).unwrap();
        workload.steps(0).map(|step| step.offset.0).collect()
    }

    #[test]
    fn flags_decide_the_shape_and_the_pattern_the_rest() {
        assert_eq!(offsets("sequential").len(), 256);
        assert_eq!(offsets("random").len(), 256);
        assert_eq!(offsets("random(reads=7)").len(), 7);
        assert_eq!(offsets("strided")[..3], [0, 4 << 12, 8 << 12]);
        assert_eq!(offsets("strided(stride_bytes=8192)")[..3], [0, 8192, 16384]);
    }

    #[test]
    fn what_a_flag_decides_is_refused_inside_the_pattern() {
        let refused = |text: &str| text.parse::<Pattern>().unwrap_err();
        assert_eq!(
            refused("sequential(file_bytes=5)"),
            "file_bytes is set by --file-bytes"
        );
        assert!(refused("many-readers").starts_with("no pattern \"many-readers\": there is seq"));
        assert!(refused("zigzag").starts_with("no pattern \"zigzag\""));
        assert!(refused("random(reads=x)").contains("must be a whole number"));
    }

    #[test]
    fn a_range_is_in_the_units_of_its_option() {
        let refused = |shape: Shape| {
            let pattern = "sequential".parse::<Pattern>().unwrap();
            pattern.workload(&shape).unwrap_err()
        };
        let think = Nanos(7_200_000_000_000);
        assert_eq!(
            refused(Shape { think, ..shape() }),
            "--think 7200s: must lie from 0ns to 3600s"
        );
        let file_bytes = 3 << 40;
        assert_eq!(
            refused(Shape {
                file_bytes,
                ..shape()
            }),
            "--file-bytes 3TiB: must lie from 0B to 2TiB"
        );
    }

    #[test]
    fn every_pattern_of_one_reader_builds() {
        for method in single() {
            assert!(
                !offsets(method.spec.name).is_empty(),
                "{}",
                method.spec.name
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_refused(text in "\\PC*|(random|strided)\\([a-z_=0-9,]*\\)?") {
            let _ = text.parse::<Pattern>();
        }
    }
}
