use std::f64::consts::PI;

use proptest::prelude::*;

use super::*;

fn at(text: &str, x: f64, y: f64) -> f64 {
    Expr::parse(text, &["x", "y"]).unwrap_or_else(|e| panic!("{e}")).eval(&[x, y])
}

#[test]
fn values_against_the_formula() {
    let (x, y) = (0.7_f64, -1.3_f64);
    for (text, value) in [
        ("1 + 0.05*cos(2*pi*x/32)", 1.0 + 0.05 * (2.0 * PI * x / 32.0).cos()),
        ("exp(-x^2)", (-x * x).exp()),
        ("-x^2", -(x * x)),
        ("(-x)^2", x * x),
        ("2^3^2", 512.0),
        ("2**-x", 2.0_f64.powf(-x)),
        ("2^-x^2", 2.0_f64.powf(-(x * x))),
        ("x - y - 1", x - y - 1.0),
        ("x / y / 2 * 3", x / y / 2.0 * 3.0),
        ("- - x", x),
        ("+x", x),
        ("not x < y and 1", 1.0),
        ("x < 0 or y < 0", 1.0),
        ("x >= 0 and not (y >= 0)", 1.0),
        ("1 + 2 == 3", 1.0),
        ("x != x", 0.0),
        ("if(x > 0, log(x), 0)", x.ln()),
        ("if(y > 0, log(y), -1)", -1.0),
        ("min(x, y, -7, 3)", -7.0),
        ("max(x, y)", x),
        ("atan2(y, x)", y.atan2(x)),
        ("hypot(3, 4)", 5.0),
        ("mod(y, 1)", y.rem_euclid(1.0)),
        ("step(x) + step(y) + step(0)", 2.0),
        ("sign(y) + sign(0)", -1.0),
        ("clamp(y, -1, 1)", -1.0),
        ("gauss(x, 0.2, 0.5)", (-0.5_f64).exp()),
        ("ln(e^2)", 2.0),
        ("1.5e3 + .5 + 2. + 1E-1", 1502.6),
        ("round(2.5) + floor(-0.5) + ceil(0.2) + trunc(-1.9)", 2.0),
        ("min(x, 0/0)", f64::NAN),
        ("pow(x, 3)", x * x * x),
        ("-inf < y", 1.0),
        ("tau/pi", 2.0),
    ] {
        let found = at(text, x, y);
        // The formula on the right rounds in its own order.
        assert!(
            (found - value).abs() <= 4.0 * f64::EPSILON * value.abs() || (found.is_nan() && value.is_nan()),
            "{text}: {found}, {value}"
        );
    }
}

