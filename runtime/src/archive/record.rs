//! Records of the index.

use super::DIGEST;

/// Size of a record in bytes.
pub(super) const RECORD: usize =
    DIGEST + ARCH + 4 * size_of::<u32>() + 2 * size_of::<u64>() + DIGEST;
/// Maximum length of the name of an architecture, such as `sm_100a`.
pub(super) const ARCH: usize = 8;

/// Record of an entry. The fields lie in the archive in this order.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) key: [u8; DIGEST],
    /// Name of the architecture, padded with zeros.
    pub(super) arch: [u8; ARCH],
    /// Version of NVRTC: major, minor, build.
    pub(super) compiler: (u32, u32, u32),
    /// Length of the entry's name in bytes.
    pub(super) name_len: u32,
    /// Place of the name in the archive. The machine code follows the name.
    pub(super) start: u64,
    /// Size of the machine code in bytes.
    pub(super) code_len: u64,
    /// SHA-256 of the name and the machine code.
    pub(super) digest: [u8; DIGEST],
}

impl Record {
    /// Reads the first record of `bytes`, which must have at least one.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (key, bytes) = array(bytes);
        let (arch, bytes) = array(bytes);
        let (major, bytes) = number(bytes);
        let (minor, bytes) = number(bytes);
        let (build, bytes) = number(bytes);
        let (name_len, bytes) = number(bytes);
        let (start, bytes) = size(bytes);
        let (code_len, bytes) = size(bytes);
        let (digest, _) = array(bytes);
        Self { key, arch, compiler: (major, minor, build), name_len, start, code_len, digest }
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let (major, minor, build) = self.compiler;
        to.extend(self.key);
        to.extend(self.arch);
        to.extend([major, minor, build, self.name_len].map(u32::to_le_bytes).as_flattened());
        to.extend([self.start, self.code_len].map(u64::to_le_bytes).as_flattened());
        to.extend(self.digest);
    }

    /// Name of the architecture.
    pub(super) fn arch(&self) -> String {
        String::from_utf8_lossy(&self.arch).trim_end_matches('\0').to_owned()
    }

    /// Name and machine code in the archive, or `None` if they are not within it.
    pub(super) fn parts<'a>(&self, archive: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let start = usize::try_from(self.start).ok()?;
        let code_len = usize::try_from(self.code_len).ok()?;
        let (name, rest) = archive.get(start..)?.split_at_checked(self.name_len as usize)?;
        Some((name, rest.get(..code_len)?))
    }
}

fn array<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    match bytes.split_first_chunk() {
        Some((first, rest)) => (*first, rest),
        None => unreachable!("the callers in archive.rs: they pass a whole header or record"),
    }
}

pub(super) fn number(bytes: &[u8]) -> (u32, &[u8]) {
    let (number, rest) = array(bytes);
    (u32::from_le_bytes(number), rest)
}

pub(super) fn size(bytes: &[u8]) -> (u64, &[u8]) {
    let (size, rest) = array(bytes);
    (u64::from_le_bytes(size), rest)
}
