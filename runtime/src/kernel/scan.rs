//! Scans: construction and launches.

use super::Scan;
use super::map::apply;
use super::map::{MapInput, MapOutputs};
use super::operands::MN;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::report::LaunchReport;
use gemm_dsl::spec::{ScanOver, ScanSpec};
use gemm_dsl::target::element::Element;
use std::marker::PhantomData;

/// Element types of a scan, as [`Scan`] lists them.
pub struct Scans<T, R>(PhantomData<fn() -> (T, R)>);

impl<T: Element, R: Element> Scan<T, R> {
    /// Builds the kernel of a spec. It equals the kernel that the macro builds from the same spec.
    ///
    /// ```
    /// use gemm_runtime::{Device, Scan};
    ///
    /// let kernel = <Scan>::new("op: max, block: 128".parse()?)?;
    /// assert_eq!(kernel.run(&Device::simulator(), &[1.0, 7.0, 3.0])?, [1.0, 7.0, 7.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::Spec`] with all faults of the spec.
    /// * [`Error::KernelType`] if `T` and `R` are not the types of the spec's elements and results.
    ///   The error names the right kernel type.
    pub fn new(spec: ScanSpec) -> Result<Self> {
        let kernel = Self::checked(&spec)?;
        let needed = (spec.element.elem(), spec.result_elem());
        if needed == (T::ELEM, R::ELEM) {
            return Ok(kernel);
        }
        let type_of = |(element, result)| match element == result {
            true => format!("Scan<{element}>"),
            false => format!("Scan<{element}, {result}>"),
        };
        Err(Error::KernelType {
            line: spec.to_string(),
            operands: vec![format!("input: {}", needed.0), format!("output: {}", needed.1)],
            needed: type_of(needed),
            found: type_of((T::ELEM, R::ELEM)),
            by_name: "",
        })
    }

    /// Scans an array or each row of a matrix, on the device.
    ///
    /// `input` is a reference to a vector or a matrix, or [`InPlace`](crate::InPlace). `output` is
    /// a mutable reference to an array of the same shape. A vector counts as a matrix of one row.
    /// Under `over: all` a matrix must have one row. The arrays may have any strides. On a GPU the
    /// call returns before the work is complete; later work of the device is ordered after it.
    ///
    /// ```
    /// use gemm_runtime::{Device, InPlace, Scan, scan_kernel};
    ///
    /// const OFFSETS: Scan<u32> = scan_kernel!(type: u32, exclusive);
    /// const RUNNING: Scan = scan_kernel!(op: max, over: rows);
    ///
    /// let device = Device::simulator();
    /// let (counts, mut offsets) = (device.upload_of(&[3_u32, 1, 4])?, device.alloc_of::<u32>(3)?);
    /// OFFSETS.launch(&device, &counts, &mut offsets)?;
    /// assert_eq!(device.download(&offsets)?, [0, 3, 4]);
    ///
    /// let mut rows = device.upload_matrix(&[1.0, 3.0, 2.0, 5.0, 4.0, 6.0], 2, 3)?;
    /// RUNNING.launch(&device, InPlace::first(), &mut rows)?;
    /// assert_eq!(device.download(&rows)?, [1.0, 3.0, 3.0, 5.0, 5.0, 6.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongDevice`] if an array belongs to another device.
    /// * [`Error::Extents`] if input and output disagree in an extent.
    /// * [`Error::WrongOperand`] for a vector beside a matrix, or for a batch.
    /// * [`Error::List`] for a list of matrices.
    /// * [`Error::Overlap`] if the output shares memory with the input, unless both are the same
    ///   elements in the same layout.
    /// * [`Error::Unmet`] if arguments violate the kernel's contract, such as a matrix of several
    ///   rows under `over: all`.
    /// * The errors of compiling and loading the kernel and of allocating scratch memory, in the
    ///   first launch.
    /// * [`Error::Simulator`] in the simulator.
    pub fn launch<I, O>(&self, device: &Device, input: I, mut output: O) -> Result<LaunchReport>
    where
        I: MapInput<MN<T>>,
        O: MapOutputs<MN<R>>,
    {
        let program = self.prepare(device)?;
        apply(device, &program, &[input.pass()], &mut output.arrays())
    }

    /// Scans a host array, with an `over: all` kernel: uploads, launches and downloads.
    ///
    /// # Errors
    /// * The errors of [`Device::upload`], [`Scan::launch`] and [`Device::download`].
    /// * [`Error::WrongOperand`] for an `over: rows` kernel.
    pub fn run(&self, device: &Device, input: &[T]) -> Result<Vec<R>> {
        let spec: ScanSpec = self.spec_line().parse()?;
        if spec.over == ScanOver::Rows {
            return Err(Error::WrongOperand {
                operand: "input".to_owned(),
                needed: "a matrix, whose rows are scanned",
                found: format!("a vector of {} elements", input.len()),
                remedy: "Upload it and call `launch`, with matrices",
            });
        }
        let (input, mut output) = (device.upload_of(input)?, device.alloc_of::<R>(input.len())?);
        self.launch(device, &input, &mut output)?;
        device.download(&output)
    }
}
