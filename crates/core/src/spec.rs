//! The one-line description every method, preset, device and backend carries.
//!
//! A family's list holds [`Spec`]s; from them come, with no other edit, `forerun list`, the
//! values and help of options, range checks, generated documentation and the conformance tests.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

/// Knowledge of the future that a method needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knows {
    /// Only the past.
    Online,
    /// Hints of coming reads.
    Hinted,
    /// The whole future: for comparison only.
    Clairvoyant,
}

/// A parameter of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name, ending in its unit.
    pub name: &'static str,
    /// Its effect, and the reason for its default.
    pub summary: &'static str,
    /// Value when none is given.
    pub default: u64,
    /// Smallest accepted value.
    pub min: u64,
    /// Largest accepted value.
    pub max: u64,
}

/// Description of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Name as the user types it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paper and section, or kernel version.
    pub source: &'static str,
    /// The workload it is not fit for.
    pub unfit: &'static str,
    /// Its need of knowledge of the future.
    pub knows: Knows,
    /// Its parameters.
    pub params: &'static [Param],
}

/// An entry of a family's list: its description, and its constructor from parameter values.
pub struct Method<B> {
    /// Its description.
    pub spec: Spec,
    /// Builds it.
    pub build: fn(&Values<'_>) -> B,
}

impl<B> Method<B> {
    /// The method with these values of its parameters, in their order and inside their ranges; those left out are the
    /// defaults.
    #[must_use]
    pub fn of(&self, values: &[u64]) -> B {
        (self.build)(&Values::new(self.spec.params, values))
    }
}

/// Values of a method's parameters, by their names.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    params: &'static [Param],
    values: &'a [u64],
}

impl<'a> Values<'a> {
    /// Values in the order of the parameters; those left out are the defaults.
    #[must_use]
    pub fn new(params: &'static [Param], values: &'a [u64]) -> Self {
        Self { params, values }
    }

    /// The value of this parameter. A name that the method's [`Spec`] lacks is a mistake in the method: an assertion
    /// of debug builds, and 0 in others.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        let at = self.params.iter().position(|param| param.name == name);
        debug_assert!(at.is_some(), "no parameter {name:?}");
        let value = |at: usize| {
            let given = self.values.get(at).copied();
            given.unwrap_or(self.params[at].default)
        };
        at.map(value).unwrap_or_default()
    }
}

impl<B> Clone for Method<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Method<B> {}

/// Equal are methods of the same spec.
impl<B> PartialEq for Method<B> {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl<B> Eq for Method<B> {}

impl<B> fmt::Debug for Method<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method({})", self.spec.name)
    }
}

/// A method, with a value for each of its parameters.
///
/// By name it is chosen [from a family's list](Choice::parse). A method of another crate is in no
/// list: it is chosen by its [`Method`], a `static` there, and is then as good as any.
pub struct Choice<B: 'static> {
    method: &'static Method<B>,
    values: Vec<u64>,
}

impl<B> Clone for Choice<B> {
    fn clone(&self) -> Self {
        let values = self.values.clone();
        Self { values, ..*self }
    }
}

impl<B> PartialEq for Choice<B> {
    fn eq(&self, other: &Self) -> bool {
        (self.method, &self.values) == (other.method, &other.values)
    }
}

impl<B> Eq for Choice<B> {}

impl<B> fmt::Debug for Choice<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choice({self})")
    }
}

/// A number that is none, or that lies outside its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// Its name, ending in its unit.
    pub name: &'static str,
    /// The value given; in quotes if it is no number.
    pub value: String,
    /// Smallest accepted value.
    pub min: u64,
    /// Largest accepted value.
    pub max: u64,
}

impl OutOfRange {
    /// Checks a number against its range.
    pub(crate) fn check(
        name: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    ) -> Result<(), Self> {
        match range.contains(&value) {
            true => Ok(()),
            false => Err(Self {
                name,
                value: value.to_string(),
                min: *range.start(),
                max: *range.end(),
            }),
        }
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = (self.name, &self.value);
        let (min, max) = (self.min, self.max);
        write!(
            f,
            "{name}={value}: must be a whole number from {min} to {max}"
        )
    }
}

