use zellige_device_macro::device;

#[device]
fn f(x: f32) -> f32 {
    let mut sum = 0.0;
    sum += x;
    sum
}

fn main() {}
