//! How numbers and texts lie in messages: numbers as 8 bytes, the lowest first; bytes and texts behind their length.
//!
//! What is read was written by another process, or by a stranger. No length is believed: nothing is allocated for more
//! than what is there.

/// Appends a number.
pub(crate) fn put_number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Appends a list behind its length.
pub(crate) fn put_list<T>(to: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_number(to, list.len() as u64);
    for item in list {
        put(to, item);
    }
}

/// Reads what was written, in the same order. Each call is `None` where that is not there.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// A number.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// A number that counts something.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A text behind its length.
    pub(crate) fn text(&mut self) -> Option<String> {
        Some(std::str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    /// A list behind its length. An item takes at least a byte, so that a list is no longer than what there is.
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

    /// Whether nothing is left, so that what was read is all that was written.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
