//! Disk cache of compiled kernels.
//!
//! Each entry is a file named after its key, the SHA-256 of everything that determines the machine
//! code except the compiler. The file contains its key, the compiler's version, and a digest of
//! both and its payload. A reader therefore detects a damaged, truncated or misplaced file; the
//! kernel is then compiled again, and the file is replaced. A writer writes a temporary file and
//! renames it. Even with several writers, a reader finds either a whole entry or none.
//!
//! The compiler is not in the key because a hit must not load it. An entry of an older compiler is
//! replaced only if the process has loaded a newer one to compile another kernel.
//!
//! The directory is `GEMM_CACHE_DIR` if set (an empty value disables the cache), otherwise the
//! platform's cache directory. A cache that cannot be read or written only costs compile time: no
//! launch fails.

use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"GEMMBIN2";
const DIGEST: usize = 32;
/// Size of the compiler's version and of the payload's length.
const NUMBERS: usize = 2 * size_of::<u32>() + size_of::<u64>();
const HEADER: usize = MAGIC.len() + DIGEST + NUMBERS + DIGEST;

/// Machine code and the version (major, minor) of its compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) compiler: (u32, u32),
    pub(crate) payload: Vec<u8>,
}

/// SHA-256 that identifies an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u8; DIGEST]);

impl Key {
    /// Hash of all parts. Each part is hashed with its length, so that two different lists of parts
    /// never form the same bytes.
    pub(crate) fn new(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    fn file_name(self) -> String {
        let hex: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        format!("{hex}.cubin")
    }
}

/// Directory of entries, or `None` if the cache is disabled.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    dir: Option<PathBuf>,
}

impl Cache {
    /// Cache that the environment of this process configures.
    pub(crate) fn from_env() -> Self {
        let dir = match std::env::var_os("GEMM_CACHE_DIR") {
            Some(dir) if dir.is_empty() => None,
            Some(dir) => Some(PathBuf::from(dir)),
            None => directories::ProjectDirs::from("", "", "gemm-runtime")
                .map(|dirs| dirs.cache_dir().to_path_buf()),
        };
        Self { dir }
    }

    /// Returns the payload of the key's entry, if its compiler is at least `oldest`; otherwise
    /// builds and stores an entry.
    ///
    /// # Errors
    /// Returns the errors of `build`.
    pub(crate) fn get_or_build<E>(
        &self,
        key: Key,
        oldest: (u32, u32),
        build: impl FnOnce() -> Result<Entry, E>,
    ) -> Result<Vec<u8>, E> {
        let Some(dir) = &self.dir else {
            return build().map(|entry| entry.payload);
        };
        let path = dir.join(key.file_name());
        match read(&path, key) {
            Some(entry) if entry.compiler >= oldest => return Ok(entry.payload),
            _ => {}
        }
        let entry = build()?;
        // An unwritable cache is not an error: the next process compiles again.
        _ = write(dir, &path, key, &entry);
        Ok(entry.payload)
    }
}

/// Entry in a file, if the file is whole and belongs to the key.
fn read(path: &Path, key: Key) -> Option<Entry> {
    let mut bytes = fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (numbers, rest) = rest.split_first_chunk::<NUMBERS>()?;
    let (found, payload) = rest.split_first_chunk::<DIGEST>()?;
    let (major, minor) = numbers.split_first_chunk::<4>()?;
    let (minor, len) = minor.split_first_chunk::<4>()?;
    let compiler = (u32::from_le_bytes(*major), u32::from_le_bytes(*minor));
    let whole = len == (payload.len() as u64).to_le_bytes() && *found == digest(numbers, payload);
    whole.then(|| Entry { compiler, payload: bytes.split_off(HEADER) })
}

