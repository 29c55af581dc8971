use zellige_device_macro::device;

#[device]
fn f(mut x: f32) -> f32 {
    while x > 1.0 {
        x *= 0.5;
    }
    x
}

fn main() {}
