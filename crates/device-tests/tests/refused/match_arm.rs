use zellige_device_macro::device;

#[device]
fn f(n: u32) -> f32 {
    match n {
        0 => 1.0,
        _ => 2.0,
    }
}

fn main() {}
