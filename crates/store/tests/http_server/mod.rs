//! A small HTTP server on loopback: objects with ETags, ranges, and faults in a given order.
//!
//! One thread a connection. Before each answer the next fault of the list, if there is one, decides
//! how that one goes wrong. Requests are counted, and with them the bytes of bodies.

mod listing;
pub(crate) mod objects;

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How an answer goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// This status and no body; with the seconds of a `Retry-After`, if there are any.
    Status(u16, Option<u64>),
    /// The head, so many bytes of the body, and the end of the connection.
    Cut(usize),
    /// The end of the connection instead of an answer.
    Reset,
    /// The whole object and 200, whatever was asked for.
    Whole,
    /// So many bytes of the range at most, and a head that says so.
    #[allow(dead_code, reason = "of one test program")]
    Part(u64),
    /// The range, without an ETag.
    Untagged,
    /// The range, with an ETag that stands for several contents.
    Weak,
    /// The range, said to begin a byte later.
    Shifted,
    /// The range in a chunk, with headers that no client understands.
    Odd,
    /// The head, so many bytes of the body, and no more until the client gives up.
    Stall(usize),
    /// The head and the body, and more bytes of it until the client closes the connection.
    Endless,
    /// The head and the body, of which there is said to be more, and no more until the client gives up.
    #[allow(dead_code, reason = "of one test program")]
    Unended,
    /// The range, of an object of so many bytes.
    Total(u64),
    /// 307 to this address.
    Redirect(&'static str),
    /// This status, and this text.
    #[allow(dead_code, reason = "of one test program")]
    Text(u16, &'static str),
}

/// Where ETags stand without quotes.
#[allow(dead_code, reason = "of one test program")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bare {
    Nowhere,
    InListings,
    InAnswers,
    Everywhere,
}

/// The bytes of an object.
#[derive(Clone)]
pub(crate) enum Content {
    Bytes(Arc<Vec<u8>>),
    Zeros(u64),
}

impl Content {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(size) => *size,
        }
    }

    fn range(&self, first: u64, end: u64) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes[first as usize..end as usize].to_vec(),
            Self::Zeros(_) => vec![0; (end - first) as usize],
        }
    }
}

struct State {
    /// By path: the version and the bytes.
    objects: HashMap<String, (String, Content)>,
    /// Sizes in listings, where those are wrong.
    sizes: HashMap<String, u64>,
    faults: VecDeque<Fault>,
    /// How each answer goes wrong that the list says nothing of.
    always: Option<Fault>,
    /// Keys of a bucket whose listing is asked for, in the way of S3.
    keys: u64,
    requests: u64,
    body_bytes: u64,
    /// Requests that must have come before any is answered.
    held: u64,
    arrived: u64,
    /// Requests with this in their path are not answered.
    hanging: Option<&'static str>,
    /// Nor are those of ranges that begin at this byte or behind it.
    silent_from: u64,
    /// Requests that wait for their answer, and the most of them at once.
    waiting: usize,
    waiting_most: usize,
    bare: Bare,
    /// Whether conditions are ignored.
    is_careless: bool,
    /// Whether answers tell versions as generations, by which objects are asked for.
    has_generations: bool,
    /// The most keys of a page.
    page: usize,
    /// Pages that end go on: with the token of the page before, or with another one each time.
    again: Option<&'static str>,
    /// The only key of credentials that is not refused, with this status.
    accepted: Option<(String, u16)>,
    /// Lines of requests and of their headers.
    lines: Vec<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            sizes: HashMap::new(),
            faults: VecDeque::new(),
            always: None,
            keys: 0,
            requests: 0,
            body_bytes: 0,
            held: 0,
            arrived: 0,
            hanging: None,
            silent_from: u64::MAX,
            waiting: 0,
            waiting_most: 0,
            bare: Bare::Nowhere,
            is_careless: false,
            has_generations: false,
            page: 1000,
            again: None,
            accepted: None,
            lines: Vec::new(),
        }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// One more request has arrived.
    another: Condvar,
}

