//! Addresses of values in a file. The library allots the space of a contiguous dataset when that is made, but tells no address:
//! it is found on the way that the format describes (HDF5 file format specification 3.0), from the superblock by the links of the
//! groups to the layout message of the dataset.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rust_hdf5::H5Group;
use rust_hdf5::format::dense_link::read_dense_links;
use rust_hdf5::format::messages::data_layout::DataLayoutMessage;
use rust_hdf5::format::messages::link::{LinkMessage, LinkTarget};
use rust_hdf5::format::messages::link_info::LinkInfoMessage;
use rust_hdf5::format::messages::{MSG_DATA_LAYOUT, MSG_LINK, MSG_LINK_INFO, MSG_OBJ_HEADER_CONTINUATION};
use rust_hdf5::format::object_header::ObjectHeader;
use rust_hdf5::format::superblock::SuperblockV2V3;
use rust_hdf5::format::{BlockReader, FormatContext, FormatError, FormatResult};
use zellige_engine::error::{Error, Result};
use zellige_engine::record::Slot;

/// Bytes that are read of a header before it has said its length.
const HEAD: usize = 4096;

/// Datasets of a file that were made without values, which the parts of a run write.
#[derive(Default)]
pub(super) struct Holes(Vec<(String, u64, Slot)>);

impl Holes {
    /// Adds the dataset `name` of a group, which has room for so many bytes of a column of a share.
    pub(super) fn add(&mut self, group: &H5Group, name: &str, bytes: usize, share: usize, column: usize) {
        if bytes > 0 {
            let path = format!("{}/{name}", group.name());
            self.0.push((path.trim_matches('/').to_owned(), bytes as u64, Slot { share, column, at: 0, mark: None }));
        }
    }

    /// Their places in the file, which is written but for them.
    pub(super) fn slots(self, file: &Path) -> Result<Vec<Slot>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let mut addresses = Addresses::open(file)?;
        self.0.into_iter().map(|(dataset, bytes, slot)| Ok(Slot { at: addresses.of(&dataset, bytes)?, ..slot })).collect()
    }
}

/// A file that the library has just written.
struct Addresses<'a> {
    path: &'a Path,
    blocks: Blocks,
    context: FormatContext,
    root: u64,
}

/// Pieces of a file, as the library's decoders ask for them.
struct Blocks(File);

impl BlockReader for Blocks {
    /// Fewer bytes where the file ends.
    fn read_block(&mut self, at: u64, length: usize) -> FormatResult<Vec<u8>> {
        let failed = |e: std::io::Error| FormatError::InvalidData(e.to_string());
        let left = self.0.metadata().map_err(failed)?.len().saturating_sub(at);
        let mut bytes = vec![0; length.min(usize::try_from(left).unwrap_or(usize::MAX))];
        self.0.read_exact_at(&mut bytes, at).map_err(failed)?;
        Ok(bytes)
    }
}

impl Blocks {
    /// A structure, decoded, which says itself how long it is.
    fn decoded<T>(&mut self, at: u64, decode: impl Fn(&[u8]) -> FormatResult<T>) -> FormatResult<T> {
        match decode(&self.read_block(at, HEAD)?) {
            Err(FormatError::BufferTooShort { needed, .. }) => decode(&self.read_block(at, needed)?),
            done => done,
        }
    }
}

impl<'a> Addresses<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::file("read", path, e))?;
        let mut blocks = Blocks(file);
        let block = blocks.decoded(0, SuperblockV2V3::decode).map_err(|e| unfound(path, "the file", &e))?;
        let context = FormatContext { sizeof_addr: block.sizeof_offsets, sizeof_size: block.sizeof_lengths };
        Ok(Self { path, blocks, context, root: block.root_group_object_header_address })
    }

    /// Address of the values of the dataset at a path in the file, of so many bytes.
    fn of(&mut self, dataset: &str, bytes: u64) -> Result<u64> {
        self.find(dataset, bytes).map_err(|e| unfound(self.path, dataset, &e))
    }

    fn find(&mut self, dataset: &str, bytes: u64) -> FormatResult<u64> {
        let mut object = self.root;
        for name in dataset.split('/') {
            object = self.member(object, name)?;
        }
        let layout = self.messages(object)?.into_iter().find(|(kind, _)| *kind == MSG_DATA_LAYOUT);
        match layout.map(|(_, body)| DataLayoutMessage::decode(&body, &self.context)).transpose()? {
            Some((DataLayoutMessage::Contiguous { address, size }, _)) if size == bytes && address != u64::MAX => Ok(address),
            _ => Err(FormatError::InvalidData(format!("it is not one piece of {bytes} bytes"))),
        }
    }

    /// Kinds and bodies of the messages in the header of an object, which may go on in other blocks.
    fn messages(&mut self, object: u64) -> FormatResult<Vec<(u8, Vec<u8>)>> {
        let header = self.blocks.decoded(object, ObjectHeader::decode_any)?.0;
        // Numbers of messages in the order in which they were made stand in front of bodies where the header has them.
        let numbered = header.flags & 4 != 0;
        let mut messages: Vec<_> = header.messages.into_iter().map(|message| (message.msg_type, message.data)).collect();
        let mut next = 0;
        while let Some((kind, body)) = messages.get(next) {
            next += 1;
            if let (MSG_OBJ_HEADER_CONTINUATION, Some((at, length))) = (*kind, body.split_at_checked(8)) {
                let block = self.blocks.read_block(number(at), number(length) as usize)?;
                messages.extend(parsed(&block, numbered)?);
            }
        }
        Ok(messages)
    }

    /// Address of the header of an object in a group.
    fn member(&mut self, group: u64, name: &str) -> FormatResult<u64> {
        let mut links = Vec::new();
        for (kind, body) in self.messages(group)? {
            match kind {
                MSG_LINK => links.push(LinkMessage::decode(&body, &self.context)?.0),
                // Of many links.
                MSG_LINK_INFO => {
                    let info = LinkInfoMessage::decode(&body, &self.context)?.0;
                    links.extend(read_dense_links(&info, &self.context, &mut self.blocks)?);
                }
                _ => {}
            }
        }
        let address = |link: &LinkMessage| match link.target {
            LinkTarget::Hard { address } if link.name == name => Some(address),
            _ => None,
        };
        links.iter().find_map(address).ok_or_else(|| FormatError::InvalidData(format!("nothing is named `{name}`")))
    }
}

/// Messages of a block in which a header goes on: behind a signature, before a checksum.
fn parsed(block: &[u8], numbered: bool) -> FormatResult<Vec<(u8, Vec<u8>)>> {
    let wrong = || FormatError::InvalidData("a header goes on where none is".into());
    let mut rest = block.strip_prefix(b"OCHK").and_then(|block| block.split_last_chunk::<4>()).ok_or_else(wrong)?.0;
    let mut messages = Vec::new();
    while let Some(([kind, low, high, _], behind)) = rest.split_first_chunk::<4>() {
        let behind = behind.get(if numbered { 2 } else { 0 }..).ok_or_else(wrong)?;
        let (body, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes([*low, *high]))).ok_or_else(wrong)?;
        messages.push((*kind, body.to_vec()));
        rest = behind;
    }
    Ok(messages)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn unfound(path: &Path, what: &str, error: &FormatError) -> Error {
    Error::format(path, super::FORMAT, format!("the address of `{what}` in it is not found: {error}"))
}