#[test]
fn errors_point_at_their_place() {
    for (text, span, message, hint) in [
        ("", 0..0, "empty", ""),
        ("  ", 2..2, "empty", ""),
        ("1 +", 3..3, "missing before the end", ""),
        ("1 + * 2", 4..5, "missing before `*`", ""),
        ("2 x", 2..3, "an operator is missing before `x`", "`*`"),
        ("2pi", 1..3, "an operator is missing before `pi`", "`*`"),
        ("2e", 1..2, "an operator is missing", "`*`"),
        ("(x", 0..1, "never closed", ""),
        ("sin(x", 3..4, "never closed", ""),
        ("x)", 1..2, "never opened", ""),
        ("(x, y)", 2..3, "comma", ""),
        ("x, y", 1..2, "unexpected `,`", ""),
        ("sni(x)", 0..3, "unknown function `sni`", "`sin`"),
        ("x + lz", 4..6, "unknown name `lz`", "`lx`"),
        ("foo", 0..3, "unknown name", "known are x, y, lx, pi"),
        ("sin", 0..3, "needs its arguments in brackets", "sin(..)"),
        ("x(1)", 0..1, "`x` is not a function", "`*`"),
        ("sin(x, y)", 0..9, "`sin` takes 1 argument, found 2", ""),
        ("if(x, y)", 0..8, "`if` takes 3 arguments, found 2", ""),
        ("1 + min(x)", 4..10, "`min` takes at least 2 arguments, found 1", ""),
        ("max()", 0..5, "found 0", ""),
        ("0 < x < 1", 6..7, "chained", "and"),
        ("x = 1", 2..3, "`=` is not part", "`==`"),
        ("x && y", 2..4, "`&&` is not part", "`and`"),
        ("2 \u{d7} x", 2..4, "not part", "`*`"),
        ("x % 2", 2..3, "not part", "mod"),
        ("2^not x", 2..5, "needs brackets", "(not"),
        ("1e999", 0..5, "too large", ""),
        (".", 0..1, "not a number", ""),
        ("1.2.3", 3..5, "an operator is missing", "`*`"),
        ("x and or y", 6..8, "missing before `or`", ""),
        ("x \u{1}", 2..3, "`\\u{1}` is not part", ""),
    ] {
        let error = Expr::parse_with(text, &["x", "y"], &[("lx", 1.0)]).expect_err(text);
        assert_eq!(error.span, span, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(error.hint.as_deref().unwrap_or("").contains(hint), "{text}: {error}");
        assert_eq!(hint.is_empty(), error.hint.is_none(), "{text}: {error}");
    }
}

#[test]
fn errors_show_the_line() {
    let error = Expr::parse("1 +\n\té + foo(2)", &["é"]).unwrap_err();
    assert_eq!(error.render(), " é + foo(2)\n     ^^^");
    let problem = error.problem("poisson.rhs").to_string();
    assert_eq!(problem, "`poisson.rhs`: unknown function `foo` in column 6 of the expression\n     é + foo(2)\n         ^^^");
}

#[test]
fn deep_nesting_is_refused_and_long_sums_are_not() {
    for (open, close) in [("(", ")"), ("sin(", ")"), ("-", ""), ("2^", ""), ("not ", ""), ("if(x,", ",1)")] {
        let nested = |n| format!("{}x{}", open.repeat(n), close.repeat(n));
        assert!(Expr::parse(&nested(45), &["x"]).is_ok(), "{open}");
        let error = Expr::parse(&nested(100_000), &["x"]).unwrap_err();
        assert!(error.message.contains("levels of nesting"), "{open}: {error}");
    }
    let long = format!("x{}", " + x*2".repeat(50_000));
    let sum = Expr::parse(&long, &["x"]).unwrap();
    assert_eq!(sum.eval(&[1.0]), 100_001.0);
    assert_eq!(Expr::parse(&sum.to_string(), &["x"]).unwrap(), sum);
}

#[test]
fn names_of_the_caller_come_first() {
    let f = Expr::parse_with("e + k + pi", &["e"], &[("k", 2.0), ("pi", 3.0)]).unwrap();
    assert_eq!(f.eval(&[1.0]), 6.0);
    assert!(f.uses(0));
    assert_eq!(Expr::parse_with("2*k + sin(0)", &["x"], &[("k", 2.0)]).unwrap().constant(), Some(4.0));
}

#[test]
fn rows_fall_back_on_nothing() {
    let f = Expr::parse("x*y + cos(y)", &["x", "y"]).unwrap();
    let x: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.37).collect();
    let mut out = vec![0.0; 1000];
    f.eval_many(&[Column::Values(&x), Column::Constant(1.5)], &mut out);
    for (x, value) in x.iter().zip(&out) {
        assert_eq!(value.to_bits(), f.eval(&[*x, 1.5]).to_bits());
    }
    f.eval_many(&[Column::Constant(1.0), Column::Constant(2.0)], &mut out);
    assert!(out.iter().all(|v| *v == f.eval(&[1.0, 2.0])));
    f.eval_many(&[Column::Values(&x), Column::Values(&x)], &mut []);
}

