//! Mounts of stores whose servers are not ours: azurite, fake-gcs-server and moto.
//!
//! The stand-in server of the other tests answers as its author reads the documents of the stores. These three are
//! written by others: they page, tag and refuse in ways of their own. azurite and fake-gcs-server list ETags without
//! quotes and answer with them; moto has quotes everywhere; azurite checks signatures.
//!
//! `make servers` installs them below `target/servers`; `FORERUN_SERVERS` names another folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::port::address;
use super::stores::{EACH_OPEN, files};
use super::{Mounted, bytes, can_mount, folder, skipped, start_of, wait};

/// The account and the key that azurite and Microsoft's documents give to everyone.
const AZURITE_ACCOUNT: &str = "devstoreaccount1";
const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A right to write to that account until 2100: its parts, and their HMAC-SHA256 under that key.
const AZURITE_RIGHT: &str = "sv=2018-11-09&ss=b&srt=sco&sp=rwdlac&se=2100-01-01T00:00:00Z\
     &spr=https,http&sig=GC%2BChk%2Ffr2kGYxbx3ScPyFgz5bjf1gcFtmNtRsA6N6U%3D";

/// A store's server: how it is started, filled and read.
struct Kind {
    /// Below the folder of servers.
    program: &'static str,
    arguments: fn(port: &str) -> Vec<&str>,
    /// The header without which it takes no object.
    header: &'static str,
    /// Method and target of the request that makes the bucket, and its body.
    bucket: (&'static str, String, &'static [u8]),
    /// The same of one that puts the object of a percent-encoded key.
    put: fn(key: &str) -> (&'static str, String),
    delete: fn(key: &str) -> String,
    address: &'static str,
    variables: fn(endpoint: &str) -> Vec<(&'static str, String)>,
}

fn azurite() -> Kind {
    let bucket = format!("/{AZURITE_ACCOUNT}/bucket?restype=container&{AZURITE_RIGHT}");
    Kind {
        program: "node_modules/.bin/azurite-blob",
        arguments: |port| {
            let fixed = "--inMemoryPersistence --disableTelemetry --skipApiVersionCheck --blobPort";
            fixed.split(' ').chain([port]).collect()
        },
        header: "x-ms-blob-type: BlockBlob",
        bucket: ("PUT", bucket, b""),
        put: |key| {
            let target = format!("/{AZURITE_ACCOUNT}/bucket/{key}?{AZURITE_RIGHT}");
            ("PUT", target)
        },
        delete: |key| format!("/{AZURITE_ACCOUNT}/bucket/{key}?{AZURITE_RIGHT}"),
        address: "az://bucket",
        variables: |endpoint| {
            let endpoint = format!("{endpoint}/{AZURITE_ACCOUNT}");
            vec![
                ("AZURE_STORAGE_ACCOUNT_NAME", AZURITE_ACCOUNT.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY.to_owned()),
                ("AZURE_STORAGE_ENDPOINT", endpoint),
            ]
        },
    }
}

fn fake_gcs_server() -> Kind {
    Kind {
        program: "bin/fake-gcs-server",
        arguments: |port| {
            let fixed = "-scheme http -host 127.0.0.1 -backend memory -log-level error";
            let public = ["-public-host", "127.0.0.1", "-port", port];
            fixed.split(' ').chain(public).collect()
        },
        header: "",
        bucket: (
            "POST",
            "/storage/v1/b?project=p".to_owned(),
            b"{\"name\":\"bucket\"}",
        ),
        put: |key| {
            let upload = "/upload/storage/v1/b/bucket/o?uploadType=media&name=";
            ("POST", format!("{upload}{key}"))
        },
        delete: |key| format!("/storage/v1/b/bucket/o/{}", key.replace('/', "%2F")),
        address: "gs://bucket",
        variables: |endpoint| vec![("GOOGLE_BASE_URL", endpoint.to_owned())],
    }
}

fn moto() -> Kind {
    Kind {
        program: "venv/bin/moto_server",
        arguments: |port| vec!["-H", "127.0.0.1", "-p", port],
        // It looks at the form alone.
        header: "Authorization: AWS4-HMAC-SHA256 Credential=testing/20240101/us-east-1/s3/aws4_request, \
                 SignedHeaders=host, Signature=0",
        bucket: ("PUT", "/bucket".to_owned(), b""),
        put: |key| ("PUT", format!("/bucket/{key}")),
        delete: |key| format!("/bucket/{key}"),
        address: "s3://bucket",
        variables: |endpoint| {
            vec![
                ("AWS_ENDPOINT_URL", endpoint.to_owned()),
                ("AWS_ACCESS_KEY_ID", "testing".to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "testing".to_owned()),
                ("AWS_REGION", "us-east-1".to_owned()),
            ]
        },
    }
}

/// A server that runs. It keeps its objects in memory.
struct Server {
    kind: Kind,
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "where the servers lie is for whoever runs the tests"
)]
fn folder_of_servers() -> PathBuf {
    let beside = || {
        // target/release/forerun
        let target = Path::new(cargo_bin!("forerun")).ancestors().nth(2);
        target.unwrap().join("servers")
    };
    std::env::var_os("FORERUN_SERVERS").map_or_else(beside, PathBuf::from)
}

impl Server {
    /// Starts one with an empty bucket; none, and the test is skipped, if this machine cannot.
    #[track_caller]
    fn start(kind: Kind) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let program = folder_of_servers().join(kind.program);
        if !program.exists() {
            skipped(format!("no {}: `make servers`", kind.program));
            return None;
        }
        let port = address().port();
        let folder = folder();
        let child = Command::new(&program)
            .args((kind.arguments)(&port.to_string()))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self {
            kind,
            child,
            port,
            _folder: folder,
        };
        wait::eventually("the server listens", || {
            let ended = server.child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{}, port {port}: {ended:?}",
                program.display()
            );
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let (method, target, body) = &server.kind.bucket;
        server.ask(method, target, body);
        Some(server)
    }

