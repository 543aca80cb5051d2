//! The meanings of the columns of a trace in rows, as a header or `--columns` says them.
//!
//! A header is recognised by its names, in any order and case, after a `#` or not, between commas, tabs or
//! semicolons; the names are in docs/TRACES.md. A column of another name is refused: it may say how often a
//! request counts. So is a meaning that two columns have, but for sizes, which are added.
//!
//! Where there is no header, columns are counted from 1 in the words of libCacheSim's parameter, and more:
//!
//! ```text
//! time-col=5,time-unit=us,device-col=1,op-col=2,reads=R,writes=W,offset-col=3,obj-size-col=4
//! ```

use core::str::FromStr;

use super::super::super::error::Cause;
use super::super::super::fields::{SECTOR, digits};
use super::super::super::record::Op;

const COLUMNS: &str = "one whose meaning is known: time_ns, time_us, time_ms, time_s (or timestamp_.. for time_..), time, timestamp, \
                       clock_time; block, obj_id, object, id, key; offset, offset_bytes; bytes, obj_size, size, length; \
                       device, disk, lun, device_id, volume; op, operation, type, iotype, opcode, op_name; op_count; \
                       compute_ns; response, response_ns; label; pid, process, thread; --columns skips others";
const TWICE: &str =
    "the only column of its meaning: there is another one of it; --columns skips columns";
const KEYS: &str = "KEY=VALUE with KEY time-col, obj-id-col, obj-size-col, offset-col, device-col, process-col, op-col, \
                    count-col, response-col, time-unit, response-unit, offset-unit, size-unit, reads, writes, skips, \
                    object-bytes, delimiter or has-header";

/// A second in nanoseconds, the unit of times unless another one is told.
pub(in super::super) const SECOND: u64 = 1_000_000_000;
/// The most columns that can be counted: a line can hardly have more.
const COLUMNS_MAX: u64 = 1 << 14;

/// The meaning of a column; times in units of nanoseconds, positions and sizes in units of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Role {
    Time(u64),
    Block,
    Offset(u64),
    Bytes(u64),
    Device,
    Process,
    Op,
    /// How often the request was made.
    Count,
    Compute,
    Response(u64),
    Label,
    Skipped,
}

/// Names of columns in headers, in lower case.
pub(in super::super) type Names = &'static [(&'static str, Role)];

/// The names of a csv.
pub(super) const NAMES: Names = &[
    ("time_ns", Role::Time(1)),
    ("time_us", Role::Time(1000)),
    ("time_ms", Role::Time(1_000_000)),
    ("time_s", Role::Time(SECOND)),
    ("timestamp_ns", Role::Time(1)),
    ("timestamp_us", Role::Time(1000)),
    ("timestamp_ms", Role::Time(1_000_000)),
    ("timestamp_s", Role::Time(SECOND)),
    ("time", Role::Time(SECOND)),
    ("timestamp", Role::Time(SECOND)),
    ("clock_time", Role::Time(SECOND)),
    ("block", Role::Block),
    ("obj_id", Role::Block),
    ("object", Role::Block),
    ("id", Role::Block),
    ("key", Role::Block),
    ("offset_bytes", Role::Offset(1)),
    ("offset", Role::Offset(1)),
    ("bytes", Role::Bytes(1)),
    ("obj_size", Role::Bytes(1)),
    ("size", Role::Bytes(1)),
    ("length", Role::Bytes(1)),
    ("device", Role::Device),
    ("disk", Role::Device),
    ("lun", Role::Device),
    ("device_id", Role::Device),
    ("volume", Role::Device),
    ("op", Role::Op),
    ("operation", Role::Op),
    ("type", Role::Op),
    ("iotype", Role::Op),
    ("opcode", Role::Op),
    ("op_name", Role::Op),
    ("op_count", Role::Count),
    ("compute_ns", Role::Compute),
    ("response_ns", Role::Response(1)),
    ("response", Role::Response(SECOND)),
    ("label", Role::Label),
    ("pid", Role::Process),
    ("process", Role::Process),
    ("thread", Role::Process),
];

/// The bytes between two cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Delimiter {
    /// This one.
    Byte(u8),
    /// Any number of blanks and tabs.
    Blank,
}

impl Delimiter {
    /// The cells of a line, without the blanks around them.
    pub(super) fn cells(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        let ends = move |byte: &u8| match self {
            Self::Byte(delimiter) => *byte == delimiter,
            Self::Blank => byte.is_ascii_whitespace(),
        };
        let is_cell = move |cell: &&[u8]| self != Self::Blank || !cell.is_empty();
        line.split(ends).filter(is_cell).map(<[u8]>::trim_ascii)
    }

