//! Ownership in a reduction: the elements of the array that each thread of a block loads.

use super::drawing::{self, TilePicture};
use super::{OwnedTile, SHOWN};
use crate::ownership::formula::Formula;
use crate::ownership::rectangles::areas;
use gemm_dsl::ir::{BufferLayout, Kernel};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of the picture for an array that is not a matrix with short rows.
const WIDTH: u64 = 64;
/// Longest row stride of a matrix whose rows are drawn as rows of the picture.
const LONGEST: u64 = 1024;
/// Maximum number of drawn rows.
const ROWS: usize = 64;

/// Elements that the recorded block reduces, row by row. Rows without such elements are omitted.
#[derive(Clone, Debug, Serialize)]
pub struct ReducedElements {
    pub array: String,
    /// True if the rows are those of the array, which is a matrix.
    pub is_matrix: bool,
    /// First element of each row, or the number of each row of a matrix.
    pub rows: Vec<u64>,
    /// First drawn column of the array.
    pub column: u64,
    /// Number of rows that are not drawn.
    pub others: usize,
    /// Number of elements that the block loads, and the number drawn.
    pub elements: [usize; 2],
    /// Number of elements that the first thread loads, and the number drawn.
    pub of_first: [usize; 2],
    /// Tile of the drawn elements with their owners.
    pub tile: OwnedTile,
}

impl ReducedElements {
    pub fn picture(&self) -> TilePicture {
        drawing::alone(&self.tile)
    }

    /// Describes the number of elements that the first thread reduces.
    pub fn of_thread_0(&self) -> String {
        match self.of_first {
            [all, drawn] if all == drawn => format!("reduces {all}"),
            [all, drawn] => format!("reduces {all}, {drawn} of them drawn"),
        }
    }

    /// Describes the number of elements that the block reduces, and the drawn part of them.
    pub fn counted(&self) -> String {
        match self.elements {
            [all, drawn] if all == drawn => self.places(),
            [all, _] => format!("{all} elements; drawn: {}", self.places()),
        }
    }

    pub fn places(&self) -> String {
        let ([_, drawn], [rows, columns]) = (self.elements, self.tile.extents);
        match drawn as u64 == rows * columns {
            true => self.extent(),
            false => format!("{drawn} elements among {}", self.extent()),
        }
    }

    /// Describes the extents and the position of the drawn part.
    fn extent(&self) -> String {
        let [rows, columns] = self.tile.extents;
        let first = self.rows.first().copied().unwrap_or(0);
        let follow = self
            .rows
            .windows(2)
            .all(|pair| pair[1] - pair[0] == if self.is_matrix { 1 } else { columns });
        let last = self.rows.last().copied().unwrap_or(0);
        match (self.is_matrix, follow) {
            (true, true) => {
                format!("{rows} × {columns} elements starting at ({first}, {})", self.column)
            }
            (true, false) => format!(
                "{rows} rows from {first} to {last}, {columns} columns starting at {}",
                self.column
            ),
            (false, true) => format!("{} elements starting at {first}", rows * columns),
            (false, false) => {
                format!(
                    "{rows} runs of {columns} elements, the first at {first}, the last at {last}"
                )
            }
        }
    }
}

/// Builds the picture of an array's elements from the threads that load each element.
pub(crate) fn elements(
    kernel: &Kernel,
    array: usize,
    scalars: &[Option<u64>],
    loaded: &BTreeMap<u64, BTreeSet<u32>>,
) -> Option<ReducedElements> {
    let declared = &kernel.buffers[array];
    let of_matrix = match &declared.layout {
        BufferLayout::Strided { strides } => match &strides[..] {
            [.., row, _] => kernel.eval(row, scalars).ok().and_then(|row| u64::try_from(row).ok()),
            _ => None,
        },
        _ => None,
    };
    let of_matrix = of_matrix.filter(|row| (2..=LONGEST).contains(row));
    let width = of_matrix.unwrap_or(WIDTH);
    let used: BTreeSet<u64> = loaded.keys().map(|at| at / width).collect();
    let drawn: Vec<u64> = used.iter().copied().take(ROWS).collect();
    let places: BTreeMap<(u64, u64), &BTreeSet<u32>> = loaded
        .iter()
        .filter_map(|(at, threads)| {
            let row = drawn.binary_search(&(at / width)).ok()?;
            Some(((row as u64, at % width), threads))
        })
        .collect();
    fn of_first(threads: &mut dyn Iterator<Item = &BTreeSet<u32>>) -> usize {
        threads.filter(|threads| threads.contains(&0)).count()
    }
    let columns = || places.keys().map(|(_, column)| *column);
    // Rows of an array that is not a matrix are drawn at full width.
    let (left, right) = match of_matrix {
        Some(_) => (columns().min()?, columns().max()?),
        None => (0, width - 1),
    };
    let first = |number: &dyn Fn(u32) -> u32| -> BTreeMap<(u64, u64), u32> {
        let of = |(place, threads): (&(u64, u64), &&BTreeSet<u32>)| {
            Some(((place.0, place.1 - left), number(*threads.first()?)))
        };
        places.iter().filter_map(of).collect()
    };
    let mut of_threads = first(&|thread| thread);
    of_threads.retain(|_, thread| *thread < SHOWN);
    let numbers = (0..drawn.len() as u64)
        .flat_map(|row| (left..=right).map(move |column| (row, column)))
        .map(|place| Some(i64::from(*places.get(&place)?.first()?)));
    let law = Formula::fit(numbers.collect(), (right - left + 1) as usize);
    let counts = || places.values().map(|threads| threads.len() as u64);
    let tile = OwnedTile {
        name: String::new(),
        origin: [0, 0],
        extents: [drawn.len() as u64, right - left + 1],
        moved: "loaded",
        owners: [counts().min()?, counts().max()?],
        reads: [0, 0],
        warps: areas(&first(&|thread| thread / 32)),
        threads: areas(&of_threads),
        read: Vec::new(),
        held: None,
        groups: Vec::new(),
        owner: Some(law),
        group: None,
        role: None,
    };
    Some(ReducedElements {
        array: declared.name.clone(),
        is_matrix: of_matrix.is_some(),
        others: used.len() - drawn.len(),
        elements: [loaded.len(), places.len()],
        of_first: [of_first(&mut loaded.values()), of_first(&mut places.values().copied())],
        rows: drawn
            .into_iter()
            .map(|row| if of_matrix.is_some() { row } else { row * width })
            .collect(),
        column: left,
        tile,
    })
}
