//! Shadow memory: of each word the last write and the reads since.

use std::collections::HashMap;

/// Words of a page: the reads of a page are given memory together, when the first happens.
pub(super) const PAGE: usize = 64;
const NO_READS: u32 = u32::MAX;

/// What is remembered of a word.
#[derive(Clone, Copy, Default)]
pub(super) struct Word {
    /// The agent of the last write.
    pub(super) agent: u32,
    /// Its epoch; 0 if nobody has written.
    pub(super) epoch: u32,
    /// The rows of agents that have read since, a bit for each.
    pub(super) readers: u64,
}

/// Reads of a word by agents of one row in one epoch.
#[derive(Clone, Copy, Default)]
pub(super) struct Reads {
    pub(super) epoch: u32,
    pub(super) lanes: u32,
}

/// The shadow of a growing array of words.
pub(super) struct Shadow {
    rows: usize,
    pub(super) words: Vec<Word>,
    /// For each page, where its reads are.
    read_pages: Vec<u32>,
    /// Of each word and row the newest reads.
    reads: Vec<Reads>,
    /// Reads by the same row in earlier epochs, by lanes that have not read since.
    older: HashMap<(u32, u32), Vec<Reads>>,
}

impl Shadow {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            rows,
            words: Vec::new(),
            read_pages: Vec::new(),
            reads: Vec::new(),
            older: HashMap::new(),
        }
    }

    /// Forgets everything, and has `pages` pages.
    pub(super) fn reset(&mut self, pages: usize) {
        self.words.clear();
        self.words.resize(pages * PAGE, Word::default());
        self.read_pages.clear();
        self.read_pages.resize(pages, NO_READS);
        self.reads.clear();
        self.older.clear();
    }

    /// Appends a page and gives its number.
    pub(super) fn grow(&mut self) -> u32 {
        self.words.resize(self.words.len() + PAGE, Word::default());
        self.read_pages.push(NO_READS);
        self.read_pages.len() as u32 - 1
    }

    fn reads_at(&mut self, word: usize, row: usize) -> &mut Reads {
        let page = &mut self.read_pages[word / PAGE];
        if *page == NO_READS {
            let size = self.rows * PAGE;
            *page = (self.reads.len() / size) as u32;
            self.reads.resize(self.reads.len() + size, Reads::default());
        }
        &mut self.reads[(*page as usize * self.rows + row) * PAGE + word % PAGE]
    }

    /// Records a read.
    #[inline]
    pub(super) fn read(&mut self, word: usize, row: usize, epoch: u32, lanes: u32) {
        let known = self.words[word].readers >> row & 1 == 1;
        self.words[word].readers |= 1 << row;
        let reads = self.reads_at(word, row);
        if !known {
            *reads = Reads { epoch, lanes };
        } else if reads.epoch == epoch {
            reads.lanes |= lanes;
        } else {
            let left = Reads {
                epoch: reads.epoch,
                lanes: reads.lanes & !lanes,
            };
            *reads = Reads { epoch, lanes };
            let key = (word as u32, row as u32);
            if let Some(older) = self.older.get_mut(&key) {
                // A later read by the same lane stands for its earlier ones.
                older.iter_mut().for_each(|r| r.lanes &= !lanes);
                older.retain(|r| r.lanes != 0);
            }
            if left.lanes != 0 {
                self.older.entry(key).or_default().push(left);
            }
        }
    }

    /// The reads of a word by a row since the last write.
    pub(super) fn reads_of(&mut self, word: usize, row: usize) -> (Reads, &[Reads]) {
        let newest = *self.reads_at(word, row);
        let older = self.older.get(&(word as u32, row as u32));
        (newest, older.map_or(&[], Vec::as_slice))
    }

    /// Records a write that is ordered after all accesses so far.
    #[inline]
    pub(super) fn write(&mut self, word: usize, agent: u32, epoch: u32) {
        let entry = &mut self.words[word];
        let mut rows = if self.older.is_empty() {
            0
        } else {
            entry.readers
        };
        *entry = Word {
            agent,
            epoch,
            readers: 0,
        };
        while rows != 0 {
            self.older.remove(&(word as u32, rows.trailing_zeros()));
            rows &= rows - 1;
        }
    }
}
