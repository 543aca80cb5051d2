//! A server on loopback that checks signatures, as S3 and as the services that give keys.
//!
//! It has one bucket `b` with one object `k`, and takes the keys it is told of. One thread a connection.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

/// The key of the account `account`, as Azure.
pub(crate) const AZURE: &[u8] = b"of\x00azure";

/// The only object.
pub(crate) const CONTENT: &[u8] = b"content";

/// When keys of services end.
const NEVER: &str = "2999-01-01T00:00:00Z";

/// A request.
pub(crate) struct Asked {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: BTreeMap<String, String>,
    body: String,
}

#[derive(Default)]
struct State {
    /// By the key's name: the secret, and the token that comes with it.
    keys: BTreeMap<String, (String, Option<String>)>,
    /// Signed requests of names alone, as `GET /b/k` or `POST AssumeRole`.
    asked: Vec<String>,
    /// Keys that services give are signed with this name.
    given: u32,
    /// Services have no time for so many requests.
    busy: u32,
    /// Objects can be had without keys.
    public: bool,
    /// Code of the error that each request to S3 has.
    refused: Option<(u16, &'static str, &'static str)>,
}

pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    address: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let own = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = own.clone();
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { state, address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Takes requests signed with this key.
    pub(crate) fn take(&self, id: &str, secret: &str, token: Option<&str>) {
        let key = (secret.to_owned(), token.map(str::to_owned));
        self.state.lock().unwrap().keys.insert(id.to_owned(), key);
    }

    /// Services have no time for so many of the next requests.
    pub(crate) fn be_busy(&self, requests: u32) {
        self.state.lock().unwrap().busy = requests;
    }

    /// Keys that services gave are of sessions that have ended.
    pub(crate) fn end_sessions(&self) {
        let keys = &mut self.state.lock().unwrap().keys;
        keys.retain(|id, _| !id.starts_with("GIVEN"));
    }

    /// Takes no requests signed with this key.
    pub(crate) fn forget(&self, id: &str) {
        self.state.lock().unwrap().keys.remove(id);
    }

    /// Requests to S3 are refused no more.
    pub(crate) fn allow(&self) {
        self.state.lock().unwrap().refused = None;
    }

    pub(crate) fn open_to_all(&self) {
        self.state.lock().unwrap().public = true;
    }

    /// Requests to S3 are refused with this status, code and more of XML, or a header.
    pub(crate) fn refuse(&self, status: u16, code: &'static str, more: &'static str) {
        self.state.lock().unwrap().refused = Some((status, code, more));
    }

    /// Requests so far, without those of the object.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let _ = stream.set_nodelay(true);
    let mut lines = BufReader::new(stream);
    while let Some(asked) = asked(&mut lines) {
        let (status, more, body) = answer(&asked, &mut state.lock().unwrap());
        let length = if more.is_empty() {
            format!("Content-Length: {}\r\n", body.len())
        } else {
            String::new()
        };
        let head = format!("HTTP/1.1 {status} -\r\n{length}{more}\r\n");
        let body = if asked.method == "HEAD" {
            Vec::new()
        } else {
            body
        };
        let mut out = stream;
        if out.write_all(&[head.into_bytes(), body].concat()).is_err() {
            return;
        }
    }
}

fn asked(lines: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    (lines.read_line(&mut line).ok()? > 0).then_some(())?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect();
    let path = path.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    lines.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    Some(Asked {
        method,
        path,
        query,
        headers,
        body,
    })
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for digit in 0..=three.len() {
            text.push(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char);
        }
        text += &"="[..usize::from(three.len() < 3)];
        text += &"="[..usize::from(three.len() < 2)];
    }
    text
}

fn plain(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            (byte as char).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len().min(64)].copy_from_slice(&key[..key.len().min(64)]);
    let with = |pad: u8| block.map(|byte| byte ^ pad).to_vec();
    let inner = Sha256::digest([with(0x36), text.to_vec()].concat());
    Sha256::digest([with(0x5c), inner.to_vec()].concat()).to_vec()
}

impl Asked {
    fn of(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.iter().filter(|(known, _)| known == name);
        pairs.next().map(|(_, value)| value.as_str())
    }