    /// A request that must succeed.
    fn ask(&self, method: &str, target: &str, body: &[u8]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (port, bytes) = (self.port, body.len());
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
        head += &format!("Connection: close\r\nContent-Length: {bytes}\r\n");
        if !self.kind.header.is_empty() {
            head = head + self.kind.header + "\r\n";
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => {}
        }
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.starts_with("HTTP/1.1 2"),
            "{method} {target}: {answer}"
        );
    }

    fn put(&self, key: &str, content: &[u8]) {
        let (method, target) = (self.kind.put)(&key.replace(' ', "%20"));
        self.ask(method, &target, content);
    }

    fn delete(&self, key: &str) {
        self.ask("DELETE", &(self.kind.delete)(key), b"");
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        (self.kind.variables)(&format!("http://127.0.0.1:{}", self.port))
    }

    fn mount(&self, flags: &[&str]) -> Mounted {
        let folder = folder();
        let address = Path::new(self.kind.address);
        let daemon = start_of(address, folder.path(), flags, &self.variables());
        Mounted { folder, daemon }
    }

    /// The object of a key, by the command that reads it without a mount.
    fn read(&self, key: &str) -> Vec<u8> {
        let output = Command::new(cargo_bin!("forerun"))
            .arg("read")
            .arg(format!("{}/{key}", self.kind.address))
            .envs(self.variables())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }
}

/// Folders of a store, its objects whole and in parts, and one that is replaced and deleted.
#[track_caller]
fn a_store_is_a_mount(kind: Kind) {
    let Some(server) = Server::start(kind) else {
        return;
    };
    let mut expected = BTreeMap::new();
    let sizes = [0, 1, 70_000, 3_000_001];
    for (number, size) in sizes.into_iter().enumerate() {
        for path in ["a", "f/b", "f/g/c d"] {
            let path = format!("{path}{number}");
            let content = bytes(size, number as u64);
            server.put(&path, &content);
            expected.insert(PathBuf::from(path), content);
        }
    }
    let largest = &expected[Path::new("f/g/c d3")];
    assert!(server.read("f/g/c d3") == *largest);

    // Names are believed, so the versions are those of the listing.
    let mounted = server.mount(&["--entry-timeout", "600s", "--attribute-timeout", "600s"]);
    let listed = fs::read_dir(mounted.point("f/g")).unwrap().count();
    assert_eq!(listed, sizes.len());
    let file = File::open(mounted.point("f/g/c d3")).unwrap();
    let mut piece = [0; 1000];
    for at in [2_999_999, 5, 1_500_000, 77_777] {
        let read = file.read_at(&mut piece, at).unwrap();
        let rest = &largest[at as usize..];
        assert!(piece[..read] == rest[..piece.len().min(rest.len())]);
    }
    assert!(files(&mounted.point("")) == expected);
    drop((file, mounted));

    // Versions are those of each object's own answer.
    let mounted = server.mount(&EACH_OPEN);
    assert!(files(&mounted.point("")) == expected);
    let missing = fs::metadata(mounted.point("missing")).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    for round in 1..6 {
        let before = fs::read(mounted.point("a3")).unwrap();
        let old = File::open(mounted.point("a3")).unwrap();
        // As long as the one before, and shorter.
        let content = bytes(3_000_001 - round / 3, 100 + round as u64);
        server.put("a3", &content);
        assert!(fs::read(mounted.point("a3")).unwrap() == content, "{round}");
        match old.read_at(&mut piece, 1_234_567) {
            Ok(read) => assert!(piece[..read] == before[1_234_567..][..read], "{round}"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ESTALE), "{round}"),
        }
    }
    server.delete("a3");
    let gone = File::open(mounted.point("a3")).unwrap_err();
    assert_eq!(gone.raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn containers_of_azurite_are_mounted() {
    a_store_is_a_mount(azurite());
}

#[test]
fn buckets_of_fake_gcs_server_are_mounted() {
    a_store_is_a_mount(fake_gcs_server());
}

#[test]
fn buckets_of_moto_are_mounted() {
    a_store_is_a_mount(moto());
}
