//! Devices as arguments name them.

use zellige_engine::device::{Device, DeviceSpec};
use zellige_engine::error::{Error, Problem, Result};

/// Device that the caller, the environment or `auto` asks for.
pub(crate) fn open(origin: &str, device: Option<&str>, threads: usize) -> Result<Device> {
    let parse = |text: &str| {
        let fault = |message: String| Error::input(origin, Problem::new("device", message).allowed("auto, cpu, cuda, cuda:N"));
        text.parse::<DeviceSpec>().map_err(fault)
    };
    let spec = DeviceSpec::choose(device.map(parse).transpose()?, None)?;
    Ok(Device::open(&spec, threads)?.0)
}
