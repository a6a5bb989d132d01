//! Archives: machine code that `gemm-build` compiled, as one array of bytes.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `GEMMARCH` |
//! | 4 | version of the format |
//! | 4 | number of entries |
//! | 8 | size of the archive |
//! | 32 | SHA-256 of the fields above and of the index |
//! | 104 for each entry | index: the [`Record`]s, in ascending order of their keys |
//! | rest | for each entry its name and its machine code |
//!
//! Numbers are little-endian. [`Archive::open`] checks the header and the index. The digest of an
//! entry is checked when the entry is taken, so opening does not read the machine code.

mod record;
mod write;

pub use write::{ArchiveEntry, write};

use crate::cache::Key;
use crate::error::{Error, Result};
use record::{RECORD, Record};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;

const MAGIC: &[u8; 8] = b"GEMMARCH";
/// Version of the format. Another version has another header or other records.
const VERSION: u32 = 1;
const DIGEST: usize = 32;
/// Size of the header without its digest.
const FIELDS: usize = MAGIC.len() + 2 * size_of::<u32>() + size_of::<u64>();
const HEADER: usize = FIELDS + DIGEST;

/// Remedy for an archive that cannot be read.
const REBUILD: &str = "Build it again with the `gemm-build` of the same release as gemm-runtime";

/// Machine code of kernels, compiled by the crate `gemm-build`. [`include_archive!`] embeds one.
///
/// [`Device::add_archive`] makes a device take kernels from it. Without NVRTC on the machine, a
/// device can launch the kernels of its archives and of its disk cache, and no others.
///
/// The bytes are borrowed. To read an archive from a file, leak its bytes:
/// `Archive::new("kernels", std::fs::read("kernels.gemm")?.leak())`.
///
/// ```
/// use gemm_runtime::{Archive, Device, Error};
///
/// const NONE: Archive = Archive::new("kernels", b"no archive");
/// let error = Device::simulator().add_archive(NONE).unwrap_err();
/// assert!(matches!(error, Error::Archive { archive, .. } if archive == "kernels"));
/// ```
///
/// [`include_archive!`]: crate::include_archive
/// [`Device::add_archive`]: crate::Device::add_archive
#[derive(Clone, Copy)]
pub struct Archive {
    name: &'static str,
    bytes: &'static [u8],
}

impl Archive {
    /// Names the bytes of an archive. The name appears in messages. The bytes are checked for
    /// damage by [`Device::add_archive`](crate::Device::add_archive). They contain machine code, so
    /// take them only from a source that you trust, as you would a library.
    pub const fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, bytes }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Checks the header and the index.
    ///
    /// # Errors
    /// [`Error::Archive`] for bytes that are no archive, that have another format, or that were
    /// damaged or cut off.
    pub(crate) fn open(self) -> Result<OpenArchive> {
        let count = index_len(self.bytes).map_err(|reason| self.unusable(reason))?;
        Ok(OpenArchive { archive: self, count })
    }

    fn unusable(self, reason: String) -> Error {
        Error::Archive { archive: self.name.to_owned(), reason: format!("{reason}. {REBUILD}") }
    }
}

/// Number of entries of an archive whose header and index are whole, or the reason why it is not.
fn index_len(bytes: &[u8]) -> Result<usize, String> {
    let header = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first_chunk::<16>);
    let Some((fields, _)) = header else {
        return Err(format!("its {} bytes do not begin with `GEMMARCH` and a header", bytes.len()));
    };
    let (version, fields) = record::number(fields);
    if version != VERSION {
        return Err(format!("its format is {version}, but this release reads format {VERSION}"));
    }
    let (count, fields) = record::number(fields);
    let (size, _) = record::size(fields);
    if size != bytes.len() as u64 {
        return Err(format!("it has {} bytes instead of {size}", bytes.len()));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let index = count.checked_mul(RECORD).and_then(|len| bytes.get(HEADER..)?.get(..len));
    let Some(index) = index else {
        return Err(format!("its index of {count} entries is cut off"));
    };
    let digest = Sha256::new().chain_update(&bytes[..FIELDS]).chain_update(index).finalize();
    if bytes[FIELDS..HEADER] != digest[..] {
        return Err("its index is damaged".to_owned());
    }
    Ok(count)
}