    /// As it is written.
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::Byte(byte) => byte,
            Self::Blank => b' ',
        }
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            // libCacheSim's own `delimiter=,` is cut at its comma.
            "comma" | "" => Self::Byte(b','),
            "tab" | "\t" | "\\t" => Self::Byte(b'\t'),
            "blank" => Self::Blank,
            _ => match name.as_bytes() {
                [b' '] => Self::Blank,
                [byte] if byte.is_ascii_punctuation() => Self::Byte(*byte),
                _ => return None,
            },
        })
    }
}

/// The names of operations, several between slashes; one that ends in `*` is the beginning of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Ops {
    pub(in super::super) reads: String,
    pub(in super::super) writes: String,
    /// Operations that are no request, such as a deletion.
    pub(in super::super) skips: String,
}

impl Ops {
    pub(in super::super) fn new(reads: &str, writes: &str, skips: &str) -> Self {
        let [reads, writes, skips] = [reads, writes, skips].map(str::to_owned);
        Self {
            reads,
            writes,
            skips,
        }
    }

    /// The direction a cell says: nothing where it is not known, and none where it is no request.
    pub(super) fn of(&self, cell: &[u8]) -> Option<Option<Op>> {
        let is = |name: &str| match name.strip_suffix('*') {
            Some(begin) => cell
                .get(..begin.len())
                .is_some_and(|own| own.eq_ignore_ascii_case(begin.as_bytes())),
            None => cell.eq_ignore_ascii_case(name.as_bytes()),
        };
        let named = |names: &str| !names.is_empty() && names.split('/').any(is);
        if named(&self.reads) {
            Some(Some(Op::Read))
        } else if named(&self.writes) {
            Some(Some(Op::Write))
        } else {
            // A cell without a direction belongs to a request that was never answered.
            (cell.is_empty() || named(&self.skips)).then_some(None)
        }
    }
}

/// The meaning of each column, in libCacheSim's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    pub(in super::super) roles: Vec<Role>,
    pub(in super::super) delimiter: Delimiter,
    pub(in super::super) has_header: bool,
    /// Whether a row may have more cells than there are roles.
    pub(in super::super) is_open: bool,
    pub(in super::super) ops: Ops,
    /// The span of an object, where a row has an object and an offset in it.
    pub(in super::super) object_bytes: Option<u64>,
}

impl Columns {
    /// Columns with these meanings, between commas, of rows without a header.
    pub(in super::super) fn of(roles: &[Role]) -> Self {
        Self {
            roles: roles.to_vec(),
            delimiter: Delimiter::Byte(b','),
            has_header: false,
            is_open: false,
            ops: Ops::new("r/read/get/gets", "w/write/set/put", ""),
            object_bytes: None,
        }
    }

    /// The columns of libCacheSim's own csv files.
    pub(super) fn usual() -> Self {
        Self::of(&[Role::Time(SECOND), Role::Block, Role::Bytes(1)])
    }

    /// The columns of a header; `None` if it names no place, and so is none.
    ///
    /// # Errors
    /// A column whose meaning is not known, or that another one has.
    pub(in super::super) fn of_header(line: &[u8], names: Names) -> Option<Result<Self, Cause>> {
        let line = line.trim_ascii_start();
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let delimiter = [b',', b'\t', b';']
            .into_iter()
            .find(|delimiter| line.contains(delimiter));
        let delimiter = Delimiter::Byte(delimiter.unwrap_or(b','));
        let cells: Vec<&[u8]> = delimiter.cells(line).collect();
        let role = |cell: &&[u8]| {
            let is_it = |(name, _): &&(&str, Role)| name.as_bytes().eq_ignore_ascii_case(cell);
            names.iter().find(is_it).map(|(_, role)| *role)
        };
        let roles: Vec<Option<Role>> = cells.iter().map(role).collect();
        let is_place = |role: &Option<Role>| matches!(role, Some(Role::Block | Role::Offset(_)));
        if !roles.iter().any(is_place) {
            return None;
        }
        let is_again = |at: usize| {
            roles[..at]
                .iter()
                .flatten()
                .any(|own| roles[at].is_some_and(|role| role.is_as(*own)))
        };
        let strange = (0..roles.len()).find(|at| roles[*at].is_none() || is_again(*at));
        if let Some(at) = strange {
            let accepted = roles[at].map_or(COLUMNS, |_| TWICE);
            return Some(Err(Cause::field("column", cells[at], accepted)));
        }
        let roles: Vec<Role> = roles.into_iter().flatten().collect();
        Some(Ok(Self {
            delimiter,
            has_header: true,
            ..Self::of(&roles)
        }))
    }

    /// Whether one of the columns has this meaning.
    pub(in super::super) fn has(&self, role: Role) -> bool {
        self.roles.iter().any(|own| own.is_as(role) || *own == role)
    }
}

impl Role {
    /// Whether two columns cannot both have these meanings.
    fn is_as(self, other: Self) -> bool {
        let may_repeat = matches!(self, Self::Bytes(_) | Self::Skipped);
        !may_repeat && core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }
}

