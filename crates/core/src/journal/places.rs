//! Where a file lies, in words.
//!
//! ```text
//! device 0 at 4096                                                      in one run of one device
//! layout raid0(strip_bytes=65536) members 0:4096,1:4096                 from address 0 of an array on
//! layout .. members .. layout .. members .. extents 0:1:65536,8192:0:0  offset:array:address
//! ```

use alloc::vec::Vec;
use core::fmt::{self, Formatter};

use super::LineError;
use super::parts::{Line, list, points};
use super::words::{Words, three, unexpected};
use crate::layout::{self, Array, MappedExtent, Placement};
use crate::spec::Choice;
use crate::units::{Bytes, DeviceId};

impl Line for Placement {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { arrays, extents } = self;
        if let [array] = &arrays[..]
            && let [(device, location)] = array.members[..]
            && *self == Self::linear(device, location)
        {
            return write!(f, "device {device} at {location}");
        }
        for (i, Array { layout, members }) in arrays.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}layout {layout} members ")?;
            points(f, members.iter().map(|(on, at)| (on.0.into(), at.0)))?;
        }
        if extents.is_empty() {
            return Ok(());
        }
        f.write_str(" extents ")?;
        list(f, extents, |f, MappedExtent { offset, array, at }| {
            write!(f, "{offset}:{array}:{at}")
        })
    }

    fn read(words: &mut Words<'_>) -> Result<Self, LineError> {
        const EXPECTED: &str = "device or layout";
        match words.word(EXPECTED)? {
            "device" => Ok(Self::linear(words.number("device")?, words.field("at")?)),
            "layout" => {
                let mut arrays = Vec::from([words.array()?]);
                while words.follows("layout") {
                    arrays.push(words.array()?);
                }
                let extents = match words.follows("extents") {
                    true => words.extents()?,
                    false => Vec::new(),
                };
                Ok(Self { arrays, extents })
            }
            other => Err(unexpected(EXPECTED, other)),
        }
    }
}

impl Words<'_> {
    fn array(&mut self) -> Result<Array, LineError> {
        let word = self.word("a layout")?;
        let layout = Choice::parse("layout", layout::LIST, word)
            .map_err(|e| unexpected("a layout", &alloc::format!("{e}")))?;
        self.keyword("members")?;
        let members = self.points()?.into_iter().map(|(device, at)| {
            let device = u16::try_from(device.0).map(DeviceId);
            let device = device.map_err(|_| unexpected("a device", "a larger number"))?;
            Ok((device, Bytes(at)))
        });
        let members = members.collect::<Result<_, LineError>>()?;
        Ok(Array { layout, members })
    }

    fn extents(&mut self) -> Result<Vec<MappedExtent>, LineError> {
        self.list("offset:array:address,..", |text| {
            let (offset, array, at) = three(text)?;
            let (offset, at) = (Bytes(offset), Bytes(at));
            Some(MappedExtent { offset, array, at })
        })
    }
}
