//! Pictures read as grey values.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zellige_engine::error::{Error, Result};

use crate::Array;

/// Larger pictures are refused.
const MOST: usize = 1 << 28;

/// Reads a PNG as brightness from 0 (black) to 1 (white), `[rows, columns]` from the top; transparency is ignored, colours are
/// weighted as ITU-R BT.709 does.
pub fn read_grey(path: &Path) -> Result<Array> {
    let file = File::open(path).map_err(|e| Error::file("read", path, e))?;
    let wrong = |e: png::DecodingError| match e {
        png::DecodingError::IoError(e) => Error::file("read", path, e),
        other => Error::format(path, "PNG", other.to_string()),
    };
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(wrong)?;
    let size = reader.output_buffer_size().filter(|s| *s <= MOST);
    let mut bytes = vec![0; size.ok_or_else(|| Error::format(path, "PNG", format!("it needs more than {MOST} bytes")))?];
    let info = reader.next_frame(&mut bytes).map_err(wrong)?;
    let samples = info.color_type.samples();
    let wide = info.bit_depth == png::BitDepth::Sixteen;
    let value = |i: usize| {
        if wide { f64::from(u16::from_be_bytes([bytes[2 * i], bytes[2 * i + 1]])) / 65535.0 } else { f64::from(bytes[i]) / 255.0 }
    };
    let grey = |pixel: usize| match samples {
        1 | 2 => value(pixel * samples),
        _ => 0.2126 * value(pixel * samples) + 0.7152 * value(pixel * samples + 1) + 0.0722 * value(pixel * samples + 2),
    };
    let (rows, columns) = (info.height as usize, info.width as usize);
    Ok(Array { shape: vec![rows, columns], values: (0..rows * columns).map(grey).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Canvas, write_png};

    #[test]
    fn brightness_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.png");
        let pixels = vec![[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255], [51, 51, 51]];
        write_png(&path, &Canvas { width: 3, height: 2, pixels }, "six").unwrap();
        let found = read_grey(&path).unwrap();
        assert_eq!(found.shape, [2, 3]);
        for (a, b) in found.values.iter().zip([0.0, 1.0, 0.2126, 0.7152, 0.0722, 0.2]) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
        std::fs::write(&path, b"no picture").unwrap();
        assert!(matches!(read_grey(&path), Err(Error::Format { format: "PNG", .. })));
        assert!(matches!(read_grey(&folder.path().join("none.png")), Err(Error::File { .. })));
    }
}
