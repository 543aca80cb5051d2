//! Reclaim methods and counting policies written in Python.
//!
//! Problem: a method of a program is compared with those of the lists, in the same engine and over the same references,
//! without a compiler. Mechanism: one entry of the families' kind, whose parameter is the number of a Python class. A run
//! makes an object of it with the number of blocks that fit, and tells it of blocks as numbers; the frames, or the weights,
//! stay here, so that an answer can be checked.
//!
//! ```text
//! insert 7    -> inserted(7)
//! use 7       -> hit(7)
//! memory full -> evict() = 7      refused with the name of the class if 7 is not resident
//! file gone   -> removed(7)       if the class has it
//! ```
//!
//! Neither family can fail, so an exception of the class unwinds the run to [`caught`], which gives it to the
//! caller as it was raised.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use forerun_core::reclaim::{Cache, Event, Reclaim, Victim};
use forerun_core::spec::{Choice, Knows, Method, Param, Spec, Values};
use forerun_core::table::{Frame, flag};
use forerun_core::{Block, FileId};
use forerun_sim::count::policy::{Build, Policy};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::deferred::{Deferred, drop_deferred};

/// The parameter that is the number of a class.
const CLASS: &str = "class";

const SPEC: Spec = Spec {
    name: "python",
    summary: "decides by a class of the program",
    source: "the program",
    unfit: "as its class is",
    knows: Knows::Online,
    params: &[Param {
        name: CLASS,
        summary: "the number of the class",
        default: 0,
        min: 0,
        max: u64::MAX,
    }],
};

static RECLAIM: Method<Box<dyn Reclaim>> = Method {
    spec: SPEC,
    build: |values| Box::new(OwnReclaim::new(values)),
};

static POLICY: Method<Build> = Method {
    spec: SPEC,
    build: |values| {
        let class = values.get(CLASS);
        Box::new(move |capacity, _| Box::new(OwnPolicy::new(class, capacity)))
    },
};

/// Classes that runs may make objects of, by their numbers.
static CLASSES: Mutex<(u64, BTreeMap<u64, Py<PyAny>>)> = Mutex::new((0, BTreeMap::new()));

/// A class while runs may use it.
#[derive(Debug)]
pub(crate) struct Registered(u64);

impl Registered {
    pub(crate) fn new(class: Py<PyAny>) -> Self {
        let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        classes.0 += 1;
        let number = classes.0;
        classes.1.insert(number, class);
        Self(number)
    }

    /// As a reclaim method.
    pub(crate) fn reclaim(&self) -> Option<Choice<Box<dyn Reclaim>>> {
        Choice::of(&RECLAIM).with(CLASS, self.0).ok()
    }

    /// As a counting policy.
    pub(crate) fn policy(&self) -> Option<Choice<Build>> {
        Choice::of(&POLICY).with(CLASS, self.0).ok()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Dropped without the lock: the class may have code of its own for that.
        let class = {
            let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
            classes.1.remove(&self.0)
        };
        drop(class);
    }
}

/// Ends the run with this exception.
fn stop(error: PyErr) -> ! {
    resume_unwind(Box::new(error))
}

/// The value of a call, or the exception that ended its run.
///
/// # Errors
/// That of a class.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> PyResult<T> {
    let rethrown = |payload: Box<dyn Any + Send>| match payload.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(other) => resume_unwind(other),
    };
    catch_unwind(AssertUnwindSafe(call)).map_err(rethrown)
}

/// An object of a class, and its methods.
#[derive(Debug)]
struct Object {
    name: String,
    inserted: Py<PyAny>,
    hit: Py<PyAny>,
    evict: Py<PyAny>,
    removed: Option<Py<PyAny>>,
}

impl Object {
    /// An object for so many blocks, or bytes.
    fn new(class: u64, capacity: u64) -> Self {
        let made = Python::attach(|py| {
            // Those of the runs before.
            drop_deferred(py);
            let found = {
                let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
                classes.1.get(&class).map(|class| class.clone_ref(py))
            };
            let gone = || PyRuntimeError::new_err("the class of a method is gone");
            let class = found.ok_or_else(gone)?.into_bound(py);
            let name = class.getattr("__name__").and_then(|name| name.extract());
            let object = class.call1((capacity,))?;
            let method = |name: &str| object.getattr(name).map(Bound::unbind);
            Ok(Self {
                name: name.unwrap_or_else(|_: PyErr| object.get_type().to_string()),
                inserted: method("inserted")?,
                hit: method("hit")?,
                evict: method("evict")?,
                removed: object.getattr_opt("removed")?.map(Bound::unbind),
            })
        });
        made.unwrap_or_else(|error| stop(error))
    }

    fn tell(method: &Py<PyAny>, block: u64) {
        let told = Python::attach(|py| method.call1(py, (block,)).map(drop));
        told.unwrap_or_else(|error| stop(error));
    }

    /// The block to give up, for which `is_resident` holds.
    fn evict(&self, is_resident: impl Fn(u64) -> bool) -> u64 {
        let name = &self.name;
        let answer = Python::attach(|py| {
            let answer = self.evict.call0(py)?.into_bound(py);
            let block = answer.extract::<u64>();
            match block {
                Ok(block) if is_resident(block) => Ok(block),
                Err(_) if answer.hasattr("__index__")? => Err(absent(name, &answer)),
                Err(_) => Err(PyTypeError::new_err(format!(
                    "{name}.evict() must return a block, not {answer:?}"
                ))),
                Ok(_) => Err(absent(name, &answer)),
            }
        });
        answer.unwrap_or_else(|error| stop(error))
    }
}

