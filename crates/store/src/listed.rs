//! Answers to questions for listings.
//!
//! Problem: the clients of stores take any text of XML for a listing, and one without names for an empty folder: a page
//! of a proxy that asks for a login, an error with status 200, the first page of a server that speaks another version.
//! Programs that mirror a folder would delete their copy.
//!
//! Mechanism: an answer is looked at before it is given on.
//!
//! ```text
//! <ListBucketResult>, IsTruncated true, a token     given on
//! <html>, <Error>, status 206                       an error with the name of that
//! IsTruncated true and no token                     an error: names would be missing
//! ```

use object_store::client::HttpRequest;

/// The first element of a listing: of S3 and Google Cloud Storage, and of Azure.
const ROOTS: [&str; 2] = ["ListBucketResult", "EnumerationResults"];

/// Whether a request asks for a listing.
pub(crate) fn asks(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == "GET"
        && query
            .split('&')
            .any(|part| ["list-type=2", "comp=list"].contains(&part))
}

/// Whether this is an answer to it.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn check(status: u16, body: &[u8]) -> Result<(), String> {
    if status != 200 {
        return Err(format!("an answer with status {status} is no listing"));
    }
    let text = String::from_utf8_lossy(body);
    let root = root(&text);
    if !root.is_some_and(|root| ROOTS.contains(&root)) {
        let root = root.map_or("no element".to_owned(), |root| format!("<{root:.40}>"));
        return Err(format!("an answer with {root} in place of a listing"));
    }
    // A name has no `<` in XML.
    let goes_on = element(&text, "IsTruncated").is_some_and(|text| text.trim() == "true");
    let token = element(&text, "NextContinuationToken");
    match goes_on && token.is_none_or(str::is_empty) {
        true => Err("a listing that goes on without a token (not of version 2)".to_owned()),
        false => Ok(()),
    }
}

/// The name of the first element, without its prefix.
fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(skipped) = rest.strip_prefix("<?").or(rest.strip_prefix("<!")) {
        let end = if skipped.starts_with("--") {
            "-->"
        } else {
            ">"
        };
        rest = skipped.split_once(end)?.1.trim_start();
    }
    let name = rest.strip_prefix('<')?;
    let name = name.split(|c: char| c.is_whitespace() || c == '>' || c == '/');
    let name = name.into_iter().next()?;
    Some(name.rsplit(':').next().unwrap_or(name))
}

/// The text of an element without others in it.
pub(crate) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(&format!("<{name}>"))?;
    Some(behind.split_once("</")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_told_from_other_answers() {
        for right in [
            "<ListBucketResult></ListBucketResult>",
            "<?xml version=\"1.0\"?>\n<!-- a -> b -->\n<ListBucketResult xmlns=\"s3\"><IsTruncated>false</IsTruncated>",
            "\u{feff}<?xml?><EnumerationResults A=\"1\"/>",
            "<s3:ListBucketResult>",
            "<ListBucketResult><IsTruncated> true </IsTruncated><NextContinuationToken>t</NextContinuationToken>",
        ] {
            assert_eq!(check(200, right.as_bytes()), Ok(()), "{right}");
            assert!(check(206, right.as_bytes()).is_err());
        }
        for wrong in [
            "",
            "{}",
            "<!DOCTYPE html><html><ListBucketResult></html>",
            "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>",
            "<ListBucketResults/>",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>k</NextMarker>",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken></NextContinuationToken>",
            "<!-- without an end",
        ] {
            assert!(check(200, wrong.as_bytes()).is_err(), "{wrong}");
        }
        let why = check(200, b"<html></html>").unwrap_err();
        assert_eq!(why, "an answer with <html> in place of a listing");
    }
}
