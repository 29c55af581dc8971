//! Names: Rust's may be shadowed and may be words of C++; those of C++ may be neither.

use std::collections::{HashMap, HashSet};

use crate::types::Ty;

/// Words that Rust allows as a name and C++ (or CUDA) does not.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "constexpr",
    "const_cast",
    "decltype",
    "default",
    "delete",
    "double",
    "explicit",
    "export",
    "float",
    "friend",
    "goto",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "short",
    "signed",
    "sizeof",
    "switch",
    "template",
    "this",
    "throw",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "volatile",
    "void",
    "wchar_t",
    "xor",
    "xor_eq",
    "blockDim",
    "blockIdx",
    "gridDim",
    "threadIdx",
    "warpSize",
];

/// The C++ spelling of a name: the same, unless it is a reserved word.
pub(crate) fn cpp(name: &syn::Ident) -> String {
    let name = name.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// C++ name, unlike all that are visible: C++ cannot write `auto x = x + 1`.
    pub(crate) cpp: String,
    /// Type of the variable.
    pub(crate) ty: Ty,
}

/// The variables in scope.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    frames: Vec<HashMap<String, Variable>>,
    used: HashSet<String>,
}

impl Scope {
    /// A scope in which the names `used` are taken.
    pub(crate) fn new(used: impl IntoIterator<Item = String>) -> Self {
        Self { frames: vec![HashMap::new()], used: used.into_iter().collect() }
    }

    /// Opens a block.
    pub(crate) fn enter(&mut self) {
        self.frames.push(HashMap::new());
    }

    /// Closes it.
    pub(crate) fn leave(&mut self) {
        for variable in self.frames.pop().unwrap_or_default().into_values() {
            self.used.remove(&variable.cpp);
        }
    }

    /// Declares a variable and returns its C++ name.
    pub(crate) fn declare(&mut self, name: &syn::Ident, ty: Ty) -> String {
        let base = cpp(name);
        let mut unique = base.clone();
        let mut count = 2;
        while !self.used.insert(unique.clone()) {
            unique = format!("{base}_{count}");
            count += 1;
        }
        if let Some(frame) = self.frames.last_mut()
            && let Some(shadowed) = frame.insert(name.to_string(), Variable { cpp: unique.clone(), ty })
        {
            // Gone from sight, yet still a name of this C++ block: freed with it under a key that no source can have.
            frame.insert(format!("shadowed {}", shadowed.cpp), shadowed);
        }
        unique
    }

    /// Gives the variable just declared its type, which is found by its C++ name.
    pub(crate) fn retype(&mut self, name: &syn::Ident, ty: Ty) {
        if let Some(variable) = self.frames.last_mut().and_then(|frame| frame.get_mut(&name.to_string())) {
            variable.ty = ty;
        }
    }

    /// The variable of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&Variable> {
        self.frames.iter().rev().find_map(|frame| frame.get(name))
    }
}

/// The name of the constant that holds the C++ of `name`: `BORIS_CUDA` for `boris`, `VEC_CUDA` for `Vec`.
pub(crate) fn constant(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    let mut constant = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            constant.push('_');
        }
        constant.extend(c.to_uppercase());
        before = c;
    }
    constant + "_CUDA"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_in_capitals() {
        for (name, expected) in [("boris", "BORIS_CUDA"), ("red_black", "RED_BLACK_CUDA"), ("OMEGA_P", "OMEGA_P_CUDA")] {
            assert_eq!(constant(name), expected);
        }
        assert_eq!(constant("HalfStep"), "HALF_STEP_CUDA");
        assert_eq!(constant("Vec3"), "VEC3_CUDA");
    }

    #[test]
    fn shadowing_makes_a_new_name() {
        let ident = |name: &str| syn::Ident::new(name, proc_macro2::Span::call_site());
        let mut scope = Scope::new(["R".to_owned()]);
        assert_eq!(scope.declare(&ident("x"), Ty::Bool), "x");
        scope.enter();
        assert_eq!(scope.declare(&ident("x"), Ty::Bool), "x_2");
        assert_eq!(scope.find("x").map(|v| v.cpp.as_str()), Some("x_2"));
        scope.leave();
        assert_eq!(scope.find("x").map(|v| v.cpp.as_str()), Some("x"));
        scope.enter();
        assert_eq!(scope.declare(&ident("x"), Ty::Bool), "x_2");
        assert_eq!(scope.declare(&ident("x"), Ty::Bool), "x_3");
        scope.leave();
        assert_eq!(scope.declare(&ident("x"), Ty::Bool), "x_2");
        assert_eq!(scope.declare(&ident("R"), Ty::Bool), "R_2");
        assert_eq!(scope.declare(&ident("double"), Ty::Bool), "double_");
    }
}