/// The parts of `--columns` as they are read.
struct Told {
    columns: Columns,
    time_ns: u64,
    response_ns: u64,
    offset_bytes: u64,
    size_bytes: u64,
}

impl Told {
    /// Takes one part.
    ///
    /// # Errors
    /// The rule that it breaks.
    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        let role = match key {
            "time-col" => Role::Time(0),
            "obj-id-col" => Role::Block,
            "obj-size-col" => Role::Bytes(0),
            "offset-col" => Role::Offset(0),
            "device-col" => Role::Device,
            "process-col" => Role::Process,
            "op-col" => Role::Op,
            "count-col" => Role::Count,
            "response-col" => Role::Response(0),
            _ => return self.set_manner(key, value),
        };
        let column = digits(value.as_bytes()).filter(|at| (1..=COLUMNS_MAX).contains(at));
        let column = column.ok_or("a column from 1 to 16384")? as usize;
        let roles = &mut self.columns.roles;
        if roles.len() < column {
            roles.resize(column, Role::Skipped);
        }
        if roles[column - 1] != Role::Skipped {
            return Err("another column: this one has a key already");
        }
        roles[column - 1] = role;
        Ok(())
    }

    fn set_manner(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        let columns = &mut self.columns;
        match key {
            "time-unit" => self.time_ns = unit_ns(value)?,
            "response-unit" => self.response_ns = unit_ns(value)?,
            "offset-unit" => self.offset_bytes = unit_bytes(value)?,
            "size-unit" => self.size_bytes = unit_bytes(value)?,
            "reads" => columns.ops.reads = value.to_owned(),
            "writes" => columns.ops.writes = value.to_owned(),
            "skips" => columns.ops.skips = value.to_owned(),
            "object-bytes" => {
                let bytes = digits(value.as_bytes());
                let bytes = bytes.filter(|bytes| (1..=1 << 32).contains(bytes));
                columns.object_bytes = Some(bytes.ok_or("from 1 to 4294967296 bytes")?);
            }
            "delimiter" => {
                let named = Delimiter::named(value);
                columns.delimiter = named.ok_or("comma, tab, blank or a punctuation character")?;
            }
            "has-header" => {
                columns.has_header = value.parse().map_err(|_| "true or false")?;
            }
            // Whether an object is a number is seen from the first one.
            "obj-id-is-num" => {}
            _ => return Err(KEYS),
        }
        Ok(())
    }

    /// The columns, with the units that were told.
    fn end(mut self) -> Columns {
        for role in &mut self.columns.roles {
            *role = match *role {
                Role::Time(_) => Role::Time(self.time_ns),
                Role::Response(_) => Role::Response(self.response_ns),
                Role::Offset(_) => Role::Offset(self.offset_bytes),
                Role::Bytes(_) => Role::Bytes(self.size_bytes),
                other => other,
            };
        }
        self.columns
    }
}

fn unit_ns(name: &str) -> Result<u64, &'static str> {
    Ok(match name {
        "ns" => 1,
        "100ns" => 100,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => SECOND,
        _ => return Err("ns, 100ns, us, ms or s"),
    })
}

fn unit_bytes(name: &str) -> Result<u64, &'static str> {
    match name {
        "byte" => Ok(1),
        "sector" => Ok(SECTOR),
        _ => Err("byte or sector (512 bytes)"),
    }
}

impl FromStr for Columns {
    type Err = Cause;

