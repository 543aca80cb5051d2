//! Listings of the server's objects, in the way of S3 or Azure: pages, folders, and keys behind a given one.

use std::collections::{BTreeSet, HashMap};

use super::Content;

/// A part of a query, without its percents.
fn value(path: &str, name: &str) -> Option<String> {
    let (_, query) = path.split_once('?')?;
    let parts = query.split('&').filter_map(|part| part.split_once('='));
    let value = parts.filter(|(n, _)| *n == name).map(|(_, v)| v).next()?;
    Some(unescaped(&value.replace('+', " ")))
}

/// A part of an address, without its percents.
pub(super) fn unescaped(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        bytes.push(match (first, others.get(..2)) {
            (b'%', Some(hex)) => {
                rest = &others[2..];
                u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap()
            }
            (byte, _) => *byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// The token behind a key: of characters that stand in every text.
fn token(key: &str) -> String {
    key.bytes().map(|byte| format!("t{byte:02x}")).collect()
}

/// The key of a token; of another one, itself.
fn key_of(token: String) -> String {
    if !token.starts_with('t') {
        return token;
    }
    let bytes = token.split('t').skip(1);
    let bytes = bytes.map(|hex| u8::from_str_radix(hex, 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let one = |c: char| match c.is_control() {
        true => format!("&#{};", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// A page of a bucket's keys; its token is the last key or folder of it.
pub(super) fn page(
    path: &str,
    objects: &HashMap<String, (String, Content)>,
    sizes: &HashMap<String, u64>,
    is_azure: bool,
    is_bare: bool,
    keys_max: usize,
) -> String {
    let bucket = path.split('?').next().unwrap_or(path).trim_end_matches('/');
    let keys: BTreeSet<&str> = objects
        .keys()
        .filter_map(|path| path.strip_prefix(bucket)?.strip_prefix('/'))
        .collect();
    let of = |name| value(path, name);
    let prefix = of("prefix").unwrap_or_default();
    let delimiter = of("delimiter");
    let most = of("max-keys").or(of("maxresults"));
    let most = most
        .map_or(1000, |most| most.parse().unwrap())
        .min(keys_max);
    let token_given = of("continuation-token").or(of("marker").filter(|marker| !marker.is_empty()));
    let behind = token_given.map(key_of).or(of("start-after"));
    let (mut page, mut count, mut last) = (String::new(), 0, String::new());
    let mut is_truncated = false;
    for key in keys {
        let Some(rest) = key.strip_prefix(&*prefix) else {
            continue;
        };
        let folder = delimiter.as_deref().and_then(|d| rest.find(d));
        let entry = folder.map_or(key, |end| &key[..=prefix.len() + end]);
        let is_over = behind
            .as_ref()
            .is_some_and(|behind| key <= behind.as_str() || (folder.is_some() && entry == behind));
        if is_over || (folder.is_some() && entry == last) {
            continue;
        }
        if count == most {
            is_truncated = true;
            break;
        }
        count += 1;
        entry.clone_into(&mut last);
        page += &match folder {
            Some(_) if is_azure => {
                format!("<BlobPrefix><Name>{}</Name></BlobPrefix>", escaped(entry))
            }
            Some(_) => format!(
                "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>",
                escaped(entry)
            ),
            None => {
                let path = format!("{bucket}/{key}");
                let (version, content) = &objects[&path];
                let size = sizes.get(&path).copied().unwrap_or(content.size());
                let version = match is_bare {
                    true => version.replace('"', ""),
                    false => version.replace('"', "&quot;"),
                };
                match is_azure {
                    true => format!(
                        "<Blob><Name>{}</Name><Properties>\
                         <Last-Modified>Mon, 01 Jan 2024 00:00:00 GMT</Last-Modified>\
                         <Etag>{version}</Etag><Content-Length>{}</Content-Length>\
                         <Content-Type>a/b</Content-Type></Properties></Blob>",
                        escaped(key),
                        size
                    ),
                    false => format!(
                        "<Contents><Key>{}</Key><LastModified>2024-01-01T00:00:00Z</LastModified>\
                     <ETag>{version}</ETag><Size>{}</Size></Contents>",
                        escaped(key),
                        size
                    ),
                }
            }
        };
    }
    if is_azure {
        let next = if is_truncated {
            token(&last)
        } else {
            String::new()
        };
        return format!(
            "<EnumerationResults><Blobs>{page}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
        );
    }
    let token = match is_truncated {
        true => format!(
            "<NextContinuationToken>{}</NextContinuationToken>",
            token(&last)
        ),
        false => String::new(),
    };
    format!(
        "<ListBucketResult>{page}<IsTruncated>{is_truncated}</IsTruncated>{token}</ListBucketResult>"
    )
}
