//! Comparison of files that runs leave.

/// Returns true if the contents of two files are the same, but for the second in which an openPMD file was written and the checksum
/// of the header with it.
pub fn alike(a: &[u8], b: &[u8]) -> bool {
    let date = a.windows(7).position(|some| some == b" +0000\0").filter(|end| *end >= 19 && a.starts_with(b"\x89HDF"));
    let date = date.map_or(0..0, |end| end - 19..end);
    if a == b || a.len() != b.len() || a[date.clone()] == b[date.clone()] {
        return a == b;
    }
    let mut differ = (0..a.len()).filter(|k| a[*k] != b[*k] && !date.contains(k));
    let first = differ.next().unwrap_or(date.end);
    date.end.abs_diff(first) < 4096 && differ.all(|k| k < first + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_date_and_its_checksum_may_differ() {
        let file = |date: &[u8; 19], checksum: u8, value: u8| {
            [b"\x89HDF....", &date[..], b" +0000\0...", &[checksum; 4], &[0; 8], &[value]].concat()
        };
        let (now, later) = (b"2026-11-30 08:00:00", b"2026-11-30 08:00:01");
        assert!(alike(&file(now, 1, 7), &file(now, 1, 7)) && alike(&file(now, 1, 7), &file(later, 2, 7)));
        // Another value, a checksum of the same date, another length, another kind of file.
        assert!(!alike(&file(now, 1, 7), &file(later, 2, 8)) && !alike(&file(now, 1, 7), &file(now, 2, 7)));
        assert!(!alike(&file(now, 1, 7), &file(now, 1, 7)[1..]) && !alike(&file(now, 1, 7)[1..], &file(later, 2, 7)[1..]));
    }
}
