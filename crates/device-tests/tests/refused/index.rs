use zellige_device_macro::device;

#[device]
fn f(i: u32) -> f64 {
    TABLE[i as usize]
}

const TABLE: [f64; 2] = [0.0, 1.0];

fn main() {}
