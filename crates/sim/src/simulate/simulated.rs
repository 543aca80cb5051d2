//! A preset to simulate: a composition of the engine's methods, a kernel, or a hinted method by its name.
//!
//! ```text
//! forerun                         a preset of the engine
//! watch, kernel(read_ahead_kib=1024)   the readahead of a kernel, steered or not
//! forestall(batch_blocks=16)      a hinted method, with a parameter
//! ```

use core::fmt;
use core::str::FromStr;

use forerun_baselines::{METHODS, PRESETS, nearest};
use forerun_core::hinted::policy::Policy;
use forerun_core::preset::Preset;
use forerun_core::spec::{Choice, ChoiceError, Knows};

use crate::kernel::{self, Kernel};

/// See the [module](self).
#[derive(Clone, Debug)]
pub enum Simulated {
    /// A hinted method, and its name as it was typed.
    Hinted(Choice<Box<dyn Policy>>, String),
    /// A kernel, and its name as it was typed.
    Kernel(Choice<Kernel>, String),
    /// A composition of the engine's methods.
    Engine(&'static Preset),
}

/// Why a name is no preset to simulate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimulatedError {
    /// A parameter that a hinted method or a kernel has not, or a value out of its range.
    Parameter(ChoiceError),
    /// Neither; the known names nearest to it.
    Unknown(String, Vec<&'static str>),
}

impl fmt::Display for SimulatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(error) => error.fmt(f),
            Self::Unknown(text, nearest) => {
                let nearest = nearest.join(", ");
                write!(
                    f,
                    "no preset and no hinted method {text:?}: nearest are {nearest}"
                )
            }
        }
    }
}

impl core::error::Error for SimulatedError {}

impl FromStr for Simulated {
    type Err = SimulatedError;

    fn from_str(text: &str) -> Result<Self, SimulatedError> {
        let name = text.split('(').next().unwrap_or_default();
        if METHODS.hinted.iter().any(|method| method.spec.name == name) {
            let choice = Choice::parse("hinted", METHODS.hinted, text);
            let choice = choice.map_err(SimulatedError::Parameter)?;
            return Ok(Self::Hinted(choice, text.to_owned()));
        }
        if kernel::LIST.iter().any(|kernel| kernel.spec.name == name) {
            let choice = Choice::parse("kernel", kernel::LIST, text);
            let choice = choice.map_err(SimulatedError::Parameter)?;
            return Ok(Self::Kernel(choice, text.to_owned()));
        }
        forerun_baselines::preset(text)
            .map(Self::Engine)
            .map_err(|_| {
                let hinted = METHODS.hinted.iter().map(|method| method.spec.name);
                let kernels = kernel::LIST.iter().map(|kernel| kernel.spec.name);
                let known = hinted.chain(kernels);
                let known = known.chain(PRESETS.iter().map(|preset| preset.name));
                SimulatedError::Unknown(text.to_owned(), nearest(name, known))
            })
    }
}

impl Simulated {
    /// Whether it is a hinted method.
    #[must_use]
    pub fn is_hinted(&self) -> bool {
        matches!(self, Self::Hinted(..))
    }

    /// Whether it is the one that needs no hints.
    #[must_use]
    pub fn is_lru(&self) -> bool {
        matches!(self, Self::Hinted(choice, _) if choice.spec().knows == Knows::Online)
    }

    /// Whether it follows announced reads.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.is_hinted() && !self.is_lru()
    }

    /// Whether methods of the engine decide in it.
    #[must_use]
    pub fn has_methods(&self) -> bool {
        match self {
            Self::Hinted(..) => false,
            Self::Kernel(kernel, _) => kernel.build().is_watched,
            Self::Engine(_) => true,
        }
    }

    /// Its name as it was typed.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Hinted(_, name) | Self::Kernel(_, name) => name,
            Self::Engine(preset) => preset.name,
        }
    }
}
