//! Readers of a trace, and when each of its requests begins.
//!
//! ```text
//! closed   when the one before of its reader has ended, and the computing between the two is done
//! open     when it arrived, whether those before have ended or not
//! paced    when it arrived, but not before the one before of its reader has ended
//! ```

use core::fmt;
use core::str::FromStr;

use forerun_core::Nanos;

/// The readers of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Readers {
    /// One process makes all requests.
    #[default]
    One,
    /// One for each device, file or LUN.
    Device,
    /// One for each process of the trace, whichever files it reads.
    Process,
}

/// When a request begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Loop {
    /// After the one before.
    #[default]
    Closed,
    /// When it arrived.
    Open,
    /// After the one before, and not before it arrived.
    Paced,
}

/// How much faster requests arrive than in the trace, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed(u32);

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pacing {
    /// Its readers.
    pub readers: Readers,
    /// When they begin.
    pub when: Loop,
    /// How fast requests arrive.
    pub speed: Speed,
}

impl Readers {
    /// Number of the reader of a request, by the numbers of its device and its process.
    #[must_use]
    pub fn of(self, device: u16, process: u32) -> usize {
        match self {
            Self::One => 0,
            Self::Device => device.into(),
            Self::Process => process as usize,
        }
    }

    /// Its name on the command line and in rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Device => "device",
            Self::Process => "pid",
        }
    }
}

impl Loop {
    /// Its name on the command line and in rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Paced => "paced",
        }
    }
}

impl Pacing {
    /// Whether one reader goes on when its request has ended, as hinted methods expect.
    #[must_use]
    pub fn is_usual(self) -> bool {
        self.readers == Readers::One && self.when == Loop::Closed
    }
}

impl Speed {
    const LEAST: f64 = 0.001;
    const MOST: f64 = 1000.0;

    /// A time of the trace at this speed.
    #[must_use]
    pub fn of(self, time: Nanos) -> Nanos {
        let scaled = u128::from(time.0) * 1000 / u128::from(self.0);
        Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl Default for Speed {
    /// As recorded.
    fn default() -> Self {
        Self(1000)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", f64::from(self.0) / 1000.0)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "recorded" {
            return Ok(Self::default());
        }
        let number = text.strip_suffix('x').and_then(|times| times.parse().ok());
        match number.filter(|times| (Self::LEAST..=Self::MOST).contains(times)) {
            Some(times) => Ok(Self((times * 1000.0).round() as u32)),
            None => Err("must be recorded, or from 0.001x to 1000x".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_fast_is_half_the_time() {
        let at = |text: &str| text.parse::<Speed>().unwrap().of(Nanos(1000)).0;
        assert_eq!([at("recorded"), at("2x"), at("0.5x")], [1000, 500, 2000]);
        assert_eq!("1.5x".parse::<Speed>().unwrap().to_string(), "1.5x");
        for text in ["0x", "2", "x", "-1x", "NaNx", "1001x", ""] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }
}
