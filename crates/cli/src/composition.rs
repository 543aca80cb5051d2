//! Settings from a preset, a memory size and the methods that replace the preset's.
//!
//! Called by `read`, `bench`, `mount` and `simulate` once a preset. `forerun-core` accepts or
//! refuses a combination; here its refusal only gets the name of the flag.

use forerun_core::Settings;
use forerun_core::methods::NONE;
use forerun_core::preset::Preset;
use forerun_core::settings::SettingsError;

use crate::args::{Composition, Methods, NextFile};
use crate::failure::Failure;
use crate::quantity::{size, typed};

/// The parameter of dispatch methods that bounds a round.
const LONGEST_WAIT: &str = "longest_wait_ms";

/// The settings of a preset with the user's parts in place of its own.
///
/// # Errors
/// Memory the engine cannot work with; the message names the limit.
pub fn settings(preset: &Preset, wanted: &Composition) -> Result<Settings, Failure> {
    let mut settings = preset.settings(wanted.memory).map_err(name_the_flag)?;
    replace(&mut settings, &wanted.methods);
    check(&settings, &wanted.methods)?;
    Ok(settings)
}

/// Checks settings in which methods were put in place of the preset's.
///
/// # Errors
/// A value out of its range, or a bound for turns that there are not.
pub fn check(settings: &Settings, methods: &Methods) -> Result<(), Failure> {
    if methods.longest_wait.is_some() && settings.dispatch.value(LONGEST_WAIT).is_none() {
        return Err(Failure::Usage(format!(
            "--longest-wait: readers have no turns with --dispatch {}",
            settings.dispatch
        )));
    }
    settings.check().map_err(name_the_flag)
}

/// Refuses a method that has nothing to do, for a command that reads the files it is given.
///
/// # Errors
/// It was named.
pub fn check_no_walks(methods: &Methods) -> Result<(), Failure> {
    match &methods.next_file {
        None => Ok(()),
        Some(NextFile(method)) => {
            let method = method.as_ref().map_or(NONE.into(), ToString::to_string);
            Err(Failure::Usage(format!(
                "--next-file {method}: programs walk folders below a mount only"
            )))
        }
    }
}

/// Puts methods in place of the preset's.
pub fn replace(settings: &mut Settings, methods: &Methods) {
    fn put<T: Clone>(own: &mut T, other: &Option<T>) {
        if let Some(other) = other {
            own.clone_from(other);
        }
    }
    put(&mut settings.detect, &methods.detect);
    put(&mut settings.depth, &methods.depth);
    put(&mut settings.shape, &methods.shape);
    put(&mut settings.dispatch, &methods.dispatch);
    if let Some(ms) = methods.longest_wait
        && let Ok(bounded) = settings.dispatch.clone().with(LONGEST_WAIT, ms)
    {
        settings.dispatch = bounded;
    }
    put(&mut settings.reclaim, &methods.reclaim);
    if let Some(NextFile(method)) = &methods.next_file {
        settings.next_file.clone_from(method);
    }
    put(&mut settings.measure, &methods.measure);
}

/// A refusal of the engine with the flag and sizes as a user writes them.
pub fn name_the_flag(error: SettingsError) -> Failure {
    match error {
        SettingsError::Memory { given, minimum, .. } if given < minimum => Failure::Usage(format!(
            "--memory {}: must be at least {minimum} bytes ({})",
            size(given),
            size((minimum.0.div_ceil(1 << 10) << 10).into()),
        )),
        SettingsError::Memory { given, maximum, .. } => Failure::Usage(format!(
            "--memory {}: must be at most {}",
            typed(given),
            // Rounded down: the named limit must be accepted.
            size((maximum.0 >> 30 << 30).into())
        )),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use forerun_baselines::METHODS;
    use forerun_core::spec::Choice;
    use forerun_core::{Bytes, preset};

    use super::*;

    fn memory(memory: u64) -> Composition {
        Composition {
            memory: Bytes(memory),
            methods: Methods::default(),
        }
    }

    #[test]
    fn an_override_replaces_the_presets_method_and_nothing_else() {
        let preset = forerun_baselines::preset("linux-2.6.24").unwrap();
        let plain = settings(preset, &memory(1 << 26)).unwrap();
        let choice = Choice::parse("depth", METHODS.depth, "fixed(depth_bytes=1048576)").unwrap();
        let methods = Methods {
            depth: Some(choice.clone()),
            ..Methods::default()
        };
        let wanted = Composition {
            methods,
            ..memory(1 << 26)
        };
        let mut deeper = plain;
        deeper.depth = choice;
        assert_eq!(settings(preset, &wanted).unwrap(), deeper);
    }

    #[test]
    fn too_little_memory_names_the_minimum() {
        let preset = preset::find("forerun").unwrap();
        for given in [0, 1, 4096] {
            let message = settings(preset, &memory(given)).unwrap_err().to_string();
            assert!(message.contains("must be at least"), "{message}");
        }
    }
}
