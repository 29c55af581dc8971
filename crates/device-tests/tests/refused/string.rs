use zellige_device_macro::device;

#[device]
fn f(x: f32) -> f32 {
    let _name = "x";
    x
}

fn main() {}
