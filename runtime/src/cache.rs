//! Disk cache of compiled kernels, and of the answers of tunings.
//!
//! Each entry is a file named after its key, the SHA-256 of everything that determines the machine
//! code except the compiler. The file contains its key, the compiler's version, the payload, and a
//! digest. A reader therefore detects a damaged, truncated or misplaced file; the kernel is then
//! compiled again, and the file is replaced. A writer writes a temporary file and renames it. Even
//! with several writers, a reader finds either a whole entry or none.
//!
//! The compiler is not in the key because a hit must not load it. An entry of an older compiler is
//! replaced only if the process has loaded a newer compiler for another kernel.
//!
//! The directory is `GEMM_CACHE_DIR` if set (an empty value disables the cache), otherwise the
//! platform's cache directory. A cache that cannot be read or written only costs compile time: no
//! launch fails. Entries have the permissions that the umask allows, so that users may share a
//! directory.
//!
//! After each write, the least recently used entries are removed until the total size is at most
//! `GEMM_CACHE_MAXSIZE` bytes. A hit sets the time of an entry, at most once a day.

use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"GEMMBIN3";
const DIGEST: usize = 32;
/// Size of the compiler's version and of the payload's length.
const NUMBERS: usize = 3 * size_of::<u32>() + size_of::<u64>();
const HEADER: usize = MAGIC.len() + DIGEST + NUMBERS + DIGEST;
/// File name extension of entries.
const EXTENSION: &str = "cubin";
/// Maximum total size of all entries in bytes, unless `GEMM_CACHE_MAXSIZE` is set. It is the same
/// as that of CUDA's own cache.
const MAX_SIZE: u64 = 1 << 30;
/// Minimum age of an entry's time of use for a hit to update it.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Machine code or the answer of a tuning, and the version (major, minor, build) of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) compiler: (u32, u32, u32),
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

    pub(crate) fn bytes(&self) -> &[u8; DIGEST] {
        &self.0
    }

    fn file_name(self) -> String {
        let hex: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        format!("{hex}.{EXTENSION}")
    }
}

/// Directory of entries, or `None` if the cache is disabled.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    dir: Option<PathBuf>,
    /// Maximum total size of all entries in bytes.
    max_size: u64,
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
        let max_size = std::env::var("GEMM_CACHE_MAXSIZE").ok().and_then(|size| size.parse().ok());
        Self { dir, max_size: max_size.unwrap_or(MAX_SIZE) }
    }

    #[cfg(test)]
    pub(crate) fn in_dir(dir: Option<PathBuf>) -> Self {
        Self { dir, max_size: MAX_SIZE }
    }

    /// Returns the key's entry, if its compiler is at least `oldest`; otherwise builds and stores
    /// one.
    ///
    /// # Errors
    /// Returns the errors of `build`.
    pub(crate) fn get_or_build<E>(
        &self,
        key: Key,
        oldest: (u32, u32, u32),
        build: impl FnOnce() -> Result<Entry, E>,
    ) -> Result<Entry, E> {
        if let Some(entry) = self.get(key, oldest) {
            return Ok(entry);
        }
        let entry = build()?;
        self.put(key, &entry);
        Ok(entry)
    }

    /// Returns the key's entry, if its compiler is at least `oldest`.
    pub(crate) fn get(&self, key: Key, oldest: (u32, u32, u32)) -> Option<Entry> {
        let path = self.dir.as_ref()?.join(key.file_name());
        let entry = read(&path, key).filter(|entry| entry.compiler >= oldest)?;
        // The entry may belong to a user whose files this user may only read.
        _ = touch(&path, SystemTime::now());
        Some(entry)
    }

    /// Stores an entry. An unwritable cache is not an error: the next process builds again.
    pub(crate) fn put(&self, key: Key, entry: &Entry) {
        let Some(dir) = &self.dir else { return };
        let path = dir.join(key.file_name());
        _ = write(dir, &path, key, entry).and_then(|()| evict(dir, self.max_size, &path));
    }
}

