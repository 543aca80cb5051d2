//! Shape: windows as decided, and the methods of Baek and Park 2009 for striped arrays.
//!
//! For the interface, and the method of `forerun`, see [`forerun_core::shape`].

pub mod both;
pub mod strip;
pub mod stripe;
pub mod whole;

use alloc::boxed::Box;

use forerun_core::shape::Shape;
use forerun_core::spec::Method;

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn Shape>>] =
    &[whole::METHOD, strip::METHOD, stripe::METHOD, both::METHOD];
