use zellige_device_macro::device;

#[device]
fn f(x: u8) -> u8 {
    x
}

fn main() {}
