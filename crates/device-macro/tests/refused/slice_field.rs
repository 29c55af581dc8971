use zellige_device_macro::device;

#[device]
struct Arguments {
    x: [&'static [f32]; 2],
}

fn main() {}
