//! The builder through which `lower/` writes kernels: declarations go into tables, statements into
//! the innermost open block.

mod asynchronous;
mod functions;
mod loops;
mod names;
mod sync;

pub use loops::For;

use super::{
    Access, Buffer, BufferId, BufferLayout, Const, ConstDecl, Elem, Expr, Extent, Geometry,
    IrError, Kernel, Operand, Param, ParamKind, Requirement, Scalar, Source, Space, Stmt, Ty, Var,
    VarDecl, Variant, VerifiedKernel,
};

/// Builds one kernel. Mistakes are found by [`KernelBuilder::finish`], not by panics.
pub struct KernelBuilder {
    pub(super) kernel: Kernel,
    /// The open blocks, outermost first; statements go to the last.
    open: Vec<Vec<Stmt>>,
    /// For each function how many variables were declared before it.
    pub(super) vars_before: Vec<usize>,
    /// The parameters that a user has named.
    of_user: Vec<usize>,
    /// The first mistake that the kernel does not show.
    pub(super) fault: Option<String>,
}

impl KernelBuilder {
    /// An empty kernel with a block of 32 threads and a grid of one block.
    pub fn new(name: impl Into<String>) -> Self {
        let geometry =
            Geometry { block: (32, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: 1 };
        let kernel = Kernel {
            name: name.into(),
            title: Vec::new(),
            variant: Variant::Only,
            params: Vec::new(),
            consts: Vec::new(),
            vars: Vec::new(),
            buffers: Vec::new(),
            mbarriers: Vec::new(),
            functions: Vec::new(),
            geometry,
            cluster: 1,
            launch_bounds: None,
            requires: Vec::new(),
            body: Vec::new(),
        };
        let (open, vars_before, of_user) = (vec![Vec::new()], Vec::new(), Vec::new());
        Self { kernel, open, vars_before, of_user, fault: None }
    }

    /// Adds a line to the head comment of the text.
    pub fn title(&mut self, line: impl Into<String>) {
        self.kernel.title.push(line.into());
    }

    /// Tells the kernel from others that compute the same.
    pub fn variant(&mut self, variant: Variant) {
        self.kernel.variant = variant;
    }

    /// Sets block, grid and occupancy.
    pub fn geometry(&mut self, geometry: Geometry) {
        self.kernel.geometry = geometry;
    }

    /// Makes clusters of so many blocks, neighbours along x. A launch whose grid along x is no multiple is refused: the grid
    /// is best written as a multiple, the clusters times their blocks.
    pub fn cluster(&mut self, blocks: u32) {
        self.kernel.cluster = blocks;
    }

    /// Names the number of threads by an expression over constants.
    pub fn launch_bounds(&mut self, threads: impl Into<Expr>) {
        self.kernel.launch_bounds = Some(threads.into());
    }

    /// Adds a requirement on the launch.
    pub fn require(&mut self, requirement: Requirement) {
        self.kernel.requires.push(requirement);
    }

    /// Declares that what a global buffer holds at the end may depend on the order in which blocks and
    /// threads run.
    pub fn unordered(&mut self, buffer: BufferId) {
        self.change_buffer(buffer, |buffer| buffer.unordered = true);
    }

    /// Declares that no thread accesses an element of a global buffer that another one writes.
    pub fn exclusive(&mut self, buffer: BufferId) {
        self.change_buffer(buffer, |buffer| buffer.exclusive = true);
    }

    /// Declares a named constant, or finds the one of this name and value.
    pub fn constant(
        &mut self,
        name: &str,
        value: impl Into<Expr>,
        meaning: impl Into<String>,
    ) -> Const {
        let (name, value, meaning) = (name.to_owned(), value.into(), meaning.into());
        let ty = value.ty();
        let decl = ConstDecl { name, ty, value, meaning };
        // Two builders may name the same constant.
        let same = |d: &ConstDecl| d.name == decl.name && d.value == decl.value && d.ty == ty;
        if let Some(id) = self.kernel.consts.iter().position(same) {
            return Const { id, ty };
        }
        let id = self.kernel.consts.len();
        self.kernel.consts.push(decl);
        Const { id, ty }
    }

    /// Declares a parameter that is a problem extent.
    pub fn extent(&mut self, name: &str, ty: Ty, extent: Extent) -> Scalar {
        self.scalar(name, ty, Source::Extent(extent))
    }

    /// Declares a scalar parameter.
    pub fn scalar(&mut self, name: &str, ty: Ty, source: Source) -> Scalar {
        let param = self.kernel.params.len();
        let kind = ParamKind::Scalar { ty, source };
        self.kernel.params.push(Param { name: name.into(), kind });
        Scalar { param, ty }
    }

    /// Declares a parameter that points to a global buffer. Its extents usually name scalars that
    /// are declared after it: set them with [`KernelBuilder::shape`].
    pub fn global(&mut self, name: &str, elem: Elem, operand: Operand) -> BufferId {
        let buffer = self.buffer(name, elem, Space::Global, BufferLayout::linear(), Vec::new(), "");
        let kind = ParamKind::Buffer { buffer, operand };
        self.kernel.params.push(Param { name: name.into(), kind });
        buffer
    }

    /// Sets the logical extents of a global buffer and its strides, of which exactly one is 1.
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

    /// Makes of a global buffer a list of so many arrays: its parameter is an array of pointers to them. Each
    /// has these extents and strides, of which exactly one is 1.
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

    /// Changes a buffer of this kernel; one of another is a mistake.
    fn change_buffer(&mut self, buffer: BufferId, change: impl FnOnce(&mut Buffer)) {
        match self.kernel.buffers.get_mut(buffer.id) {
            Some(buffer) => change(buffer),
            None => self.mistake(|| format!("buffer {} of another kernel", buffer.id)),
        }
    }

    /// Remembers a mistake that the kernel does not show, for [`KernelBuilder::finish`] to tell.
    pub(crate) fn mistake(&mut self, rule: impl FnOnce() -> String) {
        self.fault.get_or_insert_with(rule);
    }

    /// Declares a shared array.
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

    /// Declares an uninitialised register array, here and to the end of the open block.
    pub fn registers(
        &mut self,
        name: &str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        meaning: impl Into<String>,
    ) -> BufferId {
        self.register_array(name, elem, dims, meaning, false)
    }

    /// Declares a register array of zeros, here and to the end of the open block.
    pub fn zeroed_registers(
        &mut self,
        name: &str,
        elem: Elem,
        dims: impl IntoIterator<Item = Expr>,
        meaning: impl Into<String>,
    ) -> BufferId {
        self.register_array(name, elem, dims, meaning, true)
    }

    /// Declares pointers into a global buffer, here and to the end of the open block: an array of
    /// them with extents `dims`, or one.
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

    /// Chooses array `nth` of a list, here and to the end of the open block: a buffer of its own, without the
    /// list's first dimension.
    pub fn choose(&mut self, name: &str, list: BufferId, nth: impl Into<Expr>) -> BufferId {
        let of = self.kernel.buffers.get(list.id);
        let (dims, strides) = match of.map(|of| (&of.dims[..], &of.layout)) {
            Some(([_, dims @ ..], BufferLayout::Listed { strides })) => {
                (dims.to_vec(), strides.clone())
            }
            _ => {
                self.fault.get_or_insert_with(|| format!("{name} is an array of no list"));
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

    /// Declares a buffer of which nothing else is known yet.
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
        let buffer = Buffer { name, elem, space, dims, layout, meaning, unordered, exclusive };
        self.kernel.buffers.push(buffer);
        BufferId { id, elem }
    }

    pub(super) fn var(&mut self, name: &str, ty: Ty) -> Var {
        let id = self.kernel.vars.len();
        self.kernel.vars.push(VarDecl { name: name.into(), ty });
        Var { id, ty }
    }

    /// Appends a statement to the open block.
    pub fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.push(stmt);
        }
    }

    /// Collects the statements that `body` writes into a block of their own.
    pub fn block(&mut self, body: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.open.push(Vec::new());
        body(self);
        self.open.pop().unwrap_or_default()
    }

    /// Declares an immutable variable.
    pub fn let_(&mut self, name: &str, value: impl Into<Expr>) -> Var {
        let value = value.into();
        let var = self.var(name, value.ty());
        self.push(Stmt::Let { var, value });
        var
    }

    /// Declares a mutable variable.
    pub fn mut_(&mut self, name: &str, value: impl Into<Expr>) -> Var {
        let value = value.into();
        let var = self.var(name, value.ty());
        self.push(Stmt::Mut { var, value });
        var
    }

    /// Gives a mutable variable a new value.
    pub fn assign(&mut self, var: Var, value: impl Into<Expr>) {
        self.push(Stmt::Assign { var, value: value.into() });
    }

    /// Writes memory.
    pub fn store(&mut self, target: Access, value: impl Into<Expr>) {
        self.push(Stmt::Store { target, value: value.into() });
    }

    /// Runs `then` where the condition holds.
    pub fn if_(&mut self, cond: Expr, then: impl FnOnce(&mut Self)) {
        let then = self.block(then);
        self.push(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// Runs `then` where the condition holds and `otherwise` elsewhere.
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

    /// A line of commentary.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Stmt::Comment(text.into()));
    }

    /// Checks the kernel.
    ///
    /// # Errors
    /// The first violation of the IR's rules: a mistake of whoever has written the kernel, here or in the
    /// lowering, never of a spec.
    pub fn finish(mut self) -> Result<VerifiedKernel, IrError> {
        self.kernel.body = self.open.pop().unwrap_or_default();
        names::show_functions(&mut self.kernel);
        names::give_way(&mut self.kernel, &self.of_user);
        if let Some(rule) = self.fault {
            return Err(IrError { kernel: self.kernel.name, rule });
        }
        VerifiedKernel::new(self.kernel)
    }
}
