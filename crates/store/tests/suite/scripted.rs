//! A server whose answers are made by a function of the head of each request. One thread a connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use forerun_io::source::remote::Limits;
use forerun_store::Client;

/// Runs a test of this program again, in a process of its own, with these variables and without others of proxies.
pub(crate) fn run_again(test: &str, set: [(&str, &str); 2]) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test]);
    // The last one is set by servers, and switches HTTP_PROXY off.
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "REQUEST_METHOD",
    ] {
        child.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    let output = child.envs(set).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{output:?}"
    );
}

type Heads = Arc<Mutex<Vec<String>>>;

pub(crate) struct Scripted {
    pub(crate) address: String,
    heads: Heads,
}

impl Scripted {
    /// Answers a head, whose lines end with a line feed.
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (answer, heads) = (Arc::new(answer), Heads::default());
        let own = heads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, heads) = (answer.clone(), own.clone());
                std::thread::spawn(move || serve(&stream, &*answer, &heads));
            }
        });
        Self { address, heads }
    }

    /// A client of this server as S3, Google Cloud Storage and Azure.
    pub(crate) fn client(&self) -> Client {
        let set = [
            ("HOME", "/absent"),
            ("AWS_ENDPOINT_URL", &self.address),
            ("GOOGLE_BASE_URL", &self.address),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_STORAGE_ENDPOINT", &self.address),
        ];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Client::with_variables(Limits::default(), set).unwrap()
    }

    /// How many heads so far have this.
    pub(crate) fn count(&self, part: &str) -> usize {
        let heads = self.heads.lock().unwrap();
        heads.iter().filter(|head| head.contains(part)).count()
    }
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&str) -> Vec<u8>, heads: &Heads) {
    let _ = stream.set_nodelay(true);
    let (mut lines, mut out) = (BufReader::new(stream), stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\n\n") {
            match lines.read_line(&mut head) {
                Ok(1..) => head = head.replace('\r', ""),
                _ => return,
            }
        }
        heads.lock().unwrap().push(head.clone());
        if out.write_all(&answer(&head)).is_err() {
            return;
        }
    }
}

/// An answer without a body.
pub(crate) fn status(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\n\r\n").into()
}

/// The answer of an object with these headers, to HEAD or to a range.
pub(crate) fn object(head: &str, headers: &str, content: &[u8]) -> Vec<u8> {
    let range = head
        .lines()
        .find_map(|line| line.strip_prefix("range: bytes="));
    let range = range.and_then(|range| range.split_once('-'));
    let (first, last) = range.map_or((0, usize::MAX), |(first, last)| {
        (first.parse().unwrap(), last.parse().unwrap())
    });
    let (all, last) = (content.len(), last.min(content.len() - 1));
    let (status, told) = match range {
        Some(_) => (
            206,
            format!("Content-Range: bytes {first}-{last}/{all}\r\n"),
        ),
        None => (200, String::new()),
    };
    let body = &content[first..=last];
    let bytes = body.len();
    let head_of = format!(
        "HTTP/1.1 {status} -\r\nContent-Length: {bytes}\r\n{told}\
         Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n{headers}\r\n"
    );
    let body = if head.starts_with("HEAD") { &[] } else { body };
    [head_of.as_bytes(), body].concat()
}
