//! One file system that does not answer holds up nobody else: not other files, not the control
//! socket, not the end of the mount.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::Receiver;

use super::silent::{FILE_BYTES, PATIENCE, Silent, apart, content};
use super::{eventually, forerun};

/// Reads a file piece by piece to its end; what is wrong with it.
fn read_through(path: &Path, file: u64) -> std::io::Result<bool> {
    let open = File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    for at in (0..FILE_BYTES).step_by(buffer.len()) {
        open.read_exact_at(&mut buffer, at)?;
        if buffer != content(file, at, buffer.len()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Readers of so many files of the silent server.
fn readers(silent: &Silent, files: u64) -> Vec<Receiver<std::io::Result<bool>>> {
    let reader = |file: u64| {
        let path = silent.mounted.point(format!("slow/{file}"));
        apart(move || read_through(&path, file))
    };
    (0..files).map(reader).collect()
}

/// The control socket answers.
fn is_answered(socket: &Path) -> bool {
    let socket = socket.to_owned();
    let said = apart(move || forerun(&["ctl".as_ref(), socket.as_os_str(), "stats".as_ref()]));
    said.recv_timeout(PATIENCE).is_ok_and(|(code, _)| code == 0)
}

#[test]
fn a_file_that_changes_and_then_has_no_attributes_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    for answers in 1..=6 {
        let Some(silent) = Silent::new(&["--control", socket.to_str().unwrap()]) else {
            return;
        };
        let file = File::open(silent.mounted.point("slow/1")).unwrap();
        let (begun, begin) = std::sync::mpsc::channel();
        let reader = apart(move || {
            let mut buffer = vec![0; 4096];
            for at in (0..).map(|n| n * 7 % 2000 * 4096) {
                let read = file.read_at(&mut buffer, at);
                let _ = begun.send(());
                if read.is_err() {
                    return;
                }
            }
        });
        begin.recv_timeout(PATIENCE).expect("a read");
        silent.orders().flips.insert(1, answers);
        eventually("a request without answer", || silent.held() > 0);
        silent.good_is_read();
        assert!(is_answered(&socket), "after {answers} answers");
        silent.cut_off();
        let _ = reader.recv_timeout(PATIENCE);
    }
}