pub(crate) struct Server {
    shared: Arc<Shared>,
    address: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::<Shared>::default();
        let own = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = own.clone();
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { shared, address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The object at this path has these bytes from now on.
    pub(crate) fn put(&self, path: &str, version: &str, bytes: Vec<u8>) {
        let mut state = self.shared.state.lock().unwrap();
        let object = (format!("\"{version}\""), Content::Bytes(Arc::new(bytes)));
        state.objects.insert(path.to_owned(), object);
    }

    /// The object at this path has so many zeros.
    pub(crate) fn put_zeros(&self, path: &str, size: u64) {
        let mut state = self.shared.state.lock().unwrap();
        let object = ("\"0\"".to_owned(), Content::Zeros(size));
        state.objects.insert(path.to_owned(), object);
    }

    /// Listings say that the object at this path has so many bytes.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn lists_size(&self, path: &str, size: u64) {
        let mut state = self.shared.state.lock().unwrap();
        state.sizes.insert(path.to_owned(), size);
    }

    pub(crate) fn delete(&self, path: &str) {
        self.shared.state.lock().unwrap().objects.remove(path);
    }

    /// The next answers go wrong like this, one after the other.
    pub(crate) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.state.lock().unwrap().faults.extend(faults);
    }

    /// All answers go wrong like this from now on, or none.
    pub(crate) fn fail_always(&self, fault: Option<Fault>) {
        self.shared.state.lock().unwrap().always = fault;
    }

    /// No request is answered from now on until so many have come.
    pub(crate) fn hold(&self, requests: u64) {
        let mut state = self.shared.state.lock().unwrap();
        state.held = state.arrived + requests;
    }

    /// Requests with this in their path are not answered from now on, or all are again.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn hang(&self, part: Option<&'static str>) {
        self.shared.state.lock().unwrap().hanging = part;
        self.shared.another.notify_all();
    }

    /// Requests for ranges that begin at this byte or behind it are not answered from now on.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn is_silent_from(&self, first: u64) {
        self.shared.state.lock().unwrap().silent_from = first;
    }

    /// Requests that wait for their answer, and the most of them at once.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.shared.state.lock().unwrap();
        (state.waiting, state.waiting_most)
    }

    /// Waits until so many requests wait for their answer.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn wait_for(&self, requests: usize) {
        let state = self.shared.state.lock().unwrap();
        let few = |state: &mut State| state.waiting < requests;
        let waited = self
            .shared
            .another
            .wait_timeout_while(state, Duration::from_secs(600), few);
        assert!(!waited.unwrap().1.timed_out(), "{requests} requests wait");
    }

    /// Faults that no answer had yet.
    pub(crate) fn faults_left(&self) -> usize {
        self.shared.state.lock().unwrap().faults.len()
    }

    /// Listings have so many keys in place of the objects, in pages of 1,000, behind one folder.
    #[allow(dead_code, reason = "of one test program: not every client lists")]
    pub(crate) fn list(&self, keys: u64) {
        self.shared.state.lock().unwrap().keys = keys;
    }

    /// ETags stand without quotes here from now on.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn bare(&self, bare: Bare) {
        self.shared.state.lock().unwrap().bare = bare;
    }

    /// Conditions of requests, and generations in them, are ignored from now on.
    pub(crate) fn ignore_conditions(&self) {
        self.shared.state.lock().unwrap().is_careless = true;
    }

    /// Answers tell versions as generations from now on, and those of others are not there.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn tell_generations(&self) {
        self.shared.state.lock().unwrap().has_generations = true;
    }

    /// Pages of listings have at most so many keys.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn page(&self, keys: usize) {
        self.shared.state.lock().unwrap().page = keys;
    }

    /// Pages that end go on: with the `same` token, or with another one each time.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn again(&self, token: &'static str) {
        self.shared.state.lock().unwrap().again = Some(token);
    }

    /// Requests that are not signed with this key are refused from now on.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn accept(&self, key: &str, refused: u16) {
        self.shared.state.lock().unwrap().accepted = Some((key.to_owned(), refused));
    }

    /// Lines of requests and of their headers, so far.
    #[allow(dead_code, reason = "of one test program")]
    pub(crate) fn lines(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().lines.clone()
    }

    /// Requests, and bytes of bodies, so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = self.shared.state.lock().unwrap();
        (state.requests, state.body_bytes)
    }
}

/// A request: of its headers those that matter here.
struct Asked {
    lines: Vec<String>,
    is_head: bool,
    path: String,
    /// First and last byte.
    range: Option<(u64, u64)>,
    version: Option<String>,
}