    fn from_str(text: &str) -> Result<Self, Cause> {
        let mut told = Told {
            columns: Self {
                is_open: true,
                ..Self::of(&[])
            },
            time_ns: SECOND,
            response_ns: SECOND,
            offset_bytes: 1,
            size_bytes: 1,
        };
        // The comma of `delimiter=,` stands where a part ends.
        let text = text.replace("delimiter=,", "delimiter=comma");
        let mut keys = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            // Sizes of several columns are added.
            let is_again = key != "obj-size-col" && keys.contains(&key);
            let set = match (part.contains('='), is_again) {
                (false, _) => Err(KEYS),
                (true, true) => Err("there once: its key has a value already"),
                (true, false) => told.set(key, value),
            };
            set.map_err(|rule| Cause::field("columns", part.as_bytes(), rule))?;
            keys.push(key);
        }
        let columns = told.end();
        let (has_block, has_offset) = (columns.has(Role::Block), columns.has(Role::Offset(1)));
        let wanted = match (has_block, has_offset, columns.object_bytes) {
            (false, false, _) => "columns of which one is obj-id-col or offset-col",
            (true, true, None) => "with object-bytes=N where it has obj-id-col and offset-col",
            _ => return Ok(columns),
        };
        Err(Cause::field("columns", text.as_bytes(), wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Columns {
        text.parse().unwrap()
    }

    #[test]
    fn parameters_are_those_of_libcachesim() {
        let columns =
            parsed("time-col=1, obj-id-col=3, obj-size-col=2, delimiter=;, has-header=true");
        let roles = [Role::Time(SECOND), Role::Bytes(1), Role::Block];
        assert_eq!(columns.roles, roles);
        assert_eq!(columns.delimiter, Delimiter::Byte(b';'));
        assert!(columns.has_header);
        let columns = parsed("obj-id-col=2,delimiter=,,has-header=false");
        assert_eq!(columns.delimiter, Delimiter::Byte(b','));
        assert_eq!(
            parsed("obj-id-col=2,delimiter=,").delimiter,
            Delimiter::Byte(b',')
        );
    }

    #[test]
    fn units_apply_wherever_they_stand() {
        let columns = parsed(
            "time-unit=us,time-col=1,offset-col=2,offset-unit=sector,obj-size-col=3,\
             response-col=4,response-unit=100ns,delimiter=blank",
        );
        let roles = [
            Role::Time(1000),
            Role::Offset(512),
            Role::Bytes(1),
            Role::Response(100),
        ];
        assert_eq!(columns.roles, roles);
        assert_eq!(columns.delimiter, Delimiter::Blank);
    }

    #[test]
    fn columns_that_contradict_each_other_are_refused() {
        for (wrong, rule) in [
            ("time-col=1", "one is obj-id-col or offset-col"),
            (
                "obj-id-col=0",
                "\"obj-id-col=0\": must be a column from 1 to 16384",
            ),
            ("obj-id-col=16385", "a column from 1 to 16384"),
            ("obj-id-col=x", "a column from 1 to 16384"),
            ("obj-id-col=", "a column from 1 to 16384"),
            ("colour=1", "KEY=VALUE with KEY time-col, "),
            ("", "\"\": must be KEY=VALUE"),
            (
                "obj-id-col=1,time-col=1",
                "\"time-col=1\": must be another column",
            ),
            (
                "obj-id-col=1,obj-id-col=2",
                "\"obj-id-col=2\": must be there once",
            ),
            ("obj-id-col=1,time-unit=s,time-unit=ms", "there once"),
            ("obj-id-col=1,offset-col=2", "with object-bytes=N"),
            ("obj-id-col=1,time-unit=h", "ns, 100ns, us, ms or s"),
            ("obj-id-col=1,offset-unit=3", "byte or sector"),
            ("obj-id-col=1,delimiter=ab", "comma, tab, blank or"),
            ("obj-id-col=1,object-bytes=0", "from 1 to 4294967296"),
            (
                "obj-id-col=1,has-header=yes",
                "\"has-header=yes\": must be true or false",
            ),
            ("obj-id-col=1,,", "\"\": must be KEY=VALUE"),
        ] {
            let said = wrong.parse::<Columns>().unwrap_err().to_string();
            assert!(said.contains(rule), "{wrong}: {said}");
        }
        assert!(
            "obj-id-col=1,offset-col=2,object-bytes=8388608"
                .parse::<Columns>()
                .is_ok()
        );
    }

    #[test]
    fn a_line_that_names_no_place_is_no_header() {
        let header = |line: &[u8]| Columns::of_header(line, NAMES);
        assert!(header(b"#Time, Object").is_some_and(|columns| columns.is_ok()));
        assert!(header(b"time\tobject;\toffset").is_none_or(|columns| columns.is_err()));
        assert!(header(b"time\tobject").is_some_and(|columns| columns.is_ok()));
        let strange = |line| header(line).unwrap().unwrap_err().to_string();
        assert!(strange(b"key,op,size,ttl").contains("\"ttl\""));
        assert!(strange(b"key,time,time_us").contains("\"time_us\": must be the only column"));
        assert!(strange(b"time,offset,offset").contains("\"offset\": must be the only column"));
        let said = strange(b"key,ttl").replace("timestamp_..", "");
        let has = |name: &str| said.contains(name) || name.starts_with("timestamp_");
        assert!(NAMES.iter().all(|(name, _)| has(name)), "{said}");
        assert!(header(b"time,size").is_none());
        assert!(header(b"1,2,3").is_none());
    }

    #[test]
    fn operations_have_the_names_that_were_told() {
        let ops = Ops::new("GET/getChunk*", "SET", "DELETE");
        assert_eq!(ops.of(b"get"), Some(Some(Op::Read)));
        assert_eq!(ops.of(b"getChunkData.Permanent"), Some(Some(Op::Read)));
        assert_eq!(ops.of(b"SET"), Some(Some(Op::Write)));
        assert_eq!(ops.of(b"delete"), Some(None));
        assert_eq!(ops.of(b""), Some(None));
        assert_eq!(ops.of(b"GETS"), None);
    }
}
