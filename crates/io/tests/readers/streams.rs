//! Readers as streams: `std::io::Read` and `Seek`, and their asynchronous twins.

use std::io::{self, Read, Seek, SeekFrom};

use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver, generated};

const BYTES: u64 = 1_234_567;

fn driver() -> Driver {
    let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
    Driver::new(Config::new(settings)).unwrap()
}

#[test]
fn a_reader_is_a_stream_with_a_cursor_of_its_own() {
    let driver = driver();
    let mut reader = driver.open_generated(1, 0, BYTES).unwrap();
    let mut all = Vec::new();
    assert_eq!(reader.read_to_end(&mut all).unwrap() as u64, BYTES);
    assert_eq!(generated::check(1, 0, 0, &all), Ok(()));
    assert_eq!(reader.seek(SeekFrom::End(-7)).unwrap(), BYTES - 7);
    reader.read_at(&mut [0; 100], 0).unwrap();
    assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), 7);
    assert_eq!(reader.seek(SeekFrom::Current(1)).unwrap(), BYTES + 1);
    assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0, "past the end");
    reader.seek(SeekFrom::Start(3)).unwrap();
    for before in [SeekFrom::Current(-4), SeekFrom::End(-(BYTES as i64) - 1)] {
        assert_eq!(
            reader.seek(before).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
    assert_eq!(
        reader.stream_position().unwrap(),
        3,
        "a refused seek moves nothing"
    );
}

#[cfg(feature = "async")]
mod asynchronous {
    use super::*;
    use forerun_io::reader::asynchronous::AsyncReader;
    use forerun_io::{FaultPlan, Reader};
    use futures::executor::{LocalPool, block_on};
    use futures::task::LocalSpawnExt;
    use futures::{AsyncReadExt, AsyncSeekExt};

    fn open(driver: &Driver, index: u64) -> AsyncReader {
        let reader: Reader = driver.open_generated(1, index, BYTES).unwrap();
        AsyncReader::new(reader)
    }

    #[test]
    fn one_thread_reads_a_hundred_files_side_by_side() {
        // As a whole twelve times the memory.
        let bytes = 123_456;
        let driver = driver();
        let mut pool = LocalPool::new();
        for index in 0..100 {
            let reader = driver.open_generated(1, index, bytes).unwrap();
            let mut reader = AsyncReader::new(reader);
            let read = async move {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).await.unwrap();
                assert_eq!(all.len() as u64, bytes);
                assert_eq!(generated::check(1, index, 0, &all), Ok(()));
            };
            pool.spawner().spawn_local(read).unwrap();
        }
        pool.run();
        driver.finish().unwrap().check().unwrap();
    }

    #[test]
    fn a_seek_while_a_read_is_pending_reads_the_new_place() {
        let driver = driver();
        let mut reader = open(&driver, 0);
        let mut piece = vec![0; 5_000];
        for place in [900_000, 10, 600_001, 600_000, BYTES - 5_000] {
            // Asked for once and dropped.
            let _ = futures::FutureExt::now_or_never(reader.read(&mut piece));
            block_on(reader.seek(SeekFrom::Start(place))).unwrap();
            block_on(reader.read_exact(&mut piece)).unwrap();
            assert_eq!(generated::check(1, 0, place, &piece), Ok(()));
        }
    }

    #[test]
    fn an_error_reaches_the_task_as_what_it_is() {
        let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
        let mut config = Config::new(settings);
        config.lab.fault = Some(FaultPlan {
            error_permille: 1000,
            error: libc::ENODEV,
            ..FaultPlan::default()
        });
        let driver = Driver::new(config).unwrap();
        let mut reader = open(&driver, 0);
        let error = block_on(reader.read(&mut [0; 100])).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
