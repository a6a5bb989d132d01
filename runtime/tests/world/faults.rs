//! Worlds in which something goes wrong.