fn absent(name: &str, answer: &Bound<'_, PyAny>) -> PyErr {
    PyValueError::new_err(format!(
        "{name}.evict() returned {answer}, which is not resident"
    ))
}

/// A frame that has no block of the method's.
const NONE: u64 = u64::MAX;

/// A reclaim method of the engine. A block's number is its file's and its own.
#[derive(Debug)]
struct OwnReclaim {
    class: u64,
    object: Option<Deferred<Object>>,
    /// By frame, the block in it.
    blocks: Vec<u64>,
    count: u32,
}

impl OwnReclaim {
    fn new(values: &Values<'_>) -> Self {
        Self {
            class: values.get(CLASS),
            object: None,
            blocks: Vec::new(),
            count: 0,
        }
    }

    /// The frame of a block that is the method's.
    fn frame(&self, cache: &Cache<'_>, number: u64) -> Option<Frame> {
        let (file, block) = (FileId((number >> 32) as u32), Block(number as u32));
        let frame = cache.find(file, block)?.frame;
        let known = self.blocks.get(frame.0 as usize);
        known.is_some_and(|known| *known == number).then_some(frame)
    }

    /// Takes the block of a frame away from the method; whether it had one.
    fn take(&mut self, frame: Frame) -> Option<u64> {
        let known = self.blocks.get_mut(frame.0 as usize)?;
        let number = std::mem::replace(known, NONE);
        let number = (number != NONE).then_some(number)?;
        self.count -= 1;
        Some(number)
    }

    fn remove(&mut self, frame: Frame) {
        let number = self.take(frame);
        let removed = self
            .object
            .as_ref()
            .and_then(|object| object.removed.as_ref());
        if let (Some(number), Some(removed)) = (number, removed) {
            Object::tell(removed, number);
        }
    }

    fn inserted(&mut self, cache: &Cache<'_>, frame: Frame) {
        let (file, block) = cache.block(frame);
        let number = u64::from(file.0) << 32 | u64::from(block.0);
        let at = frame.0 as usize;
        if at >= self.blocks.len() {
            self.blocks.resize(at + 1, NONE);
        }
        self.blocks[at] = number;
        self.count += 1;
        cache.set(frame, flag::ARMED);
        if let Some(object) = &self.object {
            Object::tell(&object.inserted, number);
        }
    }

    fn touched(&mut self, cache: &Cache<'_>, frame: Frame) {
        cache.set(frame, flag::ARMED);
        let number = self.blocks.get(frame.0 as usize).copied();
        if let (Some(object), Some(number)) = (&self.object, number.filter(|it| *it != NONE)) {
            Object::tell(&object.hit, number);
        }
    }
}

impl Reclaim for OwnReclaim {
    fn begin(&mut self, frames: u32) {
        self.object = Some(Deferred::new(Object::new(self.class, frames.into())));
        self.blocks = vec![NONE; frames as usize];
    }

    fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
        match event {
            Event::Inserted { frame, .. } => self.inserted(cache, frame),
            Event::Touched(frame) => self.touched(cache, frame),
            _ => {}
        }
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let mut pinned = Vec::new();
        let mut victim = None;
        let object = self.object.as_ref()?;
        while pinned.len() < self.count as usize {
            let is_resident =
                |number| self.frame(cache, number).is_some() && !pinned.contains(&number);
            let number = object.evict(is_resident);
            let frame = self.frame(cache, number)?;
            if cache.flags(frame) & flag::PINNED == 0 {
                victim = Some(frame);
                break;
            }
            pinned.push(number);
        }
        // They are being read: as if they had just come.
        pinned
            .iter()
            .for_each(|number| Object::tell(&object.inserted, *number));
        self.take(victim?)?;
        victim.map(Victim::Frame)
    }

    fn dropped(&mut self, _: &mut Cache<'_>, frame: Frame) -> bool {
        self.remove(frame);
        false
    }

    fn sweep(&mut self, _: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        for frame in (0..self.blocks.len() as u32).map(Frame) {
            if self.blocks[frame.0 as usize] != NONE && gone(frame) {
                self.remove(frame);
            }
        }
    }

    fn len(&self) -> u32 {
        self.count
    }
}

/// A counting policy. A block's number is its object's.
struct OwnPolicy {
    object: Deferred<Object>,
    capacity: u64,
    /// By object, its weight if it is resident.
    weights: Vec<u32>,
    resident: u64,
}

impl OwnPolicy {
    fn new(class: u64, capacity: u64) -> Self {
        Self {
            object: Deferred::new(Object::new(class, capacity)),
            capacity,
            weights: Vec::new(),
            resident: 0,
        }
    }

    fn weight(&self, number: u64) -> u32 {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        self.weights.get(at).copied().unwrap_or(0)
    }
}

impl Policy for OwnPolicy {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        let (number, weight) = (u64::from(object), weight.max(1));
        if self.weight(number) > 0 {
            Object::tell(&self.object.hit, number);
            return true;
        }
        if u64::from(weight) > self.capacity {
            return false;
        }
        while self.resident + u64::from(weight) > self.capacity {
            let victim = self.object.evict(|number| self.weight(number) > 0);
            self.resident -= u64::from(self.weight(victim));
            self.weights[victim as usize] = 0;
        }
        let at = object as usize;
        if at >= self.weights.len() {
            self.weights.resize(at + 1, 0);
        }
        self.weights[at] = weight;
        self.resident += u64::from(weight);
        Object::tell(&self.object.inserted, number);
        false
    }

    fn resident(&self) -> u64 {
        self.resident
    }
}
