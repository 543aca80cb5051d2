//! The meanings of the columns of a csv trace.
//!
//! A header is recognised by its names, in any order and case, after a `#` or not:
//!
//! | column | names |
//! | --- | --- |
//! | arrival | `time_ns`, `time_us`, `time_ms`; in seconds `time_s`, `time`, `timestamp`, `clock_time` |
//! | block or object, number or name | `block`, `obj_id`, `object`, `id`, `key` |
//! | first byte | `offset_bytes`, `offset` |
//! | length | `bytes`, `obj_size`, `size`, `length` |
//! | device | `device`, `disk`, `lun`, `device_id`, `volume` |
//! | `r`, `read`, `get` or `w`, `write`, `set`, `put` | `op`, `operation`, `type`, `iotype`, `opcode`, `op_name` |
//! | response | `response_ns`; in seconds `response` |
//! | the rest of a request | `compute_ns`, `label` |
//!
//! A column of another name is refused: it may say how often a request counts. Where there is no header, or not such a one, columns are counted in
//! the words of libCacheSim's parameter, `time-col=1,obj-id-col=2,obj-size-col=3`, from 1; its
//! times are seconds.

use core::str::FromStr;

use super::super::super::error::Cause;
use super::super::super::fields::digits;

const COLUMNS: &str = "one whose meaning is known (time, block, offset, bytes, device, op, compute_ns, \
                       response_ns, label); --columns skips others";

const SECOND: u64 = 1_000_000_000;
/// The most columns that can be counted: a line can hardly have more.
const COLUMNS_MAX: u64 = 1 << 14;

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Time(u64),
    Block,
    Offset,
    Bytes,
    Device,
    Op,
    Compute,
    Response(u64),
    Label,
    Skipped,
}

impl Role {
    fn named(name: &[u8]) -> Self {
        let name = name.to_ascii_lowercase();
        match name.as_slice() {
            b"time_ns" => Self::Time(1),
            b"time_us" => Self::Time(1000),
            b"time_ms" => Self::Time(1_000_000),
            b"time_s" | b"time" | b"timestamp" | b"clock_time" => Self::Time(SECOND),
            b"block" | b"obj_id" | b"object" | b"id" | b"key" => Self::Block,
            b"offset_bytes" | b"offset" => Self::Offset,
            b"bytes" | b"obj_size" | b"size" | b"length" => Self::Bytes,
            b"device" | b"disk" | b"lun" | b"device_id" | b"volume" => Self::Device,
            b"op" | b"operation" | b"type" | b"iotype" | b"opcode" | b"op_name" => Self::Op,
            b"compute_ns" => Self::Compute,
            b"response_ns" => Self::Response(1),
            b"response" => Self::Response(SECOND),
            b"label" => Self::Label,
            _ => Self::Skipped,
        }
    }
}

/// The meaning of each column, in libCacheSim's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    pub(super) roles: Vec<Role>,
    pub(super) delimiter: u8,
    pub(super) has_header: bool,
    /// Whether a row may have more cells than there are roles.
    pub(super) is_open: bool,
}

impl Columns {
    /// The columns of libCacheSim's own csv files.
    pub(super) fn usual() -> Self {
        Self {
            roles: vec![Role::Time(SECOND), Role::Block, Role::Bytes],
            delimiter: b',',
            has_header: false,
            is_open: false,
        }
    }

    /// The columns of a header; `None` if it names no place, and so is none.
    ///
    /// # Errors
    /// A column whose meaning is not known.
    pub(super) fn of_header(line: &[u8]) -> Option<Result<Self, Cause>> {
        let line = line.trim_ascii_start();
        let names = line
            .strip_prefix(b"#")
            .unwrap_or(line)
            .split(|byte| *byte == b',');
        let names: Vec<&[u8]> = names.map(<[u8]>::trim_ascii).collect();
        let roles: Vec<Role> = names.iter().map(|name| Role::named(name)).collect();
        let has_place = roles.contains(&Role::Block) || roles.contains(&Role::Offset);
        let strange = roles.iter().position(|role| *role == Role::Skipped);
        let columns = Self {
            roles,
            delimiter: b',',
            has_header: true,
            is_open: false,
        };
        has_place.then_some(match strange {
            None => Ok(columns),
            Some(at) => Err(Cause::field("column", names[at], COLUMNS)),
        })
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let role = match key {
            "time-col" => Role::Time(SECOND),
            "obj-id-col" => Role::Block,
            "obj-size-col" => Role::Bytes,
            "op-col" => Role::Op,
            "delimiter" => {
                let [delimiter] = value.as_bytes() else {
                    return None;
                };
                self.delimiter = *delimiter;
                return Some(());
            }
            "has-header" => {
                self.has_header = value.parse().ok()?;
                return Some(());
            }
            // Whether an object is a number is seen from the first one.
            "obj-id-is-num" => return Some(()),
            _ => return None,
        };
        let column = digits(value.as_bytes()).filter(|at| (1..=COLUMNS_MAX).contains(at))? as usize;
        if self.roles.len() < column {
            self.roles.resize(column, Role::Skipped);
        }
        self.roles[column - 1] = role;
        Some(())
    }
}

impl FromStr for Columns {
    type Err = Cause;

    fn from_str(text: &str) -> Result<Self, Cause> {
        let mut columns = Self {
            roles: Vec::new(),
            delimiter: b',',
            has_header: false,
            is_open: true,
        };
        for part in text.split(',').map(str::trim) {
            let set = part
                .split_once('=')
                .and_then(|(key, value)| columns.set(key.trim(), value.trim()));
            set.ok_or_else(|| {
                let accepted = "time-col=N, obj-id-col=N, obj-size-col=N, op-col=N (from 1), \
                                delimiter=C, has-header=true|false";
                Cause::field("columns", part.as_bytes(), accepted)
            })?;
        }
        if columns.roles.contains(&Role::Block) {
            Ok(columns)
        } else {
            let accepted = "columns of which one is obj-id-col";
            Err(Cause::field("columns", text.as_bytes(), accepted))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_libcachesim() {
        let text = "time-col=1, obj-id-col=3, obj-size-col=2, delimiter=;, has-header=true";
        let columns: Columns = text.parse().unwrap();
        assert_eq!(
            columns.roles,
            [Role::Time(SECOND), Role::Bytes, Role::Block]
        );
        assert_eq!((columns.delimiter, columns.has_header), (b';', true));
        for wrong in ["time-col=1", "obj-id-col=0", "obj-id-col=x", "colour=1", ""] {
            assert!(wrong.parse::<Columns>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_that_names_no_place_is_no_header() {
        assert!(Columns::of_header(b"#Time, Object").is_some_and(|columns| columns.is_ok()));
        let strange = Columns::of_header(b"key,op,size,op_count")
            .unwrap()
            .unwrap_err();
        assert!(strange.to_string().contains("\"op_count\""), "{strange}");
        assert!(Columns::of_header(b"time,size").is_none());
        assert!(Columns::of_header(b"1,2,3").is_none());
    }
}
