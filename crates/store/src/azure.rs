//! The connection string of Azure's own programs, as the variables it stands for.
//!
//! ```text
//! AccountName=a;AccountKey=k==;EndpointSuffix=core.windows.net
//!   AZURE_STORAGE_ACCOUNT_NAME=a  AZURE_STORAGE_ACCOUNT_KEY=k==  AZURE_STORAGE_ENDPOINT=https://a.blob.core.windows.net
//! BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=..
//!   AZURE_STORAGE_ACCOUNT_NAME=a  AZURE_STORAGE_SAS_TOKEN=sv=..  AZURE_STORAGE_ENDPOINT=https://a.blob.core.windows.net
//! ```

use std::collections::BTreeMap;

use crate::address::Variables;

const NAME: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// Azure's own domain.
const SUFFIX: &str = "core.windows.net";

/// Variables with those of the connection string, which has the word.
///
/// # Errors
/// It cannot be understood; in words, without its secrets.
pub(crate) fn connection(set: &Variables) -> Result<Variables, String> {
    let mut all = set.clone();
    let Some(text) = set.get(NAME).filter(|text| !text.is_empty()) else {
        return Ok(all);
    };
    let mut parts = BTreeMap::new();
    for part in text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let pair = part.split_once('=');
        let (name, value) = pair.ok_or_else(|| format!("{NAME}: a part without a ="))?;
        parts.insert(name.trim().to_ascii_lowercase(), value.trim());
    }
    if parts.get("usedevelopmentstorage") == Some(&"true") {
        all.insert("AZURE_STORAGE_USE_EMULATOR".to_owned(), "true".to_owned());
        return Ok(all);
    }
    let of = |name: &str| parts.get(name).copied().filter(|value| !value.is_empty());
    let protocol = of("defaultendpointsprotocol").unwrap_or("https");
    let of_endpoint = |url: &str| {
        let host = reqwest::Url::parse(url).ok()?.host_str()?.to_owned();
        Some(host.split_once(".blob.")?.0.to_owned())
    };
    let account = of("accountname").map(str::to_owned);
    let account = account.or_else(|| of_endpoint(of("blobendpoint")?));
    let account = account
        .ok_or_else(|| format!("{NAME}: neither AccountName nor a BlobEndpoint that has it"))?;
    let endpoint = match of("blobendpoint") {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!(
            "{protocol}://{account}.blob.{}",
            of("endpointsuffix").unwrap_or(SUFFIX)
        ),
    };
    let is_address =
        reqwest::Url::parse(&endpoint).is_ok_and(|url| url.scheme().starts_with("http"));
    if !is_address {
        return Err(format!(
            "{NAME}: {endpoint:?} is no address of http or https"
        ));
    }
    let pairs = [
        ("AZURE_STORAGE_ACCOUNT_NAME", Some(account)),
        (
            "AZURE_STORAGE_ACCOUNT_KEY",
            of("accountkey").map(str::to_owned),
        ),
        (
            "AZURE_STORAGE_SAS_TOKEN",
            of("sharedaccesssignature").map(str::to_owned),
        ),
        ("AZURE_STORAGE_ENDPOINT", Some(endpoint)),
    ];
    for (name, value) in pairs {
        all.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Variables, String> {
        connection(&Variables::from([(NAME.to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_connection_string_is_the_variables_it_stands_for() {
        for (text, account, key, sas, endpoint) in [
            (
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k==;EndpointSuffix=core.chinacloudapi.cn",
                "a",
                Some("k=="),
                None,
                "https://a.blob.core.chinacloudapi.cn",
            ),
            (
                "BlobEndpoint=https://b.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x%3D;",
                "b",
                None,
                Some("sv=1&sig=x%3D"),
                "https://b.blob.core.windows.net",
            ),
            (
                " accountname = c ; accountkey = d ; BlobEndpoint=http://127.0.0.1:1/c",
                "c",
                Some("d"),
                None,
                "http://127.0.0.1:1/c",
            ),
        ] {
            let set = of(text).unwrap();
            let value = |name: &str| set.get(name).map(String::as_str);
            assert_eq!(value("AZURE_STORAGE_ACCOUNT_NAME"), Some(account), "{text}");
            assert_eq!(value("AZURE_STORAGE_ACCOUNT_KEY"), key, "{text}");
            assert_eq!(value("AZURE_STORAGE_SAS_TOKEN"), sas, "{text}");
            assert_eq!(value("AZURE_STORAGE_ENDPOINT"), Some(endpoint), "{text}");
        }
        assert_eq!(of("").unwrap().len(), 1);
        assert!(
            of("UseDevelopmentStorage=true")
                .unwrap()
                .contains_key("AZURE_STORAGE_USE_EMULATOR")
        );
    }

    #[test]
    fn one_that_cannot_be_understood_is_refused_without_its_secrets() {
        for text in [
            "x",
            "AccountKey=secret",
            "BlobEndpoint=https://h/;AccountKey=secret",
            "AccountName=a;BlobEndpoint=secret-",
        ] {
            let refused = of(text).unwrap_err();
            assert!(
                refused.starts_with(NAME) && !refused.contains("secret;"),
                "{refused}"
            );
        }
    }
}
