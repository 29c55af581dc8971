//! Expressions: any text gives a formula that can be evaluated, or an error whose span lies in the text.
#![no_main]

use zellige_engine::expr::Expr;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Expr::parse(text, &["x", "y"]) {
        Ok(expr) => {
            let value = expr.eval(&[0.25, -3.0]);
            if let Some(constant) = expr.constant() {
                assert!(constant == value || (constant.is_nan() && value.is_nan()));
            }
        }
        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{:?} is not in the text", error.span),
    }
});
