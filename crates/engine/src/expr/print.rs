//! A program back to text that parses to the same values.

use std::fmt;

use super::Expr;
use super::ops::{One, Op, Two};

/// Binding strength of a printed piece, as in the parser: a piece weaker than its surroundings gets brackets.
const COMPARISON: u8 = 6;
const SIGN: u8 = 12;
const POWER: u8 = 14;
const ATOM: u8 = 20;

/// Strength of an operator's result, and what its left and right operands must have; `None` for functions.
fn strength(op: Two) -> Option<(u8, u8, u8)> {
    Some(match op {
        Two::Or => (1, 1, 2),
        Two::And => (3, 3, 4),
        Two::Less | Two::LessEqual | Two::Greater | Two::GreaterEqual | Two::Equal | Two::NotEqual => (COMPARISON, 7, 7),
        Two::Add | Two::Subtract => (8, 8, 9),
        Two::Multiply | Two::Divide => (10, 10, 11),
        Two::Power => (POWER, ATOM, SIGN),
        _ => return None,
    })
}

fn wrap(piece: (String, u8), needed: u8) -> String {
    if piece.1 < needed { format!("({})", piece.0) } else { piece.0 }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stack: Vec<(String, u8)> = Vec::with_capacity(self.depth);
        let pop = |stack: &mut Vec<(String, u8)>| stack.pop().unwrap_or_default();
        for op in &self.ops {
            let piece = match op {
                Op::Number(value) if value.is_nan() => ("0/0".to_owned(), 10),
                Op::Number(value) => (format!("{value:?}"), if value.is_sign_negative() { SIGN } else { ATOM }),
                Op::Variable(i) => (self.variables[*i].clone(), ATOM),
                Op::One(One::Negate) => (format!("-{}", wrap(pop(&mut stack), SIGN)), SIGN),
                // Always bracketed, which is plain to read.
                Op::One(One::Not) => (format!("(not {})", wrap(pop(&mut stack), COMPARISON)), ATOM),
                Op::One(op) => (format!("{}({})", op.name(), pop(&mut stack).0), ATOM),
                Op::Two(op) => {
                    let (right, left) = (pop(&mut stack), pop(&mut stack));
                    match strength(*op) {
                        Some((own, l, r)) => {
                            let mut text = wrap(left, l);
                            // Appended, so that a long sum is printed in linear time.
                            text.push_str(if own > 9 { "" } else { " " });
                            text.push_str(op.name());
                            text.push_str(if own > 9 { "" } else { " " });
                            text.push_str(&wrap(right, r));
                            (text, own)
                        }
                        None => (format!("{}({}, {})", op.name(), left.0, right.0), ATOM),
                    }
                }
                Op::Three(op) => {
                    let (c, b, a) = (pop(&mut stack).0, pop(&mut stack).0, pop(&mut stack).0);
                    (format!("{}({a}, {b}, {c})", op.name()), ATOM)
                }
            };
            stack.push(piece);
        }
        f.write_str(&pop(&mut stack).0)
    }
}
