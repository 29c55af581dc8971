use zellige_device_macro::device;

#[device]
struct Arguments {
    x: [*const real; 2],
    y: *mut [f32; 2],
}

fn main() {}
