//! Builder with which `lower/` writes kernels. It adds declarations to tables, and statements to
//! the innermost open block.

mod asynchronous;
mod functions;
mod loops;
mod names;
mod sync;

pub use loops::For;

use super::{
    Access, Buffer, BufferId, BufferLayout, Const, ConstDecl, Elem, Expr, Extent, Geometry,
    IrError, Kernel, KernelFamily, Operand, Param, ParamKind, Requirement, Scalar, Section, Source,
    Space, Special, Stmt, Ty, Var, VarDecl, Variant, VerifiedKernel,
};

/// Builds one kernel. Mistakes in its use do not panic; [`KernelBuilder::finish`] reports them.
pub struct KernelBuilder {
    pub(super) kernel: Kernel,
    /// Open blocks, outermost first; statements are appended to the last block.
    open: Vec<Vec<Stmt>>,
    /// Number of variables declared before each function.
    pub(super) vars_before: Vec<usize>,
    /// Declarations whose names a user chose.
    of_user: Vec<names::Named>,
    /// First mistake that cannot be seen in the kernel itself.
    pub(super) fault: Option<String>,
}

impl KernelBuilder {
    /// Creates an empty kernel with a block of 32 threads and a grid of one block.
    pub fn new(name: impl Into<String>) -> Self {
        let geometry =
            Geometry { block: (32, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: None };
        let kernel = Kernel {
            name: name.into(),
            title: Vec::new(),
            family: KernelFamily::default(),
            variant: Variant::Only,
            params: Vec::new(),
            consts: Vec::new(),
            vars: Vec::new(),
            buffers: Vec::new(),
            mbarriers: Vec::new(),
            functions: Vec::new(),
            geometry,
            cluster: 1,
            cluster_name: None,
            is_optional: false,
            narrow_addresses: false,
            in_place: false,
            launch_bounds: None,
            requires: Vec::new(),
            body: Vec::new(),
        };
        let (open, vars_before, of_user) = (vec![Vec::new()], Vec::new(), Vec::new());
        Self { kernel, open, vars_before, of_user, fault: None }
    }

    /// Adds a line to the comment at the head of the CUDA source.
    pub fn title(&mut self, line: impl Into<String>) {
        self.kernel.title.push(line.into());
    }

    /// Sets the kernel's family.
    pub fn family(&mut self, family: KernelFamily) {
        self.kernel.family = family;
    }

    /// Sets the kernel's variant among the kernels that compute the same result.
    pub fn variant(&mut self, variant: Variant) {
        self.kernel.variant = variant;
    }

    pub fn geometry(&mut self, geometry: Geometry) {
        self.kernel.geometry = geometry;
    }

    /// Lets launches skip the kernel on GPUs that cannot run it. A later kernel of the launch must
    /// compute the same bits.
    pub fn optional(&mut self) {
        self.kernel.is_optional = true;
    }

    /// Groups `blocks` blocks that are neighbours along x into clusters. A launch is rejected if
    /// its grid along x is not a multiple of `blocks`, so write the grid as clusters times blocks.
    pub fn cluster(&mut self, blocks: u32) {
        self.kernel.cluster = blocks;
    }

    /// Like [`cluster`](Self::cluster), with a name for the number of blocks.
    pub fn named_cluster(&mut self, blocks: u32, name: impl Into<Expr>) {
        self.cluster(blocks);
        self.kernel.cluster_name = Some(name.into());
    }

    /// Passes the shared-memory addresses of asynchronous copies as 32-bit words.
    pub fn narrow_addresses(&mut self) {
        self.kernel.narrow_addresses = true;
    }

    /// Allows a launch to bind the same array to an input and an output.
    pub fn in_place(&mut self) {
        self.kernel.in_place = true;
    }

    /// Sets the number of threads for `__launch_bounds__`, as an expression over constants.
    pub fn launch_bounds(&mut self, threads: impl Into<Expr>) {
        self.kernel.launch_bounds = Some(threads.into());
    }

    pub fn require(&mut self, requirement: Requirement) {
        self.kernel.requires.push(requirement);
    }

    /// Declares that the final content of a global buffer may depend on the order in which blocks
    /// and threads run.
    pub fn unordered(&mut self, buffer: BufferId) {
        self.change_buffer(buffer, |buffer| buffer.unordered = true);
    }

    /// Declares that no thread accesses an element of a global buffer that another thread writes.
    pub fn exclusive(&mut self, buffer: BufferId) {
        self.change_buffer(buffer, |buffer| buffer.exclusive = true);
    }

    /// Marks an array as the transpose of its operand: a column-major matrix, whose columns are the
    /// rows of the array.
    pub fn transposed(&mut self, buffer: BufferId) {
        self.change_buffer(buffer, |buffer| buffer.transposed = true);
    }

    /// Declares a named constant, or returns the existing one with this name and value.
    pub fn constant(
        &mut self,
        name: &str,
        value: impl Into<Expr>,
        meaning: impl Into<String>,
    ) -> Const {
        let (name, value, meaning) = (name.to_owned(), value.into(), meaning.into());
        let ty = value.ty();
        let decl = ConstDecl { name, ty, value, meaning };
        let same = |d: &ConstDecl| d.name == decl.name && d.value == decl.value && d.ty == ty;
        if let Some(id) = self.kernel.consts.iter().position(same) {
            return Const { id, ty };
        }
        let id = self.kernel.consts.len();
        self.kernel.consts.push(decl);
        Const { id, ty }
    }

    pub fn extent(&mut self, name: &str, ty: Ty, extent: Extent) -> Scalar {
        self.scalar(name, ty, Source::Extent(extent))
    }

    pub fn scalar(&mut self, name: &str, ty: Ty, source: Source) -> Scalar {
        let param = self.kernel.params.len();
        let kind = ParamKind::Scalar { ty, source };
        self.kernel.params.push(Param { name: name.into(), kind });
        Scalar { param, ty }
    }

    /// Declares a parameter that points to a global buffer. The buffer's extents usually contain
    /// scalars that are declared later, so set the extents with [`KernelBuilder::shape`].
    pub fn global(&mut self, name: &str, elem: Elem, operand: Operand) -> BufferId {
        let buffer = self.buffer(name, elem, Space::Global, BufferLayout::linear(), Vec::new(), "");
        let kind = ParamKind::Buffer { buffer, operand };
        self.kernel.params.push(Param { name: name.into(), kind });
        buffer
    }

    /// Sets the logical extents and the strides of a global buffer. Exactly one stride must be 1.
    pub fn shape(
        &mut self,
        buffer: BufferId,
        dims: impl IntoIterator<Item = Expr>,
        strides: impl IntoIterator<Item = Expr>,
    ) {
        let dims = dims.into_iter().collect();
        let layout = BufferLayout::Strided { strides: strides.into_iter().collect() };
        self.change_buffer(buffer, |buffer| (buffer.dims, buffer.layout) = (dims, layout));
    }

    /// Turns a global buffer into a list of `count` arrays, whose parameter is an array of
    /// pointers. All arrays have the given extents and strides. Exactly one stride must be 1.
    pub fn list(
        &mut self,
        buffer: BufferId,
        count: Expr,
        dims: impl IntoIterator<Item = Expr>,
        strides: impl IntoIterator<Item = Expr>,
    ) {
        let dims = [count].into_iter().chain(dims).collect();
        let layout = BufferLayout::Listed { strides: strides.into_iter().collect() };
        self.change_buffer(buffer, |buffer| (buffer.dims, buffer.layout) = (dims, layout));
    }

    /// Changes a buffer of this kernel. Records a mistake if the handle is from another kernel.
    fn change_buffer(&mut self, buffer: BufferId, change: impl FnOnce(&mut Buffer)) {
        match self.kernel.buffers.get_mut(buffer.id) {
            Some(buffer) => change(buffer),
            None => self.mistake(|| format!("buffer {} of another kernel", buffer.id)),
        }
    }

    /// Records a mistake that cannot be seen in the kernel itself; [`KernelBuilder::finish`]
    /// reports it.
    pub(crate) fn mistake(&mut self, rule: impl FnOnce() -> String) {
        self.fault.get_or_insert_with(rule);
    }

    pub fn shared(
        &mut self,
        name: &str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        layout: BufferLayout,
        meaning: impl Into<String>,
    ) -> BufferId {
        self.buffer(name, elem, Space::Shared, layout, dims.into_iter().collect(), meaning)
    }

    /// Declares an uninitialised register array, visible to the end of the open block.
    pub fn registers(
        &mut self,
        name: &str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        meaning: impl Into<String>,
    ) -> BufferId {
        self.register_array(name, elem, dims, meaning, false)
    }

    /// Declares a zeroed register array, visible to the end of the open block.
    pub fn zeroed_registers(
        &mut self,
        name: &str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        meaning: impl Into<String>,
    ) -> BufferId {
        self.register_array(name, elem, dims, meaning, true)
    }

    /// Declares pointers into a global buffer, visible to the end of the open block. They form an
    /// array with the extents `dims`, or a single pointer if `dims` is empty.
    pub fn pointers(
        &mut self,
        name: &str,
        into: BufferId,
        dims: impl IntoIterator<Item = Expr>,
        meaning: impl Into<String>,
    ) -> BufferId {
        let layout = BufferLayout::Pointer { into };
        let dims = dims.into_iter().collect();
        let buffer = self.buffer(name, into.elem, Space::Global, layout, dims, meaning);
        self.push(Stmt::Registers { buffer, zeroed: false });
        buffer
    }

    /// Selects array `nth` of a list until the end of the open block. The result is a buffer
    /// without the list's first dimension.
    pub fn choose(&mut self, name: &str, list: BufferId, nth: impl Into<Expr>) -> BufferId {
        let of = self.kernel.buffers.get(list.id);
        let (dims, strides) = match of.map(|of| (&of.dims[..], &of.layout)) {
            Some(([_, dims @ ..], BufferLayout::Listed { strides })) => {
                (dims.to_vec(), strides.clone())
            }
            _ => {
                self.fault.get_or_insert_with(|| {
                    format!("{name} is chosen from a buffer that is not a list")
                });
                (Vec::new(), Vec::new())
            }
        };
        let layout = BufferLayout::OfList { list, strides };
        let buffer = self.buffer(name, list.elem, Space::Global, layout, dims, "");
        self.push(Stmt::Choose { buffer, nth: nth.into() });
        buffer
    }

    fn register_array(
        &mut self,
        name: &str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        meaning: impl Into<String>,
        zeroed: bool,
    ) -> BufferId {
        let dims: Vec<Expr> = dims.into_iter().collect();
        let layout = BufferLayout::row_major(dims.len());
        let buffer = self.buffer(name, elem, Space::Register, layout, dims, meaning);
        self.push(Stmt::Registers { buffer, zeroed });
        buffer
    }

    fn buffer(
        &mut self,
        name: &str,
        elem: Elem,
        space: Space,
        layout: BufferLayout,
        dims: Vec<Expr>,
        meaning: impl Into<String>,
    ) -> BufferId {
        let id = self.kernel.buffers.len();
        let (name, meaning) = (name.to_owned(), meaning.into());
        let (unordered, exclusive) = (false, false);
        let buffer = Buffer {
            name,
            elem,
            space,
            dims,
            layout,
            meaning,
            unordered,
            exclusive,
            transposed: false,
        };
        self.kernel.buffers.push(buffer);
        BufferId { id, elem }
    }

    pub(super) fn var(&mut self, name: &str, ty: Ty) -> Var {
        let id = self.kernel.vars.len();
        self.kernel.vars.push(VarDecl { name: name.into(), ty, is_unsigned: false });
        Var { id, ty }
    }

    pub fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.push(stmt);
        }
    }

    /// Collects the statements that `body` appends into a separate block.
    pub fn block(&mut self, body: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.open.push(Vec::new());
        body(self);
        self.open.pop().unwrap_or_default()
    }

    pub fn let_(&mut self, name: &str, value: impl Into<Expr>) -> Var {
        let value = value.into();
        let var = self.var(name, value.ty());
        self.push(Stmt::Let { var, value });
        var
    }

    /// Declares a variable for a coordinate, with the CUDA type `unsigned int`.
    pub fn unsigned(&mut self, name: &str, coordinate: Special) -> Var {
        let var = self.let_(name, coordinate);
        self.kernel.vars[var.id].is_unsigned = true;
        var
    }

    pub fn mut_(&mut self, name: &str, value: impl Into<Expr>) -> Var {
        let value = value.into();
        let var = self.var(name, value.ty());
        self.push(Stmt::Mut { var, value });
        var
    }

    pub fn assign(&mut self, var: Var, value: impl Into<Expr>) {
        self.push(Stmt::Assign { var, value: value.into() });
    }

    pub fn store(&mut self, target: Access, value: impl Into<Expr>) {
        self.push(Stmt::Store { target, value: value.into() });
    }

    /// Runs `then` if the condition holds.
    pub fn if_(&mut self, cond: Expr, then: impl FnOnce(&mut Self)) {
        let then = self.block(then);
        self.push(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// Runs `then` if the condition holds and `otherwise` if it does not.
    pub fn if_else(
        &mut self,
        cond: Expr,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.push(Stmt::If { cond, then, otherwise });
    }

    /// Appends statements that the source has as a call of the function `name`. `params` are the
    /// names and arguments of its parameters, which the body receives as variables.
    pub fn section<const N: usize>(
        &mut self,
        name: &str,
        meaning: &str,
        params: [(&str, Expr); N],
        body: impl FnOnce(&mut Self, [Var; N]),
    ) {
        let (name, meaning) = (name.to_owned(), meaning.to_owned());
        let statements = self.block(|b| {
            let params = params.map(|(name, value)| b.let_(name, value));
            body(b, params);
        });
        self.push(Stmt::Section(Section { name, meaning, params: N, body: statements }));
    }

    /// Appends a comment line to the CUDA source.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Stmt::Comment(text.into()));
    }

    /// Verifies the kernel.
    ///
    /// # Errors
    /// Returns the first violation of a rule of the IR. It is a mistake of the code that uses the
    /// builder, never of a spec.
    pub fn finish(mut self) -> Result<VerifiedKernel, IrError> {
        self.kernel.body = self.open.pop().unwrap_or_default();
        names::give_way(&mut self.kernel, &self.of_user);
        names::show_functions(&mut self.kernel);
        if let Some(rule) = self.fault {
            return Err(IrError { kernel: self.kernel.name, rule });
        }
        VerifiedKernel::new(self.kernel)
    }
}
