//! Writer of archives.

use super::record::{ARCH, RECORD, Record};
use super::{FIELDS, HEADER, MAGIC, VERSION};
use crate::cache::Key;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Machine code to write into an archive.
#[derive(Clone, Debug)]
pub struct ArchiveEntry {
    /// Key by which the runtime finds the code.
    pub(crate) key: Key,
    /// Kernel macro and spec, for lists.
    pub(crate) name: String,
    /// Architecture, such as `sm_90a`.
    pub(crate) arch: String,
    /// Version of NVRTC: major, minor, build.
    pub(crate) compiler: (u32, u32, u32),
    /// ELF image.
    pub(crate) cubin: Vec<u8>,
}

/// Bytes of an archive. Of several entries with one key, the first is written. The order of the
/// entries does not affect the bytes, except for these.
pub fn write(entries: impl IntoIterator<Item = ArchiveEntry>) -> Vec<u8> {
    let mut sorted = BTreeMap::new();
    for entry in entries {
        sorted.entry(*entry.key.bytes()).or_insert(entry);
    }
    let (mut index, mut contents) = (Vec::new(), Vec::new());
    let first = HEADER + sorted.len() * RECORD;
    for (key, ArchiveEntry { name, arch, compiler, cubin, .. }) in sorted.iter() {
        let mut padded = [0; ARCH];
        padded.iter_mut().zip(arch.bytes()).for_each(|(to, byte)| *to = byte);
        let digest = Sha256::new().chain_update(name).chain_update(cubin).finalize().into();
        let record = Record {
            key: *key,
            arch: padded,
            compiler: *compiler,
            // A spec has at most 64 KiB.
            name_len: name.len() as u32,
            start: (first + contents.len()) as u64,
            code_len: cubin.len() as u64,
            digest,
        };
        record.write(&mut index);
        contents.extend(name.bytes());
        contents.extend(cubin);
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((sorted.len() as u32).to_le_bytes());
    bytes.extend(((first + contents.len()) as u64).to_le_bytes());
    debug_assert_eq!(bytes.len(), FIELDS, "the fields of the header");
    let digest = Sha256::new().chain_update(&bytes).chain_update(&index).finalize();
    bytes.extend(digest);
    bytes.extend(index);
    bytes.extend(contents);
    bytes
}
