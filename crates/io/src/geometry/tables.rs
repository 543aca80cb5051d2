//! Reading the kernel's structures: fields of bytes at fixed places.
//!
//! Used by the modules of [`geometry`](super) that read a buffer. A field outside of the buffer is
//! 0, because a short answer must not stop anything; each reader checks its counts.

fn bytes<const N: usize>(buffer: &[u8], at: usize) -> [u8; N] {
    let field = at.checked_add(N).and_then(|end| buffer.get(at..end));
    field
        .and_then(|field| field.try_into().ok())
        .unwrap_or([0; N])
}

/// A field in the machine's own order, as structures of calls are.
pub(super) fn word(buffer: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes(buffer, at))
}

pub(super) fn half(buffer: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes(buffer, at))
}

/// A field as btrfs stores it on disks.
pub(super) fn stored_word(buffer: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(buffer, at))
}

pub(super) fn stored_short(buffer: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(buffer, at))
}

/// A text up to its zero byte or the end of the field.
pub(super) fn text(buffer: &[u8], at: usize, length: usize) -> String {
    let field = buffer.get(at..).unwrap_or_default();
    let field = &field[..field.len().min(length)];
    let end = field.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&field[..end.unwrap_or(field.len())]).into_owned()
}
