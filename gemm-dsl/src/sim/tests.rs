//! Self-tests of the simulator.