    /// Whether this is signed in one of the ways of Azure.
    fn is_of_azure(&self) -> bool {
        if self.of("sig") == Some("of+sas") {
            return true;
        }
        let header = |name: &str| self.headers.get(name).map_or("", String::as_str);
        let mut text = format!("{}\n\n\n\n\n{}\n", self.method, header("content-type"));
        for name in [
            "date",
            "if-modified-since",
            "if-match",
            "if-none-match",
            "if-unmodified-since",
            "range",
        ] {
            text += &format!("{}\n", header(name));
        }
        for (name, value) in self
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("x-ms-"))
        {
            text += &format!("{name}:{value}\n");
        }
        text += &format!("/account{}", self.path);
        let mut query: Vec<_> = self.query.iter().collect();
        query.sort();
        for (name, value) in query {
            text += &format!("\n{name}:{value}");
        }
        let signed = format!(
            "SharedKey account:{}",
            base64(&hmac(AZURE, text.as_bytes()))
        );
        [signed.as_str(), "Bearer of-identity"].contains(&header("authorization"))
    }

    /// The key that signed this, checked; or the code of the error.
    fn key(&self, state: &State) -> Result<Option<String>, &'static str> {
        let signed = self.headers.get("authorization");
        let Some(signed) = signed.filter(|signed| signed.contains("Credential=")) else {
            return Ok(None);
        };
        let part = |name: &str| {
            let (_, behind) = signed.split_once(name).unwrap();
            behind.split(',').next().unwrap().to_owned()
        };
        let credential = part("Credential=");
        let mut scope = credential.splitn(2, '/');
        let (id, scope) = (scope.next().unwrap(), scope.next().unwrap());
        let none = match id.starts_with("GIVEN") {
            true => "ExpiredToken",
            false => "InvalidAccessKeyId",
        };
        let (secret, token) = state.keys.get(id).ok_or(none)?;
        if self.headers.get("x-amz-security-token") != token.as_ref() {
            return Err("InvalidToken");
        }
        let names = part("SignedHeaders=");
        let headers = names
            .split(';')
            .map(|name| format!("{name}:{}\n", self.headers[name]));
        let headers: String = headers.collect();
        let mut query: Vec<_> = self
            .query
            .iter()
            .map(|(n, v)| format!("{}={}", escaped(n), escaped(v)))
            .collect();
        query.sort();
        let (method, path, query) = (&self.method, &self.path, query.join("&"));
        let body = &self.headers["x-amz-content-sha256"];
        let canonical = format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{body}");
        let date = &self.headers["x-amz-date"];
        let text = format!(
            "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
            hash(canonical.as_bytes())
        );
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in scope.split('/') {
            key = hmac(&key, part.as_bytes());
        }
        let signature: String = hmac(&key, text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        match signature == part("Signature=") {
            true => Ok(Some(id.to_owned())),
            false => Err("SignatureDoesNotMatch"),
        }
    }
}

type Answer = (u16, String, Vec<u8>);

/// More is XML, or a header.
fn error(status: u16, code: &str, more: &str) -> Answer {
    let (header, xml) = match more.starts_with('<') {
        true => ("", more),
        false => (more, ""),
    };
    let body = format!("<Error><Code>{code}</Code><Message>in a test</Message>{xml}</Error>");
    let header = format!("{header}Content-Length: {}\r\n", body.len());
    (status, header, body.into_bytes())
}

/// New keys, which are taken from now on.
fn give(state: &mut State) -> (String, String, String) {
    state.given += 1;
    let number = state.given;
    let key = (
        format!("GIVEN{number}"),
        format!("secret/{number}+="),
        format!("token/{number}+="),
    );
    state
        .keys
        .insert(key.0.clone(), (key.1.clone(), Some(key.2.clone())));
    key
}