/// Archive whose header and index are whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenArchive {
    archive: Archive,
    /// Number of entries.
    count: usize,
}

/// Machine code of a kernel in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedCode {
    /// Name of the archive.
    pub(crate) archive: &'static str,
    /// Version of NVRTC that compiled it: major, minor, build.
    pub(crate) compiler: (u32, u32, u32),
    /// ELF image.
    pub(crate) cubin: &'static [u8],
}

/// Description of an entry, for lists of an archive's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// Kernel macro and spec.
    pub name: String,
    /// Architecture, such as `sm_90a`.
    pub arch: String,
    /// Version of NVRTC that compiled it: major, minor, build.
    pub compiler: (u32, u32, u32),
    /// Size of the machine code in bytes.
    pub size: u64,
}

impl OpenArchive {
    /// Machine code of a key, or `None` if the archive does not have it.
    ///
    /// # Errors
    /// [`Error::Archive`] if the entry is damaged.
    pub(crate) fn get(&self, key: Key) -> Result<Option<ArchivedCode>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            let record = self.record(middle);
            match record.key.cmp(key.bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.code(&record).map(Some),
            }
        }
        Ok(None)
    }

    fn code(&self, record: &Record) -> Result<ArchivedCode> {
        let damaged = || {
            let arch = record.arch();
            self.archive.unusable(format!("its machine code of a kernel for {arch} is damaged"))
        };
        let (name, cubin) = record.parts(self.archive.bytes).ok_or_else(damaged)?;
        if Sha256::new().chain_update(name).chain_update(cubin).finalize()[..] != record.digest {
            return Err(damaged());
        }
        Ok(ArchivedCode { archive: self.archive.name, compiler: record.compiler, cubin })
    }

    /// Record of an entry, whose number must be below `count`.
    fn record(&self, number: usize) -> Record {
        Record::read(&self.archive.bytes[HEADER + number * RECORD..])
    }

    fn entries(&self) -> Result<Vec<EntryInfo>> {
        let records = (0..self.count).map(|number| self.record(number));
        records
            .map(|record| {
                self.code(&record)?;
                let (name, _) = record.parts(self.archive.bytes).unwrap_or_default();
                Ok(EntryInfo {
                    name: String::from_utf8_lossy(name).into_owned(),
                    arch: record.arch(),
                    compiler: record.compiler,
                    size: record.code_len,
                })
            })
            .collect()
    }
}

/// Describes all entries of an archive, and checks their machine code.
///
/// # Errors
/// [`Error::Archive`] if the archive or one of its entries is damaged.
pub fn entries(archive: Archive) -> Result<Vec<EntryInfo>> {
    archive.open()?.entries()
}

