//! Parts of windows: how many requests a window is, by the device it lies on.

use super::*;
use crate::profile::Profile;

/// Requests of the first read of a file, of so many blocks, in the order of their blocks.
fn parts(profile: Profile, blocks: u32) -> Vec<u32> {
    let mut rig = Rig::of(preset::default().settings(Bytes(256 << 20)).unwrap());
    let (device, file, reader) = (DeviceId(0), FileId(0), ReaderId(0));
    rig.input(Input::Device { device, profile });
    rig.input(Input::File {
        file,
        placement: Placement::linear(device, Bytes(0)),
        bytes: Bytes(1 << 30),
    });
    rig.input(Input::Open { reader, file });
    rig.input(Input::Read {
        read: ReadId(0),
        reader,
        access: Access::new(Block(0), blocks),
        wants: Wants::Blocks,
        fresh: true,
    });
    let mut sent: Vec<Extent> = rig.outstanding.iter().map(|fetch| fetch.extent).collect();
    sent.sort_unstable_by_key(|extent| extent.first);
    sent.iter().map(|extent| extent.count).collect()
}

/// At 80 MB/s a quarter of the competitive depth is 39 blocks of 4 KiB for a switch of 8 ms, and 146 for one of 30.
#[test]
fn a_window_is_two_requests_of_a_disk_and_one_for_each_server_of_a_store() {
    let disk = Profile::default().with_servers(1).unwrap();
    let store = |ms: u64, servers| {
        let profile = Profile::constant(Nanos(ms * 1_000_000), 80_000_000).unwrap();
        profile.with_servers(servers).unwrap().with_most(256)
    };
    assert_eq!(parts(disk, 128), [128, 128]);
    // Windows of two reads, or of four depths where these are little more. A part is at least 64 blocks, or the quarter
    // of a depth.
    for (ms, servers, blocks, parts_of, number) in [
        (8, 8, 256, 79, 8),
        (8, 16, 256, 64, 10),
        (8, 64, 256, 64, 10),
        (8, 8, 16, 16, 2),
        (30, 8, 256, 146, 4),
        (30, 64, 512, 146, 8),
    ] {
        let sent = parts(store(ms, servers), blocks);
        let case = std::format!("{ms} ms, {servers} servers, {blocks} blocks: {sent:?}");
        assert_eq!((sent[0], sent.len()), (parts_of, number), "{case}");
    }
}
