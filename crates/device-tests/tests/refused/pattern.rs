use zellige_device_macro::device;

#[device]
fn f(x: f32) -> f32 {
    let (a, b) = (x, x);
    a + b
}

fn main() {}