/// Why a choice was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChoiceError {
    /// No method of that name.
    Unknown {
        /// The family.
        family: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The method has no parameter of that name.
    UnknownParam {
        /// The method.
        method: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A parameter that is named more than once.
    Twice(&'static str),
    /// A parameter that is no number, or outside its range.
    Range(OutOfRange),
    /// Not of the form `name` or `name(param=value,..)`.
    Form(String),
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown {
                family,
                name,
                known,
            } => {
                write!(
                    f,
                    "no {family} method {name:?}: there is {}",
                    known.join(", ")
                )
            }
            Self::UnknownParam {
                method,
                name,
                known,
            } if known.is_empty() => {
                write!(f, "{method} takes no parameters, so none called {name:?}")
            }
            Self::UnknownParam {
                method,
                name,
                known,
            } => {
                write!(
                    f,
                    "{method} has no parameter {name:?}: it takes {}",
                    known.join(", ")
                )
            }
            Self::Twice(param) => write!(f, "{param} is given twice"),
            Self::Range(range) => range.fmt(f),
            Self::Form(text) => {
                write!(
                    f,
                    "{text:?} is not of the form name or name(param=value,..)"
                )
            }
        }
    }
}

impl core::error::Error for ChoiceError {}

impl From<OutOfRange> for ChoiceError {
    fn from(e: OutOfRange) -> Self {
        Self::Range(e)
    }
}

impl<B> Choice<B> {
    /// The method with its defaults.
    #[must_use]
    pub fn of(method: &'static Method<B>) -> Self {
        let params = method.spec.params.iter();
        Self {
            method,
            values: params.map(|p| p.default).collect(),
        }
    }

    /// The method's description.
    #[must_use]
    pub fn spec(&self) -> &'static Spec {
        &self.method.spec
    }

    /// The value of a parameter, if the method has it.
    #[must_use]
    pub fn value(&self, param: &str) -> Option<u64> {
        let at = self.spec().params.iter().position(|p| p.name == param)?;
        self.values.get(at).copied()
    }

    /// The method with one parameter set.
    ///
    /// # Errors
    /// An unknown parameter or a value out of its range.
    pub fn with(mut self, param: &str, value: u64) -> Result<Self, ChoiceError> {
        let Some(at) = self.spec().params.iter().position(|p| p.name == param) else {
            return Err(ChoiceError::UnknownParam {
                method: self.spec().name,
                name: param.to_string(),
                known: self.spec().params.iter().map(|p| p.name).collect(),
            });
        };
        let Param { name, min, max, .. } = self.spec().params[at];
        OutOfRange::check(name, value, min..=max)?;
        self.values[at] = value;
        Ok(self)
    }

    /// Reads `name` or `name(param=value,..)` against a family's list.
    ///
    /// # Errors
    /// See [`ChoiceError`].
    pub fn parse(
        family: &'static str,
        list: &'static [Method<B>],
        text: &str,
    ) -> Result<Self, ChoiceError> {
        let (name, args) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(args) => (name, Some(args)),
                None => return Err(ChoiceError::Form(text.to_string())),
            },
        };
        let Some(method) = list.iter().find(|m| m.spec.name == name) else {
            return Err(ChoiceError::Unknown {
                family,
                name: name.to_string(),
                known: list.iter().map(|m| m.spec.name).collect(),
            });
        };
        let mut choice = Self::of(method);
        let mut given = Vec::new();
        for arg in args
            .into_iter()
            .flat_map(|a| a.split(','))
            .filter(|a| !a.is_empty())
        {
            let Some((param, value)) = arg.split_once('=') else {
                return Err(ChoiceError::Form(text.to_string()));
            };
            let Some(known) = method.spec.params.iter().find(|p| p.name == param) else {
                return choice.with(param, 0);
            };
            if given.contains(&known.name) {
                return Err(ChoiceError::Twice(known.name));
            }
            given.push(known.name);
            let number = value.parse().map_err(|_| OutOfRange {
                name: known.name,
                value: alloc::format!("{value:?}"),
                min: known.min,
                max: known.max,
            })?;
            choice = choice.with(param, number)?;
        }
        Ok(choice)
    }

    /// Builds the method.
    #[must_use]
    pub fn build(&self) -> B {
        self.method.of(&self.values)
    }
}

/// An optional value in words; one word stands for an absent one.
pub(crate) struct Or<'a, T>(pub(crate) Option<&'a T>, pub(crate) &'static str);

impl<T: fmt::Display> fmt::Display for Or<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str(self.1),
        }
    }
}

impl<B> fmt::Display for Choice<B> {
    /// The form [`Choice::parse`] reads, every parameter spelled out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)?;
        for (i, (param, value)) in self.spec().params.iter().zip(&self.values).enumerate() {
            let before = if i == 0 { '(' } else { ',' };
            write!(f, "{before}{}={value}", param.name)?;
        }
        if self.spec().params.is_empty() {
            Ok(())
        } else {
            f.write_str(")")
        }
    }
}
