use zellige_device_macro::device;

#[device]
fn f<T: Copy>(x: T) -> T {
    x
}

fn main() {}
