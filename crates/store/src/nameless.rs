//! Keys of a listing that no file can have, taken out of the answer.
//!
//! Problem: the clients of stores refuse a whole page for one key that is no path of theirs, and do not say which others
//! it had. A folder with such a key could not be listed, or at twenty requests for each of them.
//!
//! Mechanism: the entries of such keys are cut out of the answer before a client reads it. How many were is told with it,
//! and one key for each flaw, of which a line of the log is written once.
//!
//! ```text
//! <Contents><Key>d/a</Key>..</Contents><Contents><Key>d//b</Key>..</Contents>     as the store says
//! <Contents><Key>d/a</Key>..</Contents>                                           as the client reads it
//! ```

/// Entries of a listing, and their elements with the key: of S3 and Google Cloud Storage, and of Azure.
const ENTRIES: [(&[u8], &[u8]); 4] = [
    (b"Contents", b"Key"),
    (b"CommonPrefixes", b"Prefix"),
    (b"Blob", b"Name"),
    (b"BlobPrefix", b"Name"),
];

/// Why a key has no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    EmptyPart,
    Dots,
    Control,
    NoText,
}

impl Flaw {
    pub(crate) const COUNT: usize = 4;

    /// The flaw of a key. A `/` at its end makes it the marker of a folder.
    fn of(key: &str) -> Option<Self> {
        let parts = || key.strip_suffix('/').unwrap_or(key).split('/');
        if key.chars().any(|c| c.is_ascii_control()) {
            return Some(Self::Control);
        }
        if parts().any(|part| [".", ".."].contains(&part)) {
            return Some(Self::Dots);
        }
        parts().any(str::is_empty).then_some(Self::EmptyPart)
    }

    /// For people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::EmptyPart => "has an empty part",
            Self::Dots => "has a part . or ..",
            Self::Control => "has a control character",
            Self::NoText => "is no text of UTF-8",
        }
    }
}

/// The first key of each flaw that was taken out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LeftOut(pub(crate) Vec<(Flaw, String)>);

/// An answer without entries of keys that have no name; none if all have one.
pub(crate) fn taken_out(body: &[u8]) -> Option<(Vec<u8>, LeftOut)> {
    let (mut left_out, mut kept, mut copied, mut at) = (LeftOut::default(), Vec::new(), 0, 0);
    while let Some(begin) = find(body, at, b"<") {
        let name = name(body, begin);
        let Some((_, key_name)) = ENTRIES.iter().find(|(entry, _)| *entry == local(name)) else {
            at = begin + 1;
            continue;
        };
        let close = [&b"</"[..], name, b">"].concat();
        // The client refuses a text that is cut off. Its other entries would be looked through to its end, each.
        let Some(last) = find(body, begin, &close) else {
            break;
        };
        at = last + close.len();
        if let Some((flaw, key)) = flaw(&body[begin..last], key_name) {
            kept.extend_from_slice(&body[copied..begin]);
            copied = at;
            if left_out.0.iter().all(|(known, _)| *known != flaw) {
                left_out.0.push((flaw, key));
            }
        }
    }
    kept.extend_from_slice(&body[copied..]);
    (!left_out.0.is_empty()).then_some((kept, left_out))
}

/// The flaw of an entry's key, and the key.
fn flaw(entry: &[u8], key_name: &[u8]) -> Option<(Flaw, String)> {
    let mut at = 0;
    let begin = loop {
        let begin = find(entry, at, b"<")?;
        if local(name(entry, begin)) == key_name {
            break begin;
        }
        at = begin + 1;
    };
    let text = find(entry, begin, b">")? + 1;
    let key = &entry[text..find(entry, text, b"<")?];
    let shown = || String::from_utf8_lossy(key).into_owned();
    // Azure has names in percents whose characters are none of XML.
    let is_encoded = find(&entry[begin..text], 0, b"Encoded").is_some();
    let read = std::str::from_utf8(key).ok().and_then(unescaped);
    match read.filter(|_| !is_encoded) {
        None => Some((Flaw::NoText, shown())),
        Some(key) => Some((Flaw::of(&key)?, key)),
    }
}

/// The name of the element that begins here.
fn name(text: &[u8], begin: usize) -> &[u8] {
    let behind = text.get(begin + 1..).unwrap_or_default();
    let ends = |byte: &u8| byte.is_ascii_whitespace() || [b'>', b'/', b'<'].contains(byte);
    let end = behind.iter().position(ends).unwrap_or(behind.len());
    &behind[..end]
}

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b':').next().unwrap_or(name)
}

