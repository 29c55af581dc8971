//! What the attribute refuses, each at its token with what to write instead.

#[test]
fn refused() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
