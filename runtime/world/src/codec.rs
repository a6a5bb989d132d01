//! Message encoding: a number is 8 little-endian bytes, and a byte string or text follows its
//! length.
//!
//! The input comes from another process, which may not even be a rank. No length is therefore
//! trusted: allocations never exceed the size of the input.

pub(crate) fn put_number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

/// Appends bytes after their length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Appends a list after its length.
pub(crate) fn put_list<T>(to: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_number(to, list.len() as u64);
    for item in list {
        put(to, item);
    }
}

/// Reads values in the order in which they were written. Each call returns `None` if the input has
/// no such value at this position.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// Reads a number as a `usize`.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// Reads bytes after their length.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads UTF-8 text after its length.
    pub(crate) fn text(&mut self) -> Option<String> {
        Some(std::str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    /// Reads a list after its length. An item takes at least one byte, so a length above the number
    /// of remaining bytes is rejected.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let length = self.count()?;
        if length > self.0.len() {
            return None;
        }
        (0..length).map(|_| item(self)).collect()
    }

    /// Returns `None` if bytes are left over.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
