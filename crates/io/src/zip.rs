//! ZIP as far as NPZ needs it: members stored or deflated, with the extension to 64 bits. Read from the directory at the end of the
//! file; nothing that the directory claims is believed before it is held against the file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// Signatures of the records.
const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
/// The end record and the longest comment behind it.
const TAIL: u64 = 22 + 65_535;
/// Longest directory that is read.
const DIRECTORY: u64 = 1 << 24;
/// Deflate packs at most about 1032 to 1.
const DENSEST: u64 = 1100;
/// Value of a field in the 64-bit extension.
const ELSEWHERE: u32 = u32::MAX;

/// A member of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    method: u16,
    crc: u32,
    packed: u64,
    /// Bytes once unpacked.
    pub(crate) size: u64,
    offset: u64,
}

/// Reason why an archive cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    System(io::Error),
    Content(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Content(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Self::Content(message.into())
    }
}

fn read_exact(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), Fault> {
    input.read_exact(bytes).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => "the file ends too early".into(),
        _ => Fault::System(e),
    })
}

fn at(bytes: &[u8], place: usize, width: usize) -> Option<u64> {
    let part = bytes.get(place..place.checked_add(width)?)?;
    Some(part.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b)))
}

fn field(bytes: &[u8], place: usize, width: usize) -> Result<u64, Fault> {
    at(bytes, place, width).ok_or_else(|| "its directory is cut off".into())
}

/// The members of an archive of `length` bytes.
pub(crate) fn directory(input: &mut (impl Read + Seek), length: u64) -> Result<Vec<Member>, Fault> {
    let tail = length.min(TAIL);
    input.seek(SeekFrom::Start(length - tail)).map_err(Fault::System)?;
    let mut bytes = vec![0; tail as usize];
    read_exact(input, &mut bytes)?;
    let signed = |i: &usize| at(&bytes, *i, 4) == Some(u64::from(END));
    let end = (0..bytes.len().saturating_sub(21)).rev().find(signed).ok_or("it has no directory at its end (is it whole?)")?;
    let mut count = field(&bytes, end + 10, 2)?;
    let mut size = field(&bytes, end + 12, 4)?;
    let mut start = field(&bytes, end + 16, 4)?;
    if count == 0xffff || size == u64::from(ELSEWHERE) || start == u64::from(ELSEWHERE) {
        let locator = end.checked_sub(20).filter(|l| at(&bytes, *l, 4) == Some(u64::from(LOCATOR64)));
        let place = field(&bytes, locator.ok_or("its 64-bit directory is missing")? + 8, 8)?;
        if place.checked_add(56).is_none_or(|e| e > length) {
            return Err("its 64-bit directory lies beyond its end".into());
        }
        let mut record = [0; 56];
        input.seek(SeekFrom::Start(place)).map_err(Fault::System)?;
        read_exact(input, &mut record)?;
        if field(&record, 0, 4)? != u64::from(END64) {
            return Err("its 64-bit directory is damaged".into());
        }
        (count, size, start) = (field(&record, 32, 8)?, field(&record, 40, 8)?, field(&record, 48, 8)?);
    }
    if size > DIRECTORY || start.checked_add(size).is_none_or(|e| e > length) {
        return Err("its directory lies beyond its end".into());
    }
    let mut bytes = vec![0; size as usize];
    input.seek(SeekFrom::Start(start)).map_err(Fault::System)?;
    read_exact(input, &mut bytes)?;
    let mut members = Vec::new();
    let mut place = 0;
    for _ in 0..count {
        if place >= bytes.len() {
            return Err(format!("its directory has {} of {count} entries", members.len()).into());
        }
        let (member, next) = entry(&bytes, place)?;
        if member.offset.checked_add(member.packed).is_none_or(|e| e > length) {
            return Err(format!("its member `{}` lies beyond its end", member.name).into());
        }
        if member.size > member.packed.saturating_mul(DENSEST).saturating_add(1 << 16) {
            return Err(format!("its member `{}` claims {} bytes in {}", member.name, member.size, member.packed).into());
        }
        members.push(member);
        place = next;
    }
    Ok(members)
}

/// An entry of the directory, and where the next one begins.
fn entry(bytes: &[u8], place: usize) -> Result<(Member, usize), Fault> {
    if field(bytes, place, 4)? != u64::from(CENTRAL) {
        return Err("its directory is damaged".into());
    }
    let number = |offset: usize, width: usize| field(bytes, place + offset, width);
    if number(8, 2)? & 1 != 0 {
        return Err("it is encrypted".into());
    }
    let (mut packed, mut size, mut offset) = (number(20, 4)?, number(24, 4)?, number(42, 4)?);
    let (name, extra, comment) = (number(28, 2)? as usize, number(30, 2)? as usize, number(32, 2)? as usize);
    let text = bytes.get(place + 46..place + 46 + name).ok_or("its directory is cut off")?;
    let begin = place + 46 + name;
    let more = bytes.get(begin..begin + extra).ok_or("its directory is cut off")?;
    let mut i = 0;
    while let (Some(id), Some(length)) = (at(more, i, 2), at(more, i + 2, 2)) {
        if id == 1 {
            let mut from = i + 4;
            for value in [&mut size, &mut packed, &mut offset] {
                if *value == u64::from(ELSEWHERE) {
                    *value = at(more, from, 8).ok_or("its 64-bit sizes are cut off")?;
                    from += 8;
                }
            }
        }
        i += 4 + length as usize;
    }
    let name = String::from_utf8_lossy(text).into_owned();
    let (method, crc) = (number(10, 2)? as u16, number(16, 4)? as u32);
    Ok((Member { name, method, crc, packed, size, offset }, begin + extra + comment))
}