fn serve(stream: &TcpStream, shared: &Shared) {
    // A head and its body are two writes: joined, the second would wait for an acknowledgement of the first.
    let _ = stream.set_nodelay(true);
    let mut lines = BufReader::new(stream);
    while let Some(asked) = asked(&mut lines) {
        let mut state = shared.state.lock().unwrap();
        state.arrived += 1;
        state.waiting += 1;
        state.waiting_most = state.waiting_most.max(state.waiting);
        shared.another.notify_all();
        let is_held = |state: &mut State| {
            let hangs = |part| asked.path.contains(part);
            let is_silent = asked
                .range
                .is_some_and(|(first, _)| first >= state.silent_from);
            state.arrived < state.held || state.hanging.is_some_and(hangs) || is_silent
        };
        let mut state = shared.another.wait_while(state, is_held).unwrap();
        state.waiting -= 1;
        let (head, body, end) = answer(&asked, &mut state);
        drop(state);
        let mut out = stream;
        if out.write_all(head.as_bytes()).is_err() || out.write_all(&body).is_err() {
            return;
        }
        match end {
            End::GoesOn => {}
            End::Closes => {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            End::Floods => {
                let more = [b'x'; 1 << 16];
                while out.write_all(&more).is_ok() {}
                return;
            }
            End::Stalls => {
                // Until the client closes the connection.
                let _ = io::copy(&mut lines, &mut io::sink());
                return;
            }
        }
    }
}

fn asked(lines: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    (lines.read_line(&mut line).ok()? > 0).then_some(())?;
    let mut words = line.split(' ');
    let is_head = words.next()? == "HEAD";
    let path = words.next()?.to_owned();
    let (mut range, mut version) = (None, None);
    let mut all = vec![line.trim_end().to_owned()];
    loop {
        line.clear();
        lines.read_line(&mut line).ok()?;
        let header = line.trim_end();
        if header.is_empty() {
            return Some(Asked {
                lines: all,
                is_head,
                path,
                range,
                version,
            });
        }
        all.push(header.to_owned());
        let (name, value) = header.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().ok()?));
            }
            "if-match" => version = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// The connection after an answer.
enum End {
    GoesOn,
    Closes,
    Stalls,
    Floods,
}

