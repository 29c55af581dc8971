//! Structs of kernels: their text, their bytes, and compilers that refuse another layout.

use zellige_device_macro::device;
use zellige_engine::cuda::{Argument, Recipe};
use zellige_engine::testing;
use zellige_engine::testing::host::Host;

const WIDE: usize = 3;

#[device]
#[derive(Debug, Clone, Copy)]
struct Place<R> {
    at: [R; 2],
    cell: u32,
}

/// Gaps before `list` and at the end.
#[device]
#[derive(Debug, Clone, Copy)]
struct Task {
    count: u32,
    list: *const f32,
    places: [[Place<f32>; 2]; WIDE],
    to: [*mut f64; 2],
    alive: bool,
}

const TASK: Task = Task {
    count: 7,
    list: 0x1122_3344_5566_7788,
    places: [[Place { at: [1.0, 2.0], cell: 3 }, Place { at: [4.0, 5.0], cell: 6 }]; WIDE],
    to: [8, 9],
    alive: true,
};

#[test]
fn text_states_the_layout_of_rust() {
    let expected = "\
struct Task {
    unsigned int count;
    const float* list;
    Place<float> places[   3][2];
    double* to[2];
    bool alive;
};
static_assert(sizeof(Task) ==  112, \"size of Task in Rust\");
static_assert(ZL_OFFSET(count, Task) ==    0, \"offset of Task::count in Rust\");
static_assert(ZL_OFFSET(list, Task) ==    8, \"offset of Task::list in Rust\");
static_assert(ZL_OFFSET(places, Task) ==   16, \"offset of Task::places in Rust\");
static_assert(ZL_OFFSET(to, Task) ==   88, \"offset of Task::to in Rust\");
static_assert(ZL_OFFSET(alive, Task) ==  104, \"offset of Task::alive in Rust\");
";
    assert_eq!(TASK_CUDA, expected);
    assert!(PLACE_CUDA.contains("sizeof(Place<float>) ==   12") && PLACE_CUDA.contains("sizeof(Place<double>) ==   24"), "{PLACE_CUDA}");
}

#[test]
fn bytes_between_fields_are_zero() {
    let bytes = TASK.value();
    assert_eq!(bytes[..8], [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[8..16], 0x1122_3344_5566_7788_u64.to_le_bytes());
    assert_eq!(bytes[16 + 12..16 + 24], [4.0_f32.to_le_bytes(), 5.0_f32.to_le_bytes(), 6_u32.to_le_bytes()].concat());
    assert_eq!(bytes[16 + 24..16 + 48], bytes[16..16 + 24]);
    assert_eq!(bytes[88..], [8_u64.to_le_bytes(), 9_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat());
    assert_eq!(Place { at: [1.0_f64, 2.0], cell: u32::MAX }.value()[16..], [255, 255, 255, 255, 0, 0, 0, 0]);
}

const READ: &str = r#"
extern "C" __global__ void read(Task task, const Task* tasks, double* to) {
    if (threadIdx.x > 0) return;
    const Task& other = tasks[1];
    to[0] = task.count;
    to[1] = double(u64(task.list) >> 32);
    to[2] = task.places[2][1].at[1];
    to[3] = task.places[2][1].cell;
    to[4] = double(u64(task.to[1]));
    to[5] = task.alive + 2 * other.alive;
    to[6] = other.places[1][0].cell;
}
"#;

fn recipe(struct_text: &str) -> Recipe {
    Recipe::new("layout", &[PLACE_CUDA, struct_text, READ], &[], &["read"])
}

const FOUND: [f64; 7] = [7.0, 0x1122_3344 as f64, 5.0, 6.0, 9.0, 3.0, 3.0];

#[test]
fn kernels_find_every_field() {
    let recipe = recipe(TASK_CUDA);
    let mut to = [0.0; 7];
    if let Some(host) = Host::compile(&recipe) {
        type Read = unsafe extern "C" fn(Task, *const u8, *mut f64);
        let (tasks, out) = ([TASK.value(); 2], to.as_mut_ptr());
        // SAFETY: the parameters of `read`, which stays within two tasks and seven numbers.
        let read = unsafe { host.kernel::<Read>("read") };
        host.launch([1, 1, 1], [32, 1, 1], &|| unsafe { read(TASK, tasks.as_ptr().cast(), out) });
        assert_eq!(to, FOUND);
    }
    testing::compiles(&recipe);
    let Some(cuda) = testing::gpu() else { return };
    let found = (|| {
        let tasks = cuda.buffer_from(&[TASK.value(); 2], "tasks")?;
        let mut to = cuda.alloc_zeros::<f64>(7, "numbers")?;
        let kernel = recipe.build(&cuda)?.kernel("read")?;
        // SAFETY: a task, two tasks and room for seven numbers, as declared.
        unsafe { kernel.launch(1, 32).arg(TASK).arg(&tasks).arg(&mut to).run()? };
        cuda.download(&to)
    })();
    assert_eq!(found.unwrap_or_else(|e| panic!("{e}")), FOUND);
}

#[test]
fn another_layout_is_refused() {
    if !testing::compiler() {
        return;
    }
    for (field, other) in [("const float* list;", "int list;"), ("bool alive;", "bool alive[9];")] {
        assert!(TASK_CUDA.contains(field));
        let error = recipe(&TASK_CUDA.replace(field, other)).compile_only("sm_90");
        let refused = matches!(&error, Err(e) if e.to_string().contains("of Task") && e.to_string().contains("in Rust"));
        assert!(refused, "{other}: {error:?}");
    }
}