/// The unpacked bytes of a member, at most `limit` from its beginning; whole, they are held against the checksum.
pub(crate) fn read(input: &mut (impl Read + Seek), member: &Member, limit: u64) -> Result<Vec<u8>, Fault> {
    let mut local = [0; 30];
    input.seek(SeekFrom::Start(member.offset)).map_err(Fault::System)?;
    read_exact(input, &mut local)?;
    if field(&local, 0, 4)? != u64::from(LOCAL) {
        return Err(format!("its member `{}` is not where the directory says", member.name).into());
    }
    let skip = field(&local, 26, 2)? + field(&local, 28, 2)?;
    input.seek(SeekFrom::Current(skip as i64)).map_err(Fault::System)?;
    let wanted = member.size.min(limit);
    let mut bytes = Vec::new();
    let packed = input.take(member.packed);
    let read = match member.method {
        0 => BufReader::new(packed).take(wanted).read_to_end(&mut bytes),
        8 => DeflateDecoder::new(BufReader::new(packed)).take(wanted).read_to_end(&mut bytes),
        other => return Err(format!("its member `{}` is packed by method {other} (known: 0 stored, 8 deflated)", member.name).into()),
    };
    read.map_err(|e| match e.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Fault::Content(format!("its member `{}` cannot be unpacked: {e}", member.name))
        }
        _ => Fault::System(e),
    })?;
    if (bytes.len() as u64) < wanted {
        return Err(format!("its member `{}` has {} of {} bytes", member.name, bytes.len(), member.size).into());
    }
    let mut crc = Crc::new();
    crc.update(&bytes);
    if wanted == member.size && crc.sum() != member.crc {
        return Err(format!("its member `{}` is damaged (checksum)", member.name).into());
    }
    Ok(bytes)
}

/// An archive in the making.
pub(crate) struct Writer<W: Write> {
    out: W,
    offset: u64,
    directory: Vec<u8>,
    count: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, offset: 0, directory: Vec::new(), count: 0 }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Adds a member, deflated or as it is.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8], deflate: bool) -> io::Result<()> {
        let mut crc = Crc::new();
        crc.update(bytes);
        let packed = if deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes)?;
            Some(encoder.finish()?)
        } else {
            None
        };
        let data = packed.as_deref().unwrap_or(bytes);
        let method = if deflate { 8u16 } else { 0 };
        let offset = self.offset;
        // Sizes always in the 64-bit extension, as NumPy writes them.
        let mut head = Vec::new();
        head.extend(LOCAL.to_le_bytes());
        head.extend(45u16.to_le_bytes());
        // The date is 1 January 1980: the same input gives the same file.
        let middle = |head: &mut Vec<u8>| {
            head.extend(0u16.to_le_bytes());
            head.extend(method.to_le_bytes());
            head.extend(0u16.to_le_bytes());
            head.extend(0x0021u16.to_le_bytes());
            head.extend(crc.sum().to_le_bytes());
            head.extend([0xff; 8]);
            head.extend((name.len() as u16).to_le_bytes());
        };
        middle(&mut head);
        head.extend(20u16.to_le_bytes());
        head.extend(name.as_bytes());
        let sizes = |head: &mut Vec<u8>, length: u16| {
            head.extend(1u16.to_le_bytes());
            head.extend(length.to_le_bytes());
            head.extend((bytes.len() as u64).to_le_bytes());
            head.extend((data.len() as u64).to_le_bytes());
        };
        sizes(&mut head, 16);
        self.put(&head)?;
        self.put(data)?;
        let mut line = Vec::new();
        line.extend(CENTRAL.to_le_bytes());
        line.extend([45, 3, 45, 0]);
        middle(&mut line);
        line.extend(28u16.to_le_bytes());
        line.extend([0; 6]);
        // Rights of a plain file, readable by all.
        line.extend((0o100_644_u32 << 16).to_le_bytes());
        line.extend([0xff; 4]);
        line.extend(name.as_bytes());
        sizes(&mut line, 24);
        line.extend(offset.to_le_bytes());
        self.directory.extend(line);
        self.count += 1;
        Ok(())
    }

    /// Writes the directory.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let (start, size, count) = (self.offset, self.directory.len() as u64, self.count);
        let directory = std::mem::take(&mut self.directory);
        self.put(&directory)?;
        let place = self.offset;
        let mut end = Vec::new();
        end.extend(END64.to_le_bytes());
        end.extend(44u64.to_le_bytes());
        end.extend([45, 0, 45, 0]);
        end.extend([0; 8]);
        for value in [count, count, size, start] {
            end.extend(value.to_le_bytes());
        }
        end.extend(LOCATOR64.to_le_bytes());
        end.extend([0; 4]);
        end.extend(place.to_le_bytes());
        end.extend(1u32.to_le_bytes());
        end.extend(END.to_le_bytes());
        end.extend([0; 4]);
        let short = |value: u64, most: u64| value.min(most);
        end.extend((short(count, 0xffff) as u16).to_le_bytes());
        end.extend((short(count, 0xffff) as u16).to_le_bytes());
        end.extend((short(size, u64::from(ELSEWHERE)) as u32).to_le_bytes());
        end.extend((short(start, u64::from(ELSEWHERE)) as u32).to_le_bytes());
        end.extend([0; 2]);
        self.put(&end)?;
        self.out.flush()
    }
}

/// Opens a file with its length.
pub(crate) fn open(path: &std::path::Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let data = file.metadata()?;
    if data.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok((file, data.len()))
}