/// Head and body, and the connection after them.
fn answer(asked: &Asked, state: &mut State) -> (String, Vec<u8>, End) {
    let Asked { path, range, .. } = asked;
    state.requests += 1;
    if state.lines.len() < 10_000 {
        state.lines.extend(asked.lines.iter().cloned());
    }
    let fault = state.faults.pop_front().or(state.always);
    let empty = |status: u16, more: &str| {
        let head = format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\n{more}\r\n");
        (head, Vec::new(), End::GoesOn)
    };
    match fault {
        Some(Fault::Reset) => return (String::new(), Vec::new(), End::Closes),
        Some(Fault::Status(status, after)) => {
            let after = after.map(|seconds| format!("Retry-After: {seconds}\r\n"));
            return empty(status, &after.unwrap_or_default());
        }
        Some(Fault::Text(status, text)) => {
            let head = format!(
                "HTTP/1.1 {status} -\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            // A body behind an answer to HEAD would be taken for the next answer.
            let body = if asked.is_head { "" } else { text };
            return (head, body.into(), End::GoesOn);
        }
        Some(Fault::Redirect(to)) => return empty(307, &format!("Location: {to}\r\n")),
        _ => {}
    }
    if let Some((key, status)) = &state.accepted {
        let signed = format!("Credential={key}/");
        if !asked.lines.iter().any(|line| line.contains(&signed)) {
            return empty(*status, "");
        }
    }
    let is_azure = path.contains("comp=list");
    if path.contains("list-type=2") || is_azure {
        let page = match state.keys {
            0 => {
                let is_bare = matches!(state.bare, Bare::InListings | Bare::Everywhere);
                let page = listing::page(
                    path,
                    &state.objects,
                    &state.sizes,
                    is_azure,
                    is_bare,
                    state.page,
                );
                let token = match state.again {
                    Some("same") => "zz".to_owned(),
                    _ => format!("zz{}", state.requests),
                };
                let next = format!(
                    "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
                );
                match state.again {
                    Some(_) => page.replace("<IsTruncated>false</IsTruncated>", &next),
                    None => page,
                }
            }
            keys => page(path, keys),
        };
        let (bytes, end) = match fault {
            Some(Fault::Endless) => (usize::MAX >> 1, End::Floods),
            _ => (page.len(), End::GoesOn),
        };
        let head = format!("HTTP/1.1 200 -\r\nContent-Length: {bytes}\r\n\r\n");
        return (head, page.into_bytes(), end);
    }
    let (path, generation) = match path.split_once("?generation=") {
        Some((path, generation)) => (path, Some(generation)),
        None => (path.as_str(), None),
    };
    let Some((version, content)) = state.objects.get(&listing::unescaped(path)) else {
        return empty(404, "");
    };
    let is_other = |generation: &str| version.trim_matches('"') != generation;
    if !state.is_careless && generation.is_some_and(is_other) {
        return empty(404, "");
    }
    let number = match state.has_generations {
        true => format!("x-goog-generation: {}\r\n", version.trim_matches('"')),
        false => String::new(),
    };
    let version = match state.bare {
        Bare::InAnswers | Bare::Everywhere => &version.replace('"', ""),
        _ => version,
    };
    if asked
        .version
        .as_ref()
        .is_some_and(|wanted| wanted != version && !state.is_careless)
    {
        return empty(412, "");
    }
    let all = content.size();
    let (first, last) = match (fault, range) {
        (Some(Fault::Whole), _) | (_, None) => (0, all.saturating_sub(1)),
        (_, Some((first, _))) if *first >= all => {
            return empty(416, &format!("Content-Range: bytes */{all}\r\n"));
        }
        (Some(Fault::Part(bytes)), Some((first, last))) => {
            (*first, (*last).min(all - 1).min(first + bytes - 1))
        }
        (_, Some((first, last))) => (*first, (*last).min(all - 1)),
    };
    let end = all.min(last + 1);
    let mut body = if asked.is_head {
        Vec::new()
    } else {
        content.range(first, end)
    };
    let tag = match fault {
        Some(Fault::Untagged) => String::new(),
        Some(Fault::Weak) => format!("ETag: W/{version}\r\n"),
        _ => format!("ETag: {version}\r\n"),
    };
    // An empty folder, as programs for Azure mark it.
    let mark = match version.contains("folder") {
        true => "x-ms-meta-hdi_isfolder: true\r\n",
        false => "",
    };
    let bytes = match fault {
        Some(Fault::Endless | Fault::Unended) if !asked.is_head => u64::MAX >> 1,
        _ => end - first,
    };
    let mut head = format!(
        "{tag}{number}{mark}Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: {bytes}\r\n"
    );
    if asked.is_head {
        return (
            format!("HTTP/1.1 200 -\r\n{head}\r\n"),
            Vec::new(),
            End::GoesOn,
        );
    }
    let status = match (fault, range) {
        (Some(Fault::Whole), _) | (_, None) => 200,
        _ => {
            let all = match fault {
                Some(Fault::Total(bytes)) => bytes,
                _ => all,
            };
            let first = first + u64::from(fault == Some(Fault::Shifted));
            head += &format!("Content-Range: bytes {first}-{last}/{all}\r\n");
            206
        }
    };
    let end = match fault {
        Some(Fault::Cut(_)) => End::Closes,
        Some(Fault::Stall(_) | Fault::Unended) => End::Stalls,
        Some(Fault::Endless) => End::Floods,
        _ => End::GoesOn,
    };
    if let Some(Fault::Cut(bytes) | Fault::Stall(bytes)) = fault {
        body.truncate(bytes);
    }
    state.body_bytes += body.len() as u64;
    if fault == Some(Fault::Odd) {
        let length = format!("Content-Length: {bytes}\r\n");
        head = head.replace(&length, "Transfer-Encoding: chunked\r\n");
        head = head.replace("Mon, 01", "someday").replace("GMT", "ü");
        body = [format!("{bytes:x}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    }
    (format!("HTTP/1.1 {status} -\r\n{head}\r\n"), body, end)
}

/// A page of a listing; its token is the number of its first key.
fn page(path: &str, keys: u64) -> String {
    let token = path.split_once("continuation-token=").map(|(_, rest)| rest);
    let token = token.and_then(|rest| rest.split('&').next()?.parse().ok());
    let first = token.unwrap_or(0);
    let end = keys.min(first + 1000);
    let mut page = String::from("<ListBucketResult>");
    if first == 0 {
        page += "<CommonPrefixes><Prefix>folder/</Prefix></CommonPrefixes>";
    }
    for key in first..end {
        page += &format!(
            "<Contents><Key>k{key:06}</Key><LastModified>2024-01-01T00:00:00Z</LastModified><ETag>\"1\"</ETag><Size>{key}</Size></Contents>"
        );
    }
    let is_truncated = end < keys;
    page += &format!("<IsTruncated>{is_truncated}</IsTruncated>");
    if is_truncated {
        page += &format!("<NextContinuationToken>{end}</NextContinuationToken>");
    }
    page + "</ListBucketResult>"
}