/// Entry in a file, if the file is whole and belongs to the key.
fn read(path: &Path, key: Key) -> Option<Entry> {
    let mut bytes = fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (numbers, rest) = rest.split_first_chunk::<NUMBERS>()?;
    let (found, payload) = rest.split_first_chunk::<DIGEST>()?;
    let (major, minor) = numbers.split_first_chunk::<4>()?;
    let (minor, build) = minor.split_first_chunk::<4>()?;
    let (build, len) = build.split_first_chunk::<4>()?;
    let [major, minor, build] = [major, minor, build].map(|number| u32::from_le_bytes(*number));
    let compiler = (major, minor, build);
    let whole = len == (payload.len() as u64).to_le_bytes() && *found == digest(numbers, payload);
    whole.then(|| Entry { compiler, payload: bytes.split_off(HEADER) })
}

fn write(dir: &Path, path: &Path, key: Key, entry: &Entry) -> std::io::Result<()> {
    let Entry { compiler: (major, minor, build), payload } = entry;
    let mut numbers = [0; NUMBERS];
    numbers[..4].copy_from_slice(&major.to_le_bytes());
    numbers[4..8].copy_from_slice(&minor.to_le_bytes());
    numbers[8..12].copy_from_slice(&build.to_le_bytes());
    numbers[12..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    fs::create_dir_all(dir)?;
    let mut builder = tempfile::Builder::new();
    // Without these permissions, which the umask restricts, only the writer could read the file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(dir)?;
    file.write_all(MAGIC)?;
    file.write_all(&key.0)?;
    file.write_all(&numbers)?;
    file.write_all(&digest(&numbers, payload))?;
    file.write_all(payload)?;
    file.persist(path)?;
    Ok(())
}

/// Sets the time of use of an entry, unless it is recent.
fn touch(path: &Path, now: SystemTime) -> std::io::Result<()> {
    let used = fs::metadata(path)?.modified()?;
    if now.duration_since(used).is_ok_and(|age| age > STALE) {
        fs::File::options().write(true).open(path)?.set_modified(now)?;
    }
    Ok(())
}

/// Removes the least recently used entries until all entries have at most `max_size` bytes. The
/// entry `kept` stays. Other processes may remove entries at the same time.
fn evict(dir: &Path, max_size: u64, kept: &Path) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for file in fs::read_dir(dir)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION)
            && let Ok(metadata) = fs::metadata(&path)
        {
            entries.push((metadata.modified()?, metadata.len(), path));
        }
    }
    let mut size: u64 = entries.iter().map(|(_, size, _)| size).sum();
    entries.sort();
    for (_, own, path) in entries {
        if size <= max_size {
            break;
        }
        if path != kept && fs::remove_file(&path).is_ok() {
            size -= own;
        }
    }
    Ok(())
}

