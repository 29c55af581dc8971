//! See the tests of the waves.
