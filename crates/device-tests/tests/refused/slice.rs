use zellige_device_macro::device;

#[device]
fn f(x: [f64; 3]) -> f64 {
    x[0]
}

fn main() {}