fn digest(numbers: &[u8; NUMBERS], payload: &[u8]) -> [u8; DIGEST] {
    Sha256::new().chain_update(numbers).chain_update(payload).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{Cache, Entry, HEADER, Key, MAX_SIZE, STALE, touch};
    use std::convert::Infallible;
    use std::fs;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    fn cache() -> (tempfile::TempDir, Cache, Key) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let cache = Cache { dir: Some(dir.path().join("deep/er")), max_size: MAX_SIZE };
        (dir, cache, Key::new(&["source", "options", "sm_90"]))
    }

    fn entry(cache: &Cache, key: Key) -> PathBuf {
        cache.dir.as_ref().expect("a directory").join(key.file_name())
    }

    /// Returns the payload, and true if it had to be built.
    fn get(cache: &Cache, key: Key, payload: &[u8]) -> (Vec<u8>, bool) {
        get_by(cache, key, payload, (0, 0, 0), (13, 0, 88))
    }

    /// As [`get`], of a compiler from `oldest` on, or built by this one.
    fn get_by(
        cache: &Cache,
        key: Key,
        payload: &[u8],
        oldest: (u32, u32, u32),
        compiler: (u32, u32, u32),
    ) -> (Vec<u8>, bool) {
        let mut built = false;
        let got = cache.get_or_build(key, oldest, || {
            built = true;
            Ok::<_, Infallible>(Entry { compiler, payload: payload.to_vec() })
        });
        (got.expect("infallible").payload, built)
    }

    #[test]
    fn an_older_compilers_entry_is_replaced() {
        let (_dir, cache, key) = cache();
        let get = |payload: &[u8], oldest, compiler| get_by(&cache, key, payload, oldest, compiler);
        assert_eq!(get(b"old", (12, 8, 90), (12, 8, 90)), (b"old".to_vec(), true));
        for oldest in [(0, 0, 0), (11, 9, 99), (12, 8, 61), (12, 8, 90)] {
            assert_eq!(get(b"no", oldest, (13, 0, 48)), (b"old".to_vec(), false));
        }
        // A newer build, minor and major release.
        for (newer, payload) in [((12, 8, 93), b"1"), ((12, 9, 41), b"2"), ((13, 0, 48), b"3")] {
            assert_eq!(get(payload, newer, newer), (payload.to_vec(), true));
            assert_eq!(get(b"no", newer, (13, 1, 0)), (payload.to_vec(), false));
        }
        assert_eq!(get(b"newest", (13, 0, 88), (13, 0, 88)), (b"newest".to_vec(), true));
        assert_eq!(get(b"no", (13, 0, 48), (13, 0, 48)), (b"newest".to_vec(), false));
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

    #[cfg(unix)]
    #[test]
    fn an_entry_has_the_permissions_that_the_umask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, cache, key) = cache();
        get(&cache, key, b"machine code");
        let plain = dir.path().join("plain");
        fs::write(&plain, b"").expect("writable");
        let mode = |path| fs::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode(entry(&cache, key)), mode(plain));
    }

    /// Three entries fit. The least recently used entry is removed.
    #[test]
    fn the_least_recently_used_entries_are_evicted() {
        let (_dir, mut cache, _) = cache();
        cache.max_size = 3 * (HEADER as u64 + 8);
        let keys = ["a", "b", "c", "d", "e"].map(|part| Key::new(&[part]));
        let now = SystemTime::now();
        let set_age = |key, days: u64| {
            let file = fs::File::options().write(true).open(entry(&cache, key)).expect("the entry");
            file.set_modified(now - Duration::from_secs(days * 86_400)).expect("its own file");
        };
        for (key, days) in keys[..3].iter().zip([30, 20, 10]) {
            assert!(get(&cache, *key, b"12345678").1);
            set_age(*key, days);
        }
        // A hit makes the oldest entry the newest one.
        assert!(!get(&cache, keys[0], b"").1);
        assert!(get(&cache, keys[3], b"12345678").1);
        let found = keys.map(|key| entry(&cache, key).exists());
        assert_eq!(found, [true, false, true, true, false]);
        // An entry that is larger than the cache stays until the next write.
        assert!(get(&cache, keys[4], &[0; 1000]).1);
        let found = keys.map(|key| entry(&cache, key).exists());
        assert_eq!(found, [false, false, false, false, true]);
    }

    #[test]
    fn a_recent_time_of_use_is_kept() {
        let (_dir, cache, key) = cache();
        get(&cache, key, b"x");
        let path = entry(&cache, key);
        let used = || fs::metadata(&path).and_then(|of| of.modified()).expect("the entry");
        let first = used();
        touch(&path, first + STALE).expect("the entry");
        assert_eq!(used(), first);
        let later = first + STALE + Duration::from_secs(1);
        touch(&path, later).expect("the entry");
        assert_eq!(used(), later);
    }

    #[test]
    fn an_unwritable_cache_is_no_error() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("file");
        fs::write(&file, b"in the way").expect("writable");
        let cache = Cache { dir: Some(file), max_size: MAX_SIZE };
        let key = Key::new(&["k"]);
        assert_eq!(get(&cache, key, b"x"), (b"x".to_vec(), true));
        assert_eq!(get(&cache, key, b"x"), (b"x".to_vec(), true));
    }

    #[test]
    fn a_cache_that_is_off_builds_every_time() {
        let cache = Cache { dir: None, max_size: MAX_SIZE };
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
        let failed = cache.get_or_build(key, (0, 0, 0), || Err::<Entry, _>("no"));
        assert_eq!(failed, Err("no"));
        assert!(get(&cache, key, b"x").1);
    }
}
