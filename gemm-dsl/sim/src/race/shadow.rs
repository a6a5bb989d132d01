//! Shadow memory: of each word the last write and the reads since.

use std::collections::HashMap;

/// Words of a page: the reads of a page are given memory together, when the first happens.
pub(crate) const PAGE: usize = 64;
const NO_READS: u32 = u32::MAX;

/// What is remembered of a word.
#[derive(Clone, Copy, Default)]
pub(crate) struct ShadowWord {
    /// The agent of the last write.
    pub(crate) agent: u32,
    /// Its epoch; 0 if nobody has written.
    pub(crate) epoch: u32,
    /// The rows of agents that have read since: bit `row % 64`, which stands for more than one row where
    /// a block has more agents than 2048. What was read before the last write may then be looked at
    /// again; that is harmless, as who comes after the write comes after it too.
    readers: u64,
}

/// The bit of a row among the readers of a word.
fn bit(row: usize) -> u64 {
    1 << (row % 64)
}

/// Reads of a word by agents of one row in one epoch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reads {
    pub(crate) epoch: u32,
    pub(crate) lanes: u32,
}

/// The shadow of a growing array of words.
pub(crate) struct Shadow {
    rows: usize,
    pub(crate) words: Vec<ShadowWord>,
    /// For each page, where its reads start.
    read_pages: Vec<u32>,
    /// Of each word and row the newest reads.
    reads: Vec<Reads>,
    /// Reads by the same row in other epochs, by lanes that have not read since: each lane is in one entry
    /// at most.
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

    /// Forgets everything, and has `pages` pages.
    pub(crate) fn reset(&mut self, pages: usize) {
        self.words.clear();
        self.words.resize(pages * PAGE, ShadowWord::default());
        self.read_pages.clear();
        self.read_pages.resize(pages, NO_READS);
        self.reads.clear();
        self.older.clear();
    }

    /// Appends a page and gives its number.
    fn grow(&mut self) -> u32 {
        self.words.resize(self.words.len() + PAGE, ShadowWord::default());
        self.read_pages.push(NO_READS);
        self.read_pages.len() as u32 - 1
    }

    /// Where the newest reads of a word by a row are. Those of the rest of its page follow.
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
        self.reads.resize(start + self.rows * PAGE, Reads::default());
        self.read_pages[page] = start as u32;
        start as u32
    }

    /// Records a read of `width` words of one page. `ordered` says whether it comes after a write;
    /// where it does not, nothing is recorded and the number of that word is returned.
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

    /// Records a read beside those of other epochs: of each lane the newest stands for all.
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

    /// The rows by which a word may have been read since the last write.
    pub(crate) fn readers(&self, word: usize) -> impl Iterator<Item = usize> + use<> {
        let (mut bits, rows) = (self.words[word].readers, self.rows);
        std::iter::from_fn(move || {
            let first = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (first < 64).then_some(first)
        })
        .flat_map(move |first| (first..rows).step_by(64))
    }

    /// The reads of a word by a row since the last write.
    pub(crate) fn reads_of(&mut self, word: usize, row: usize) -> (Reads, &[Reads]) {
        let at = self.reads_at(word, row);
        let newest = self.reads[at];
        if self.older.is_empty() {
            return (newest, &[]);
        }
        let older = self.older.get(&(word as u32, row as u32));
        (newest, older.map_or(&[], Vec::as_slice))
    }

    /// Records a write that is ordered after all accesses so far.
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

/// The shadow of global buffers: of what has been touched, by pages.
pub(crate) struct PagedShadow {
    shadow: Shadow,
    /// The page of the shadow, by buffer and page of the buffer.
    pages: HashMap<(usize, u32), u32>,
    last: Option<((usize, u32), u32)>,
}

impl PagedShadow {
    pub(crate) fn new(rows: usize) -> Self {
        Self { shadow: Shadow::new(rows), pages: HashMap::new(), last: None }
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        self.shadow.reset(0);
        self.pages.clear();
        self.last = None;
    }

    /// Where a word of a buffer lies in the shadow.
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
