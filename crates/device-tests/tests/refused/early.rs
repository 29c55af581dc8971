use zellige_device_macro::device;

#[device]
fn f(x: f32) -> f32 {
    let y: f32 = if x > 0.0 {
        return x;
    } else {
        1.0
    };
    y
}

fn main() {}
