//! A writable buffer of Python (`bytearray`, `memoryview`, `array`, NumPy, torch) as bytes.
//!
//! The view keeps the memory where it is: its exporter refuses to resize or free it until the view
//! is released, as `bytearray.append` does with `BufferError`. So it can be filled without the
//! interpreter. As with `readinto` of Python's own files, the content is unspecified if another
//! thread uses the same memory meanwhile.

use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// See the [module](self).
pub(crate) struct Writable(PyUntypedBuffer);

impl Writable {
    /// Takes a view of an object's memory.
    ///
    /// # Errors
    /// `TypeError` if the object has no buffer, or one that is read-only or not contiguous.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let refused = |why: &str| {
            let kind = object.get_type();
            PyTypeError::new_err(format!(
                "buffer must be a writable and contiguous bytes-like object, not {kind} ({why})"
            ))
        };
        let Ok(view) = PyUntypedBuffer::get(object) else {
            return Err(refused("no buffer"));
        };
        match (view.readonly(), view.is_c_contiguous()) {
            (true, _) => Err(refused("read-only")),
            (_, false) => Err(refused("not contiguous")),
            (false, true) => Ok(Self(view)),
        }
    }

    /// Its memory.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            // An empty view may have no address.
            return &mut [];
        }
        // SAFETY: the view is writable, contiguous and of this length, and its exporter keeps the
        // memory in place until the view is released, which the borrow of `self` outlives. The
        // slice is only written, by `Reader::read_at`. Python code that uses the same memory in
        // another thread meanwhile breaks the contract of `readinto`, as with any file.
        unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}
