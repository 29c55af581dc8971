use zellige_device_macro::device;

trait Real: Copy {
    fn min(self, other: Self) -> Self;
}

#[derive(Clone, Copy)]
struct Pair<R> {
    a: R,
    b: R,
}

#[device]
fn f<R: Real>(p: Pair<R>) -> R {
    p.a.min(p.b)
}

fn main() {}
