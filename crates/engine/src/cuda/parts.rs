//! A program in parts: each kernel is compiled by itself, so that all cores work on one program.
//!
//! Reading the source takes the compiler a twentieth of its time; the rest goes with the number of kernels. In the part of one
//! kernel the other `extern "C"` ones become templates of which there is no instance, so nothing is made of them.

const ENTRY: &str = "extern \"C\" __global__";
const NEVER: &str = "template <int NEVER> __global__";

/// `source` with `kernel` as the only `extern "C"` kernel, or none of them where it is an instance of a template.
pub(super) fn only(source: &str, kernel: &str) -> String {
    let mut text = String::with_capacity(source.len() + 1024);
    let mut rest = source;
    while let Some(at) = rest.find(ENTRY) {
        let (before, found) = rest.split_at(at);
        let behind = &found[ENTRY.len()..];
        text.push_str(before);
        text.push_str(if name(behind) == Some(kernel) { ENTRY } else { NEVER });
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// The kernel's name: behind `void`, with `__launch_bounds__(..)` on either side of that.
fn name(declared: &str) -> Option<&str> {
    let mut rest = declared.split_once("void")?.1.trim_start();
    if let Some(bounds) = rest.strip_prefix("__launch_bounds__") {
        let mut depth = 0;
        let end = bounds.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        })?;
        rest = bounds[end + 1..].trim_start();
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kernel_of_a_source_stays() {
        let source = "extern \"C\" __global__ void __launch_bounds__(32 * (2), 4) a(int x) {}\n\
            extern \"C\" __global__ __launch_bounds__(f(1)) void\n  b_2(int x) { a_void(x); }\ntemplate <int N> __global__ void c() {}\n";
        let heads = |kernel| only(source, kernel).matches(ENTRY).count();
        assert_eq!([heads("a"), heads("b_2"), heads("c<1>"), heads("b")], [1, 1, 0, 0]);
        assert!(only(source, "a").starts_with(ENTRY) && !only(source, "b_2").starts_with(ENTRY));
        assert_eq!(only(source, "a").replace(NEVER, ENTRY), source);
    }
}
