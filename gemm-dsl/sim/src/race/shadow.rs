//! Shadow memory: for each word, the last write and the reads since this write.

use std::collections::HashMap;

/// Number of words per page. The reads of a page are allocated together at the first read.
pub(crate) const PAGE: usize = 64;
const NO_READS: u32 = u32::MAX;

/// Shadow state of a word.
#[derive(Clone, Copy, Default)]
pub(crate) struct ShadowWord {
    /// Agent of the last write.
    pub(crate) agent: u32,
    /// Epoch of the last write; 0 if there is none.
    pub(crate) epoch: u32,
    /// Rows of agents that have read the word since the last write. If a block has more than 2048
    /// agents, several rows share the bit `row % 64`. Reads before the last write may then be
    /// checked again. This is harmless, because an access that is ordered after the write is also
    /// ordered after these reads.
    readers: u64,
}

/// Bit of a row in [`ShadowWord::readers`].
fn bit(row: usize) -> u64 {
    1 << (row % 64)
}

/// Reads of a word by lanes of one row in one epoch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reads {
    pub(crate) epoch: u32,
    pub(crate) lanes: u32,
}

/// Shadow of a growing array of words.
pub(crate) struct Shadow {
    rows: usize,
    pub(crate) words: Vec<ShadowWord>,
    /// Position of each page's reads.
    read_pages: Vec<u32>,
    /// Newest reads of each word and row.
    reads: Vec<Reads>,
    /// Reads of the same row in older epochs, by lanes that have not read since. Each lane is in at
    /// most one entry.
    older: HashMap<(u32, u32), Vec<Reads>>,
}

impl Shadow {
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            rows,
            words: Vec::new(),
            read_pages: Vec::new(),
            reads: Vec::new(),
            older: HashMap::new(),
        }
    }

    /// Resets the shadow to `pages` empty pages.
    pub(crate) fn reset(&mut self, pages: usize) {
        self.words.clear();
        self.words.resize(pages * PAGE, ShadowWord::default());
        self.read_pages.clear();
        self.read_pages.resize(pages, NO_READS);
        self.reads.clear();
        self.older.clear();
    }

    /// Appends a page and returns its number.
    fn grow(&mut self) -> u32 {
        self.words.resize(self.words.len() + PAGE, ShadowWord::default());
        self.read_pages.push(NO_READS);
        self.read_pages.len() as u32 - 1
    }

    /// Index of a row's newest reads of a word. The entries for other words of the page are
    /// adjacent.
    #[inline]
    fn reads_at(&mut self, word: usize, row: usize) -> usize {
        let start = match self.read_pages[word / PAGE] {
            NO_READS => self.add_reads(word / PAGE),
            start => start,
        };
        start as usize + row * PAGE + word % PAGE
    }

    #[cold]
    fn add_reads(&mut self, page: usize) -> u32 {
        let start = self.reads.len();
        if start == 0 {
            // All known pages are likely to be read.
            self.reads.reserve(self.rows * PAGE * self.read_pages.len());
        }
        self.reads.resize(start + self.rows * PAGE, Reads::default());
        self.read_pages[page] = start as u32;
        start as u32
    }

    /// Records a read of `width` words of one page, if `ordered` is true for the last write of each
    /// word. Otherwise records nothing, and returns the position of the first word for which
    /// `ordered` is false.
    #[inline]
    pub(crate) fn read(
        &mut self,
        word: usize,
        width: usize,
        row: usize,
        read: Reads,
        ordered: impl Fn(&ShadowWord) -> bool,
    ) -> Result<(), usize> {
        let at = self.reads_at(word, row);
        let entries = &mut self.words[word..word + width];
        if let Some(early) = entries.iter().position(|w| !ordered(w)) {
            return Err(early);
        }
        let newest = &mut self.reads[at..at + width];
        let older = !self.older.is_empty();
        let mut mixed = false;
        for (entry, newest) in entries.iter_mut().zip(newest) {
            let known = entry.readers & bit(row) != 0;
            entry.readers |= bit(row);
            if !known {
                *newest = read;
            } else if newest.epoch == read.epoch {
                mixed |= older && read.lanes & !newest.lanes != 0;
                newest.lanes |= read.lanes;
            } else {
                mixed = true;
            }
        }
        if mixed {
            (word..word + width).for_each(|word| self.supersede(word, row, read));
        }
        Ok(())
    }

    /// Records a read in a new epoch. The newest read of a lane replaces its older ones.
    fn supersede(&mut self, word: usize, row: usize, read: Reads) {
        let at = self.reads_at(word, row);
        let newest = &mut self.reads[at];
        let mut left = Reads::default();
        if newest.epoch != read.epoch {
            left = std::mem::replace(newest, read);
            left.lanes &= !read.lanes;
        }
        let key = (word as u32, row as u32);
        if let Some(older) = self.older.get_mut(&key) {
            let again = read.lanes | left.lanes;
            older.iter_mut().for_each(|r| r.lanes &= !again);
            older.retain(|r| r.lanes != 0);
            if older.is_empty() && left.lanes == 0 {
                self.older.remove(&key);
            }
        }
        if left.lanes != 0 {
            self.older.entry(key).or_default().push(left);
        }
    }

    /// Rows that may have read a word since the last write.
    pub(crate) fn readers(&self, word: usize) -> impl Iterator<Item = usize> + use<> {
        let (mut bits, rows) = (self.words[word].readers, self.rows);
        std::iter::from_fn(move || {
            let first = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (first < 64).then_some(first)
        })
        .flat_map(move |first| (first..rows).step_by(64))
    }

    /// Newest and older reads of a word by a row since the last write.
    pub(crate) fn reads_of(&mut self, word: usize, row: usize) -> (Reads, &[Reads]) {
        let at = self.reads_at(word, row);
        let newest = self.reads[at];
        if self.older.is_empty() {
            return (newest, &[]);
        }
        let older = self.older.get(&(word as u32, row as u32));
        (newest, older.map_or(&[], Vec::as_slice))
    }

    /// Records a write that is ordered after all earlier accesses.
    #[inline]
    pub(crate) fn write(&mut self, word: usize, agent: u32, epoch: u32) {
        if !self.older.is_empty() {
            for row in self.readers(word) {
                self.older.remove(&(word as u32, row as u32));
            }
        }
        self.words[word] = ShadowWord { agent, epoch, readers: 0 };
    }
}

/// Shadow of global buffers; only touched pages exist.
pub(crate) struct PagedShadow {
    shadow: Shadow,
    /// Page of the shadow for a buffer and a page of this buffer.
    pages: HashMap<(usize, u32), u32>,
    last: Option<((usize, u32), u32)>,
}

impl PagedShadow {
    pub(crate) fn new(rows: usize) -> Self {
        Self { shadow: Shadow::new(rows), pages: HashMap::new(), last: None }
    }

    pub(crate) fn reset(&mut self) {
        self.shadow.reset(0);
        self.pages.clear();
        self.last = None;
    }

    /// Location of a buffer's word in the shadow. Adds the page if it does not exist.
    pub(crate) fn word(&mut self, buffer: usize, word: u32) -> (&mut Shadow, usize) {
        let key = (buffer, word / PAGE as u32);
        let page = match self.last {
            Some((last, page)) if last == key => page,
            _ => *self.pages.entry(key).or_insert_with(|| self.shadow.grow()),
        };
        self.last = Some((key, page));
        (&mut self.shadow, page as usize * PAGE + word as usize % PAGE)
    }
}
