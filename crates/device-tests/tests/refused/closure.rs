use zellige_device_macro::device;

#[device]
fn f(x: f32) -> f32 {
    let double = |y: f32| 2.0 * y;
    double(x)
}

fn main() {}
