//! Timelines and what orders them: the model of the race detector, as data.
//!
//! A thread acts on several timelines at once: its own statements are one, the asynchronous copies
//! that it has issued another. A thread's timeline is an *agent*: the accesses of one agent come in
//! order, those of two do not, unless synchronisation says so. What synchronisation says is
//! [`Model::rules`], a row for each operation; the detector reads the rows and knows no instruction.
//!
//! A timeline goes through a *proxy*, its way to memory. What a thread knows to be over, it knows in
//! the view of a proxy: an ordinary store that a thread is ordered after may still be on its way to
//! where another proxy looks, until a fence has brought the two views together.

/// One of a thread's timelines: an index into [`Model::timelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeline(pub(super) usize);

/// A row of the table of timelines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// Its way to memory, counted from 0.
    pub(super) proxy: usize,
    /// Whether an access belongs to a group, which is over when the thread has waited for it; else an
    /// access is over when the next one of the thread begins.
    pub(super) grouped: bool,
}

/// A synchronising operation: an index into [`Model::rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op(pub(super) usize);

/// A row of the table of operations: what a giver has done comes before what a taker does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The giver's timelines whose accesses come before, as far as they have got. What the giver knows
    /// to be over comes before in any case.
    pub(super) first: &'static [Timeline],
    /// The proxies through which the taker comes after them.
    pub(super) second: &'static [usize],
    /// Whether what is known in the view of one proxy becomes known in that of all in `second`.
    pub(super) across: bool,
}

/// Timelines and rules.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) timelines: &'static [Track],
    /// How many proxies there are.
    pub(super) proxies: usize,
    pub(super) rules: &'static [Rule],
}

/// What a thread does by its own statements.
pub(super) const ORDINARY: Timeline = Timeline(0);
/// The asynchronous copies (`cp.async`) that it has issued.
pub(super) const COPIES: Timeline = Timeline(1);

/// Some threads arrive, and those that wait go on when all have: the barriers of a warp and of the
/// block, and those with a name.
pub(super) const BARRIER: Op = Op(0);
/// A thread waits for its own groups of copies, but for the newest.
pub(super) const WAIT: Op = Op(1);
/// A thread leaves what it knows in a word: by an atomic that releases, or at a fence for the atomics
/// behind it.
pub(super) const RELEASE: Op = Op(2);
/// A thread takes over what others have left in a word: by an atomic that acquires, or at a fence
/// behind atomics.
pub(super) const ACQUIRE: Op = Op(3);

/// The model of today's statements. Both timelines go the generic way.
pub(super) static MODEL: Model = Model {
    timelines: &[Track { proxy: 0, grouped: false }, Track { proxy: 0, grouped: true }],
    proxies: 1,
    rules: &[
        // BARRIER: what each that arrives has done, before all that those who wait do next.
        Rule { first: &[ORDINARY], second: &[0], across: false },
        // WAIT: the thread's own copies, before what it does next.
        Rule { first: &[COPIES], second: &[0], across: false },
        // RELEASE: what the thread has done is left.
        Rule { first: &[ORDINARY], second: &[], across: false },
        // ACQUIRE: what was left comes before what the thread does next.
        Rule { first: &[], second: &[0], across: false },
    ],
};