/// A tree that is written as text with every bracket and evaluated by itself.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(f64),
    Variable(usize),
    One(&'static str, Box<Tree>),
    Two(&'static str, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Self::Leaf(v) => format!("({v:?})"),
            Self::Variable(i) => ["x", "y"][*i].to_owned(),
            Self::One(name, a) => format!("({name}({}))", a.text()),
            Self::Two(name @ ("min" | "max" | "atan2"), a, b) => format!("{name}({}, {})", a.text(), b.text()),
            Self::Two(op, a, b) => format!("({} {op} {})", a.text(), b.text()),
            Self::If(a, b, c) => format!("if({}, {}, {})", a.text(), b.text(), c.text()),
        }
    }

    fn eval(&self, v: [f64; 2]) -> f64 {
        let truth = |b: bool| if b { 1.0 } else { 0.0 };
        match self {
            Self::Leaf(value) => *value,
            Self::Variable(i) => v[*i],
            Self::One(name, a) => {
                let a = a.eval(v);
                match *name {
                    "-" => -a,
                    "not" => truth(a == 0.0),
                    "sin" => a.sin(),
                    "exp" => a.exp(),
                    "sqrt" => a.sqrt(),
                    _ => a.abs(),
                }
            }
            Self::Two(name, a, b) => {
                let (a, b) = (a.eval(v), b.eval(v));
                match *name {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    "^" => match b {
                        2.0 => a * a,
                        3.0 => a * a * a,
                        _ => a.powf(b),
                    },
                    "<" => truth(a < b),
                    "==" => truth(a == b),
                    "and" => truth(a != 0.0 && b != 0.0),
                    "or" => truth(a != 0.0 || b != 0.0),
                    "atan2" => a.atan2(b),
                    _ if a.is_nan() || b.is_nan() => f64::NAN,
                    "min" => a.min(b),
                    _ => a.max(b),
                }
            }
            Self::If(a, b, c) => {
                if a.eval(v) == 0.0 {
                    c.eval(v)
                } else {
                    b.eval(v)
                }
            }
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-4..5_i32).prop_map(|v| Tree::Leaf(f64::from(v))),
        (-1e3..1e3).prop_map(Tree::Leaf),
        (0..2_usize).prop_map(Tree::Variable),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let one = proptest::sample::select(vec!["-", "not", "sin", "exp", "sqrt", "abs"]);
        let two = proptest::sample::select(vec!["+", "-", "*", "/", "^", "<", "==", "and", "or", "atan2", "min", "max"]);
        prop_oneof![
            (one, inner.clone()).prop_map(|(n, a)| Tree::One(n, Box::new(a))),
            (two, inner.clone(), inner.clone()).prop_map(|(n, a, b)| Tree::Two(n, Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| Tree::If(Box::new(a), Box::new(b), Box::new(c))),
        ]
    })
}

/// Equal, or both not a number, whose sign and payload nobody promises. Zeros of either sign are equal.
fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,60}") {
        if let Err(e) = Expr::parse(&text, &["x"]) {
            prop_assert!(e.text.get(e.span.clone()).is_some());
            prop_assert!(e.render().contains('^') && !e.to_string().is_empty());
        }
    }

    #[test]
    fn token_soup_never_panics(soup in proptest::collection::vec(proptest::sample::select(
        vec!["x", "1", "2.5e3", "(", ")", ",", "+", "-", "*", "/", "^", "**", "<", "==", "not", "and", "or", "if(", "min(", "sin(", "e", " "]), 0..24)) {
        match Expr::parse(&soup.concat(), &["x"]) {
            Ok(f) => {
                let again = Expr::parse(&f.to_string(), &["x"]).map_err(|e| TestCaseError::fail(e.to_string()))?;
                prop_assert!(same(f.eval(&[0.3]), again.eval(&[0.3])), "{f}");
            }
            Err(e) => prop_assert!(e.render().contains('^')),
        }
    }

    #[test]
    fn trees_have_the_value_of_their_formula(tree in trees(), x in -5.0..5.0, y in -5.0..5.0) {
        let text = tree.text();
        let f = Expr::parse(&text, &["x", "y"]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let value = tree.eval([x, y]);
        prop_assert!(same(f.eval(&[x, y]), value), "{text}");
        // Printed with the fewest brackets, it is the same program up to folded signs: the same values.
        let printed = f.to_string();
        let again = Expr::parse(&printed, &["x", "y"]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert!(same(again.eval(&[x, y]), value), "{text} printed as {printed}");
        let mut row = [0.0; 2];
        f.eval_many(&[Column::Values(&[0.0, x]), Column::Constant(y)], &mut row);
        prop_assert!(same(row[1], value), "{text}");
    }
}
