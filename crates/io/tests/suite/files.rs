//! Files as a user may hand them in: missing, unreadable, empty, too many, changed under way.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use forerun_baselines::PRESETS;
use forerun_core::{Bytes, Nanos, Profile, preset};
use forerun_io::source::OpenFile;
use forerun_io::{BackendChoice, Config, Driver, Error, Looks, backend};

use crate::skipped::skipped;

fn driver(backend: &str) -> Driver {
    let settings = preset::find("forerun")
        .unwrap()
        .settings(Bytes(16 << 20))
        .unwrap();
    let mut config = Config::new(settings);
    config.backend = BackendChoice::named(backend).unwrap();
    Driver::new(config).unwrap()
}

fn written(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn what_cannot_be_opened_is_answered_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver("auto");
    assert!(matches!(
        driver.open(dir.path()),
        Err(Error::Directory { .. })
    ));
    let missing = driver.open(&dir.path().join("absent")).unwrap_err();
    assert!(
        missing.to_string().contains("absent: No such file"),
        "{missing}"
    );
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(
        driver
            .open(&socket)
            .unwrap_err()
            .to_string()
            .contains("socket")
    );
    // Would block for ever if it were opened as a file is.
    let pipe = dir.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: `name` is a valid C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let refused = driver.open(&pipe).unwrap_err().to_string();
    assert!(refused.contains("pipe"), "{refused}");
}

/// Two block devices that may be opened, loop devices only where there are no others.
fn block_devices() -> Option<[(PathBuf, u64); 2]> {
    let names = fs::read_dir("/sys/class/block").ok()?.flatten();
    let mut names: Vec<_> = names
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort_by_key(|name| (name.starts_with("loop"), name.clone()));
    let opened = names.iter().filter_map(|name| {
        let path = Path::new("/dev").join(name);
        let found = OpenFile::open(&path).ok()?;
        found.identity().ok()?;
        Some((path.clone(), fs::metadata(path).ok()?.rdev()))
    });
    opened.take(2).collect::<Vec<_>>().try_into().ok()
}

#[test]
fn raw_block_devices_are_devices_of_their_own_and_not_memory() {
    let Some(devices) = block_devices() else {
        return skipped("two block devices and the right to read them are needed");
    };
    let driver = driver("auto");
    // A system call and a copy: the prior of files in memory, as the names of devices are.
    let memory = Profile::constant(Nanos(10_000), 5_000_000_000).unwrap();
    let readers = devices.map(|(path, number)| {
        let reader = driver.open(&path).unwrap();
        assert_eq!(reader.device(), Some(number), "{}", path.display());
        assert!(!reader.is_served());
        let queues = driver.queues();
        let queue = queues.iter().find(|(of, _)| *of == Some(number)).unwrap();
        assert!(path.to_string_lossy().contains("ram") || queue.1.profile != memory);
        reader
    });
    assert_ne!(readers[0].device(), readers[1].device());
}

#[test]
fn an_empty_file_has_nothing_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), "empty", b"");
    for entry in backend::LIST {
        let driver = driver(entry.name);
        let reader = driver.open(&path).unwrap();
        assert_eq!(
            (reader.size(), reader.read_at(&mut [0; 10], 0).unwrap()),
            (0, 0)
        );
        assert_eq!(reader.read_at(&mut [0; 10], 1 << 40).unwrap(), 0);
    }
}

#[test]
fn settings_below_the_minimum_and_rates_out_of_range_are_refused() {
    let mut settings = PRESETS[0].settings(Bytes(16 << 20)).unwrap();
    settings.memory = Bytes(0);
    let refused = Driver::new(Config::new(settings)).unwrap_err().to_string();
    assert!(
        refused.contains("memory of 0 bytes: must be at least"),
        "{refused}"
    );
    let mut config = Config::new(PRESETS[0].settings(Bytes(16 << 20)).unwrap());
    config.lab.fault = Some(forerun_io::FaultPlan {
        error_permille: 1001,
        ..Default::default()
    });
    assert!(matches!(
        Driver::new(config),
        Err(Error::FaultRate { value: 1001, .. })
    ));
}

