use zellige_device_macro::device;

#[device]
enum Kind {
    One,
}

fn main() {}
