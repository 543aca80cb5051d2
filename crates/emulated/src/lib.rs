//! forerun-emulated: a device of the simulator, run in real time.
//!
//! Problem: a policy for disks is to be measured with real threads and real copies on a machine that has no such
//! disk. Mechanism: the device of `forerun-sim` decides when each request ends; one thread a device sleeps until
//! that moment, by absolute times, so a late wake-up delays one answer and not the device.
//!
//! - [`disk`]: a device in real time, for any kind of job. The test bed exports one as a block device.
//! - [`throttle`]: such devices in front of a driver's backend, which brings the bytes meanwhile.
//! - [`clock`]: the thread's clock, its sleep and its priority.
//!
//! ```
//! use forerun_core::{Bytes, Nanos, preset};
//! use forerun_emulated::Emulation;
//! use forerun_io::{Config, Driver};
//!
//! let mut config = Config::new(preset::default().settings(Bytes(64 << 20))?);
//! config.lab.emulate = Some(Box::new(Emulation::new(Nanos(8_000_000), 80_000_000, 1)?));
//! let driver = Driver::new(config)?;
//! assert!(driver.is_emulated());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod clock;
pub mod disk;
pub mod throttle;

pub use disk::Disk;
pub use throttle::Emulation;
