//! Slots of macro calls. The number of a slot is the index of the kernel's program on a device.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of a macro call in this process, assigned by its first use.
#[derive(Debug)]
pub struct KernelSlot(AtomicUsize);

/// Value that stands for a missing number.
const NONE: usize = usize::MAX;

impl Default for KernelSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelSlot {
    /// Slot without a number.
    pub const fn new() -> Self {
        Self(AtomicUsize::new(NONE))
    }

    fn number(&self) -> usize {
        match self.0.load(Ordering::Relaxed) {
            NONE => self.assign(),
            number => number,
        }
    }

    #[cold]
    fn assign(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // If another thread has assigned a number in the meantime, this number remains unused.
        match self.0.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => number,
            Err(other) => other,
        }
    }
}

/// Values by slot. Values never move, so reads need no lock.
#[derive(Debug)]
pub(crate) struct SlotTable<T>([OnceLock<Box<[OnceLock<T>]>>; ROWS]);

/// Length of the first row. Each row is twice as long as the one before it.
const FIRST: usize = 16;
/// Number of rows that suffices for all numbers.
const ROWS: usize = usize::BITS as usize - FIRST.ilog2() as usize;

impl<T> Default for SlotTable<T> {
    fn default() -> Self {
        Self([const { OnceLock::new() }; ROWS])
    }
}

impl<T> SlotTable<T> {
    /// Returns the value of a slot, or computes it. If two threads compute it, the first result is
    /// kept.
    pub(crate) fn get_or_try_init<E>(
        &self,
        slot: &KernelSlot,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let (row, place) = place(slot.number());
        let row = self.0[row].get_or_init(|| (0..FIRST << row).map(|_| OnceLock::new()).collect());
        let cell = &row[place];
        match cell.get() {
            Some(value) => Ok(value),
            None => {
                let made = make()?;
                Ok(cell.get_or_init(|| made))
            }
        }
    }
}

/// Row of a number, and its place there.
fn place(number: usize) -> (usize, usize) {
    let beyond = number / FIRST + 1;
    let row = beyond.ilog2() as usize;
    (row, number - FIRST * ((1 << row) - 1))
}

#[cfg(test)]
mod tests {
    use super::{FIRST, KernelSlot, SlotTable, place};
    use std::convert::Infallible;
    use std::thread;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for number in 0..10_000 {
            assert_eq!(place(number), expected, "{number}");
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_slot_has_one_value_in_each_table() {
        let slots: Vec<KernelSlot> = (0..100).map(|_| KernelSlot::new()).collect();
        let tables: [SlotTable<usize>; 2] = Default::default();
        let get = |table: &SlotTable<usize>, n: usize, value| {
            let got = table.get_or_try_init(&slots[n], || Ok::<_, Infallible>(value));
            *got.expect("infallible")
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..100 {
                        assert_eq!(get(&tables[0], n, n), n);
                    }
                });
            }
        });
        for n in 0..100 {
            assert_eq!(get(&tables[0], n, 1000), n);
            assert_eq!(get(&tables[1], n, n + 1), n + 1);
        }
    }

    #[test]
    fn a_failure_is_not_kept() {
        let (slot, table) = (KernelSlot::new(), SlotTable::default());
        assert_eq!(table.get_or_try_init(&slot, || Err::<u8, _>("no")), Err("no"));
        assert_eq!(table.get_or_try_init(&slot, || Ok::<_, &str>(7)), Ok(&7));
    }
}