fn write(dir: &Path, path: &Path, key: Key, entry: &Entry) -> std::io::Result<()> {
    let Entry { compiler: (major, minor), payload } = entry;
    let mut numbers = [0; NUMBERS];
    numbers[..4].copy_from_slice(&major.to_le_bytes());
    numbers[4..8].copy_from_slice(&minor.to_le_bytes());
    numbers[8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(MAGIC)?;
    file.write_all(&key.0)?;
    file.write_all(&numbers)?;
    file.write_all(&digest(&numbers, payload))?;
    file.write_all(payload)?;
    file.persist(path)?;
    Ok(())
}

fn digest(numbers: &[u8; NUMBERS], payload: &[u8]) -> [u8; DIGEST] {
    Sha256::new().chain_update(numbers).chain_update(payload).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{Cache, Entry, HEADER, Key};
    use std::convert::Infallible;
    use std::fs;
    use std::path::PathBuf;

    fn cache() -> (tempfile::TempDir, Cache, Key) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let cache = Cache { dir: Some(dir.path().join("deep/er")) };
        (dir, cache, Key::new(&["source", "options", "sm_90"]))
    }

    fn entry(cache: &Cache, key: Key) -> PathBuf {
        cache.dir.as_ref().expect("a directory").join(key.file_name())
    }

    /// Returns the payload, and true if it had to be built.
    fn get(cache: &Cache, key: Key, payload: &[u8]) -> (Vec<u8>, bool) {
        get_by(cache, key, payload, (0, 0), (13, 0))
    }

    /// As [`get`], of a compiler from `oldest` on, or built by this one.
    fn get_by(
        cache: &Cache,
        key: Key,
        payload: &[u8],
        oldest: (u32, u32),
        compiler: (u32, u32),
    ) -> (Vec<u8>, bool) {
        let mut built = false;
        let got = cache.get_or_build(key, oldest, || {
            built = true;
            Ok::<_, Infallible>(Entry { compiler, payload: payload.to_vec() })
        });
        (got.expect("infallible"), built)
    }

    #[test]
    fn an_older_compilers_entry_is_replaced() {
        let (_dir, cache, key) = cache();
        let get = |payload: &[u8], oldest, compiler| get_by(&cache, key, payload, oldest, compiler);
        assert_eq!(get(b"old", (12, 8), (12, 8)), (b"old".to_vec(), true));
        for oldest in [(0, 0), (11, 9), (12, 8)] {
            assert_eq!(get(b"no", oldest, (13, 0)), (b"old".to_vec(), false));
        }
        assert_eq!(get(b"new", (12, 9), (12, 9)), (b"new".to_vec(), true));
        assert_eq!(get(b"no", (12, 9), (13, 0)), (b"new".to_vec(), false));
        assert_eq!(get(b"newest", (13, 0), (13, 0)), (b"newest".to_vec(), true));
        assert_eq!(get(b"no", (12, 8), (12, 8)), (b"newest".to_vec(), false));
    }

    #[test]
    fn keeps_what_was_built() {
        let (_dir, cache, key) = cache();
        assert_eq!(get(&cache, key, b"cubin"), (b"cubin".to_vec(), true));
        assert_eq!(get(&cache, key, b"other"), (b"cubin".to_vec(), false));
    }

    #[test]
    fn keeps_an_empty_payload() {
        let (_dir, cache, key) = cache();
        assert_eq!(get(&cache, key, b""), (Vec::new(), true));
        assert_eq!(get(&cache, key, b"x"), (Vec::new(), false));
    }

    #[test]
    fn every_damaged_byte_is_noticed_and_the_entry_replaced() {
        let (_dir, cache, key) = cache();
        get(&cache, key, b"machine code");
        let path = entry(&cache, key);
        let whole = fs::read(&path).expect("the entry");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, damaged).expect("writable");
            let (got, built) = get(&cache, key, b"machine code");
            assert!(built, "the damage of byte {at} was not detected");
            assert_eq!(got, b"machine code");
            assert_eq!(fs::read(&path).expect("the entry"), whole, "not replaced");
        }
    }

    #[test]
    fn every_truncation_is_noticed() {
        let (_dir, cache, key) = cache();
        get(&cache, key, b"machine code");
        let path = entry(&cache, key);
        let whole = fs::read(&path).expect("the entry");
        assert_eq!(whole.len(), HEADER + b"machine code".len());
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).expect("writable");
            assert!(get(&cache, key, b"machine code").1, "{len} bytes accepted");
        }
        let longer = [&whole[..], b"!"].concat();
        fs::write(&path, longer).expect("writable");
        assert!(get(&cache, key, b"machine code").1);
    }

    #[test]
    fn an_entry_of_another_key_is_not_trusted() {
        let (_dir, cache, key) = cache();
        let other = Key::new(&["another source"]);
        get(&cache, key, b"one");
        fs::copy(entry(&cache, key), entry(&cache, other)).expect("copied");
        assert_eq!(get(&cache, other, b"two"), (b"two".to_vec(), true));
    }

    #[test]
    fn a_key_depends_on_where_its_parts_end() {
        assert_ne!(Key::new(&["ab", "c"]), Key::new(&["a", "bc"]));
        assert_ne!(Key::new(&["abc"]), Key::new(&["abc", ""]));
    }

    #[test]
    fn an_unwritable_cache_is_no_error() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("file");
        fs::write(&file, b"in the way").expect("writable");
        let cache = Cache { dir: Some(file) };
        let key = Key::new(&["k"]);
        assert_eq!(get(&cache, key, b"x"), (b"x".to_vec(), true));
        assert_eq!(get(&cache, key, b"x"), (b"x".to_vec(), true));
    }

    #[test]
    fn a_cache_that_is_off_builds_every_time() {
        let cache = Cache { dir: None };
        let key = Key::new(&["k"]);
        assert!(get(&cache, key, b"x").1);
        assert!(get(&cache, key, b"x").1);
    }

    #[test]
    fn writers_at_the_same_time_leave_one_whole_entry_and_nothing_else() {
        let (_dir, cache, key) = cache();
        let payload = vec![7_u8; 1 << 20];
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(get(&cache, key, &payload).0, payload));
            }
        });
        assert!(!get(&cache, key, b"").1);
        let dir = cache.dir.as_ref().expect("a directory");
        assert_eq!(fs::read_dir(dir).expect("readable").count(), 1);
    }

    #[test]
    fn a_failed_build_leaves_nothing() {
        let (_dir, cache, key) = cache();
        let failed = cache.get_or_build(key, (0, 0), || Err::<Entry, _>("no"));
        assert_eq!(failed, Err("no"));
        assert!(get(&cache, key, b"x").1);
    }
}
