//! TODO-DOC.