/// Writes the name, the number of kernels and their architectures.
impl fmt::Display for OpenArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let archs: BTreeSet<String> =
            (0..self.count).map(|number| self.record(number).arch()).collect();
        let archs: Vec<String> = archs.into_iter().collect();
        let name = self.archive.name;
        match self.count {
            0 => write!(f, "`{name}` (empty)"),
            count => write!(f, "`{name}` (kernels: {count}, for {})", archs.join(", ")),
        }
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("name", &self.name)
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Archive, ArchiveEntry, DIGEST, FIELDS, HEADER, RECORD, VERSION, write};
    use crate::cache::Key;
    use crate::error::Error;

    fn key(nth: usize) -> Key {
        Key::new(&[&format!("source {nth}")])
    }

    fn code(nth: usize) -> Vec<u8> {
        (0..nth * 7).map(|byte| (byte * nth) as u8).collect()
    }

    fn entries(count: usize) -> Vec<ArchiveEntry> {
        let entry = |nth: usize| ArchiveEntry {
            key: key(nth),
            name: format!("kernel {nth}"),
            arch: if nth.is_multiple_of(2) { "sm_80" } else { "sm_100a" }.to_owned(),
            compiler: (13, nth as u32, 88),
            cubin: code(nth),
        };
        (0..count).map(entry).collect()
    }

    fn archive(bytes: Vec<u8>) -> Archive {
        Archive::new("kernels", bytes.leak())
    }

    #[test]
    fn every_entry_is_found_and_no_other() -> Result<(), Error> {
        for count in [0, 1, 2, 3, 10, 33] {
            let open = archive(write(entries(count))).open()?;
            for nth in 0..count {
                let found = open.get(key(nth))?.expect("an entry");
                assert_eq!((found.cubin, found.compiler), (&code(nth)[..], (13, nth as u32, 88)));
            }
            assert_eq!(open.get(key(count))?, None);
            let mut listed = open.entries()?;
            listed.sort_by_key(|entry| entry.compiler);
            assert_eq!(listed.len(), count);
            for (nth, entry) in listed.iter().enumerate() {
                assert_eq!((&*entry.name, entry.size), (&*format!("kernel {nth}"), nth as u64 * 7));
                assert_eq!(entry.arch, ["sm_80", "sm_100a"][nth % 2]);
            }
        }
        let open = archive(write(entries(3))).open()?;
        assert_eq!(open.to_string(), "`kernels` (kernels: 3, for sm_100a, sm_80)");
        assert_eq!(archive(write(entries(0))).open()?.to_string(), "`kernels` (empty)");
        Ok(())
    }

    #[test]
    fn entries_of_one_key_are_written_once() -> Result<(), Error> {
        let mut twice = entries(4);
        twice.extend(entries(4));
        assert_eq!(write(twice), write(entries(4)));
        let mut reversed = entries(9);
        reversed.reverse();
        assert_eq!(write(reversed), write(entries(9)));
        Ok(())
    }

    /// Damage gives an error that names the archive, or leaves the entry as it was.
    #[test]
    fn every_damaged_byte_is_noticed() {
        let whole = write(entries(4));
        let index_end = HEADER + 4 * RECORD;
        for at in 0..whole.len() {
            for bit in [0x01, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                let open = match archive(bytes).open() {
                    Err(Error::Archive { archive, reason }) => {
                        assert!(at < index_end, "byte {at}: {reason}");
                        assert!(archive == "kernels" && reason.contains("Build it again"));
                        continue;
                    }
                    other => other.expect("an error that names the archive"),
                };
                assert!(at >= index_end, "the damage of byte {at} was not noticed");
                let (mut errors, mut found) = (0, 0);
                for nth in 0..4 {
                    match open.get(key(nth)) {
                        Ok(Some(entry)) if entry.cubin == code(nth) => found += 1,
                        Err(Error::Archive { .. }) => errors += 1,
                        other => panic!("byte {at}: {other:?}"),
                    }
                }
                assert_eq!((errors, found), (1, 3), "byte {at}");
                assert!(open.entries().is_err());
            }
        }
    }

    #[test]
    fn every_length_but_the_right_one_is_noticed() {
        let whole = write(entries(3));
        for len in 0..whole.len() {
            assert!(archive(whole[..len].to_vec()).open().is_err(), "{len} bytes");
        }
        assert!(archive([&whole[..], b"!"].concat()).open().is_err());
    }

    /// A record that points outside the archive is an error also if its digests fit.
    #[test]
    fn records_outside_the_archive_are_errors() {
        use sha2::{Digest, Sha256};
        let whole = write(entries(1));
        for (at, value) in [(56, u64::MAX), (56, whole.len() as u64), (64, u64::MAX), (64, 1)] {
            let mut bytes = whole.clone();
            bytes[HEADER + at..HEADER + at + 8].copy_from_slice(&value.to_le_bytes());
            let index = &bytes[HEADER..HEADER + RECORD];
            let digest: [u8; DIGEST] =
                Sha256::new().chain_update(&bytes[..FIELDS]).chain_update(index).finalize().into();
            bytes[FIELDS..HEADER].copy_from_slice(&digest);
            let open = archive(bytes).open().expect("a whole index");
            assert!(matches!(open.get(key(0)), Err(Error::Archive { .. })), "{at}: {value}");
        }
    }

    #[test]
    fn another_format_is_named() {
        let mut bytes = write(entries(1));
        bytes[8..12].copy_from_slice(&(VERSION + 1).to_le_bytes());
        let error = archive(bytes).open().map(drop).expect_err("another format");
        let words = "`kernels` cannot be used: its format is 2, but this release reads format 1";
        assert!(error.to_string().contains(words), "{error}");
    }
}