fn answer(asked: &Asked, state: &mut State) -> Answer {
    let key = asked.key(state);
    let action = asked.of("Action").map(str::to_owned);
    if let Some(action) = action {
        state.asked.push(action.clone());
        if state.busy > 0 {
            state.busy -= 1;
            return error(503, "ServiceUnavailable", "");
        }
        let is_right = match &*action {
            "AssumeRole" => matches!(key, Ok(Some(_))),
            _ => asked.of("WebIdentityToken") == Some("identity"),
        };
        if !is_right || asked.of("RoleArn") != Some("arn:role") {
            return error(403, "AccessDenied", "");
        }
        let (id, secret, token) = give(state);
        let body = format!(
            "<{action}Response><{action}Result><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{secret}\
             </SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{NEVER}</Expiration></Credentials>\
             </{action}Result></{action}Response>"
        );
        return (200, String::new(), body.into_bytes());
    }
    let header = |name: &str| asked.headers.get(name).map(String::as_str);
    if header("x-ms-version").is_some() {
        let key = asked.is_of_azure().then(|| Some("account".to_owned()));
        return object(asked, key.ok_or("AuthenticationFailed"), state);
    }
    let json = |state: &mut State| {
        let (id, secret, token) = give(state);
        let body = format!(
            "{{\"AccessKeyId\":\"{id}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"{token}\",\"Expiration\":\"{NEVER}\"}}"
        );
        (200, String::new(), body.into_bytes())
    };
    if !asked.path.starts_with("/b") {
        state.asked.push(asked.path.clone());
    }
    match &*asked.path {
        "/federation/credentials" => {
            let is_right = header("x-amz-sso_bearer_token") == Some("bearer");
            if !is_right
                || asked.of("role_name") != Some("reader")
                || asked.of("account_id") != Some("123")
            {
                return error(401, "UnauthorizedException", "");
            }
            let (id, secret, token) = give(state);
            let body = format!(
                "{{\"roleCredentials\":{{\"accessKeyId\":\"{id}\",\"secretAccessKey\":\"{secret}\",\"sessionToken\":\"{token}\",\
                 \"expiration\":32472144000000}}}}"
            );
            (200, String::new(), body.into_bytes())
        }
        "/tenant/oauth2/v2.0/token" if asked.body.contains("client_assertion=identity") => {
            let body = "{\"access_token\":\"of-identity\",\"expires_in\":3600}";
            (200, String::new(), body.into())
        }
        "/v1/token"
            if asked.body.contains("subject_token=of-provider")
                && asked.body.contains("audience=%2F%2Faudience") =>
        {
            let body = "{\"access_token\":\"of-exchange\",\"expires_in\":3600}";
            (200, String::new(), body.into())
        }
        "/account:generateAccessToken" if header("authorization") == Some("Bearer of-exchange") => {
            let body = format!("{{\"accessToken\":\"of-account\",\"expireTime\":\"{NEVER}\"}}");
            (200, String::new(), body.into_bytes())
        }
        "/identity" if header("metadata") == Some("yes") => {
            (200, String::new(), b"{\"id\":\"of-provider\"}".to_vec())
        }
        "/container" if header("authorization") == Some("of-container") => json(state),
        "/latest/api/token" if asked.method == "PUT" => {
            (200, String::new(), b"of-instance".to_vec())
        }
        path if path.starts_with("/latest/")
            && header("x-aws-ec2-metadata-token") == Some("of-instance") =>
        {
            match path.rsplit('/').next() {
                Some("") => (200, String::new(), b"role".to_vec()),
                _ => json(state),
            }
        }
        "/b/k"
            if header("authorization")
                .is_some_and(|key| ["Bearer of-exchange", "Bearer of-account"].contains(&key)) =>
        {
            object(asked, Ok(Some("google".to_owned())), state)
        }
        "/b" | "/b/k" => object(asked, key, state),
        _ => error(404, "NoSuchBucket", ""),
    }
}

fn object(asked: &Asked, key: Result<Option<String>, &'static str>, state: &State) -> Answer {
    if let Some((status, code, more)) = state.refused {
        return error(status, code, more);
    }
    match key {
        Ok(None) if !state.public => return error(403, "AccessDenied", ""),
        Err("ExpiredToken") => return error(400, "ExpiredToken", ""),
        Err(code) => return error(403, code, ""),
        Ok(_) => {}
    }
    if asked.path == "/b" {
        let has_key = "k".starts_with(asked.of("prefix").unwrap_or_default());
        let key = "<Contents><Key>k</Key><LastModified>2024-01-01T00:00:00Z</LastModified><ETag>\"1\"</ETag>\
                   <Size>7</Size></Contents>";
        let keys = if has_key { key } else { "" };
        let body =
            format!("<ListBucketResult>{keys}<IsTruncated>false</IsTruncated></ListBucketResult>");
        return (200, String::new(), body.into());
    }
    let head = "ETag: \"1\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
    let length = format!("{head}Content-Length: {}\r\n", CONTENT.len());
    match asked.headers.contains_key("range") {
        true => {
            let last = CONTENT.len() - 1;
            let range = format!(
                "{length}Content-Range: bytes 0-{last}/{}\r\n",
                CONTENT.len()
            );
            (206, range, CONTENT.to_vec())
        }
        false => (200, length, CONTENT.to_vec()),
    }
}
