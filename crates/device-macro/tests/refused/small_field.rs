use zellige_device_macro::device;

#[device]
struct Arguments {
    x: [[u16; 2]; 3],
}

fn main() {}
