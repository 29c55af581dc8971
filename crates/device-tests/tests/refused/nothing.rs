use zellige_device_macro::device;

#[device]
fn f(x: f32) {
    let _y = x;
}

fn main() {}
