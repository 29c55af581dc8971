use zellige_device_macro::device;

#[device]
fn f(x: f32) -> f32 {
    assert!(x > 0.0);
    x
}

fn main() {}