fn find(text: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let mut windows = text.get(from..)?.windows(what.len());
    windows.position(|at| at == what).map(|at| from + at)
}

/// A text of XML without its references.
fn unescaped(text: &str) -> Option<String> {
    let (mut read, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('&') {
        let (name, behind) = behind.split_once(';')?;
        read += before;
        read.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => char::from_u32(number(name.strip_prefix('#')?)?)?,
        });
        rest = behind;
    }
    Some(read + rest)
}

/// The number of a character.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of a listing that remain, and the flaws of the others.
    fn left(entry: &str, key_name: &str, keys: &[&[u8]]) -> (Vec<u8>, Vec<Flaw>) {
        let mut body = b"<?xml?><a:ListBucketResult><Prefix>..</Prefix>".to_vec();
        for key in keys {
            body.extend(format!("<{entry}><Owner/><{key_name}>").bytes());
            body.extend_from_slice(key);
            body.extend(format!("</{key_name}><Size>1</Size></{entry}>").bytes());
        }
        body.extend(b"<IsTruncated>true</IsTruncated></a:ListBucketResult>");
        let (kept, LeftOut(left_out)) =
            taken_out(&body).unwrap_or_else(|| (body, LeftOut::default()));
        (kept, left_out.into_iter().map(|(flaw, _)| flaw).collect())
    }

    #[test]
    fn entries_of_keys_without_a_name_are_cut_out_and_nothing_else() {
        let good: [&[u8]; 8] = [
            b"a",
            b"d/",
            b"a.b/..c",
            b"...",
            b"&amp;&lt;&#x41;&#66;&quot;",
            b"k ",
            b"\xc3\xbc",
            b".a/b./",
        ];
        let bad: [(&[u8], Flaw); 12] = [
            (b"", Flaw::EmptyPart),
            (b"/", Flaw::EmptyPart),
            (b"/a", Flaw::EmptyPart),
            (b"a//b", Flaw::EmptyPart),
            (b"a//", Flaw::EmptyPart),
            (b"..", Flaw::Dots),
            (b"a/./b", Flaw::Dots),
            (b"a/../", Flaw::Dots),
            (b"a&#0;b", Flaw::Control),
            (b"a&#x7f;", Flaw::Control),
            (b"a\xffb", Flaw::NoText),
            (b"a&b", Flaw::NoText),
        ];
        let kinds = [
            ("Contents", "Key"),
            ("CommonPrefixes", "Prefix"),
            ("Blob", "Name"),
            ("BlobPrefix", "Name"),
            ("s3:Contents", "s3:Key"),
        ];
        for (entry, key_name) in kinds {
            let (all, none) = left(entry, key_name, &good);
            assert_eq!(none, [], "{entry}");
            for (key, flaw) in bad {
                let mut keys = good.to_vec();
                keys.insert(3, key);
                keys.push(key);
                let (kept, flaws) = left(entry, key_name, &keys);
                assert_eq!(kept, all, "{entry} {:?}", String::from_utf8_lossy(key));
                assert_eq!(flaws, [flaw], "{entry} {:?}", String::from_utf8_lossy(key));
            }
        }
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_no_panic() {
        let body = b"<L><Contents><Key a='1'>a//b</Key></Contents><Contents><Key>c&#1;</Key></Contents></L>";
        for end in 0..body.len() {
            let _ = taken_out(&body[..end]);
            let _ = taken_out(&body[end..]);
        }
        assert_eq!(taken_out(body).unwrap().0, b"<L></L>");
    }

    /// Without a bound on each look this takes hours.
    #[test]
    fn a_long_answer_of_beginnings_is_looked_through_once() {
        for beginning in ["<Contents>", "<Contents><Key>a//b</Key>", "<", "<a"] {
            let body = beginning.repeat((8 << 20) / beginning.len());
            assert_eq!(taken_out(body.as_bytes()), None, "{beginning}");
        }
    }

    #[test]
    fn a_name_in_percents_is_none() {
        let body = b"<Blob><Name Encoded=\"true\">a%EF%BF%BE</Name></Blob>";
        assert_eq!(taken_out(body).unwrap().0, b"");
    }
}