#[test]
fn a_file_that_grows_shrinks_or_is_rewritten_is_read_as_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), "file", &[1; 20_000]);
    for entry in backend::LIST {
        let mut config = Config::new(PRESETS[0].settings(Bytes(16 << 20)).unwrap());
        config.backend = BackendChoice::named(entry.name).unwrap();
        config.looks = Looks::EachRead;
        let driver = Driver::new(config).unwrap();
        fs::write(&path, [1; 20_000]).unwrap();
        let reader = driver.open(&path).unwrap();
        let writer = File::options().write(true).open(&path).unwrap();
        let mut buf = vec![0; 30_000];
        assert_eq!(reader.read_at(&mut buf, 0).unwrap(), 20_000);
        writer.write_all_at(&[2; 5_000], 20_000).unwrap();
        assert_eq!(
            reader.read_at(&mut buf, 0).unwrap(),
            25_000,
            "{}",
            entry.name
        );
        assert_eq!((buf[19_999], buf[20_000], buf[24_999]), (1, 2, 2));
        writer.set_len(7_000).unwrap();
        assert_eq!(reader.read_at(&mut buf, 0).unwrap(), 7_000);
        assert_eq!(reader.read_at(&mut buf, 7_000).unwrap(), 0);
        // The same size, and a read that does not touch the end: seen by the next open.
        writer.write_all_at(&[3; 7_000], 0).unwrap();
        let anew = driver.open(&path).unwrap();
        assert_eq!(anew.read_at(&mut buf[..100], 0).unwrap(), 100);
        assert_eq!(buf[..100], [3; 100]);
        drop((reader, anew));
        let ledger = driver.finish().unwrap();
        ledger.check().unwrap();
        assert_eq!(ledger.refused_inputs, 0);
    }
}

#[test]
fn a_replaced_file_keeps_its_old_content_for_who_has_it_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), "file", &[1; 9_000]);
    let driver = driver("auto");
    let old = driver.open(&path).unwrap();
    fs::rename(written(dir.path(), "other", &[2; 9_000]), &path).unwrap();
    let new = driver.open(&path).unwrap();
    let mut buf = [0; 9_000];
    assert_eq!(old.read_at(&mut buf, 0).unwrap(), 9_000);
    assert_eq!(buf, [1; 9_000]);
    assert_eq!(new.read_at(&mut buf, 0).unwrap(), 9_000);
    assert_eq!(buf, [2; 9_000]);
}

#[test]
fn a_file_closed_and_opened_again_is_still_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), "file", &[1; 50_000]);
    // A young version would be dropped once it is old.
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    let driver = driver("auto");
    let mut buf = vec![0; 50_000];
    for _ in 0..3 {
        assert_eq!(
            driver.open(&path).unwrap().read_at(&mut buf, 0).unwrap(),
            50_000
        );
    }
    let ledger = driver.finish().unwrap();
    assert_eq!(ledger.request_bytes, Bytes(50_000));
}

#[test]
fn ten_thousand_files_are_open_at_once_or_the_limit_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver("pread");
    let mut open = Vec::new();
    for i in 0..10_000_u32 {
        let path = written(dir.path(), &i.to_string(), &i.to_le_bytes());
        match driver.open(&path) {
            Ok(reader) => open.push(reader),
            Err(e) => {
                assert!(matches!(e, Error::TooManyOpenFiles { .. }), "{e}");
                assert!(e.to_string().contains("limit is"), "{e}");
                break;
            }
        }
    }
    for (i, reader) in open.iter().enumerate().step_by(97) {
        let mut buf = [0; 4];
        assert_eq!(reader.read_at(&mut buf, 0).unwrap(), 4);
        assert_eq!(buf, (i as u32).to_le_bytes());
    }
    drop(open);
    let ledger = driver.finish().unwrap();
    assert!(ledger.memory_peak <= Bytes(16 << 20));
    ledger.check().unwrap();
}

#[test]
fn a_finished_driver_refuses_what_is_not_resident() {
    let driver = driver("auto");
    let reader = driver.open_generated(1, 1, 1 << 20).unwrap();
    let mut buf = [0; 100];
    assert_eq!(reader.read_at(&mut buf, 0).unwrap(), 100);
    driver.finish().unwrap();
    let refused = reader.read_at(&mut buf, (1 << 20) - 100).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::ESHUTDOWN));
}

#[test]
fn a_journal_that_cannot_be_written_is_an_error_at_the_end() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(libc::ENOSPC))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut config = Config::new(PRESETS[0].settings(Bytes(16 << 20)).unwrap());
    config.journal = Some(Box::new(Full));
    let driver = Driver::new(config).unwrap();
    let reader = driver.open_generated(1, 1, 100_000).unwrap();
    assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 10);
    drop(reader);
    assert!(matches!(driver.finish(), Err(Error::Journal(_))));
}
