//! Attributes of groups and datasets alike, numbers included: the library reads those of groups as texts only. Groups are walked
//! along hard links by the library's own decoders of the format.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rust_hdf5::format::btree_v1::BTreeV1Node;
use rust_hdf5::format::dense_attr::read_dense_attributes;
use rust_hdf5::format::dense_link::read_dense_links;
use rust_hdf5::format::local_heap::{LocalHeapHeader, local_heap_get_string};
use rust_hdf5::format::messages::attr_info::AttributeInfoMessage;
use rust_hdf5::format::messages::attribute::AttributeMessage;
use rust_hdf5::format::messages::link::{LinkMessage, LinkTarget};
use rust_hdf5::format::messages::link_info::LinkInfoMessage;
use rust_hdf5::format::messages::{
    MSG_ATTR_INFO, MSG_ATTRIBUTE, MSG_FLAG_SHARED, MSG_LINK, MSG_LINK_INFO, MSG_OBJ_HEADER_CONTINUATION, MSG_SYMBOL_TABLE,
};
use rust_hdf5::format::superblock::{SuperblockV0V1, SuperblockV2V3, detect_superblock_version};
use rust_hdf5::format::symbol_table::SymbolTableNode;
use rust_hdf5::format::{BlockReader, FormatContext, FormatError, FormatResult};
use rust_hdf5::{DatatypeMessage, Hdf5Error};
use zellige_engine::error::{Error, Result};

use super::{file, guarded};

/// Bytes of a block of a header, a list of names or a node at most: more is damage.
const LARGEST: u64 = 1 << 24;
/// Blocks that one header or one tree may have.
const BLOCKS: usize = 1 << 12;
/// Nodes of a group that are read at once; those of the format's defaults have 544 bytes.
const NODE: u64 = 1 << 13;
/// Capacity that a node may claim.
const ENTRIES: u16 = u16::MAX;

/// Attributes of an object by name.
#[derive(Debug, Clone, Default)]
pub struct Attributes(BTreeMap<String, AttributeMessage>);

impl Attributes {
    /// Reads those of the object at a path within a file, `""` for the root; none if it is not there, or lies behind a soft or
    /// external link.
    pub fn of(path: impl AsRef<Path>, object: &str) -> Result<Self> {
        let path = path.as_ref();
        let mut input = std::fs::File::open(path).map_err(|e| Error::file("read", path, e))?;
        guarded(path, "read", move || {
            let mut walk = Walk::new(&mut input)?;
            let mut at = walk.root;
            for name in object.split('/').filter(|name| !name.is_empty()) {
                match walk.child(at, name)? {
                    Some(child) => at = child,
                    None => return Ok(Self::default()),
                }
            }
            walk.attributes(at)
        })
    }

    /// The numbers of an attribute; `None` if it is missing or is no number.
    pub fn reals(&self, name: &str) -> Option<Vec<f64>> {
        let found = self.0.get(name)?;
        file::decode(&found.data, &found.datatype).ok()?.into_reals().filter(|v| !v.is_empty())
    }

    /// The first number of an attribute.
    pub fn real(&self, name: &str) -> Option<f64> {
        self.reals(name).map(|values| values[0])
    }

    /// The texts of an attribute, those of fixed length; `None` if it is missing or is no such text.
    pub fn words(&self, name: &str) -> Option<Vec<String>> {
        let found = self.0.get(name)?;
        let DatatypeMessage::FixedString { size, .. } = found.datatype else { return None };
        let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches(['\0', ' ']).to_owned();
        Some(found.data.chunks_exact((size as usize).max(1)).map(word).collect())
    }

    /// Returns true if there is an attribute of that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// A message of a header: its type, its flags and its bytes.
type Message = (u8, u8, Vec<u8>);

/// A file under way.
struct Walk<'a> {
    input: &'a mut std::fs::File,
    context: FormatContext,
    base: u64,
    root: u64,
}

impl<'a> Walk<'a> {
    fn new(input: &'a mut std::fs::File) -> Result<Self, Hdf5Error> {
        let mut begin = Vec::new();
        // The superblock stands at 0, or behind a block of the user of 512 bytes, 1024, 2048 and so on.
        let length = input.metadata()?.len();
        let places = std::iter::once(0).chain((9..40).map(|k| 1 << k)).take_while(|at| *at < length);
        for at in places {
            input.seek(SeekFrom::Start(at))?;
            begin.clear();
            Read::by_ref(input).take(256).read_to_end(&mut begin)?;
            if detect_superblock_version(&begin).is_ok() {
                break;
            }
        }
        let (sizes, base, root) = match detect_superblock_version(&begin)? {
            0 | 1 => {
                let found = SuperblockV0V1::decode(&begin)?;
                let root = found.root_symbol_table_entry.obj_header_addr;
                ((found.sizeof_offsets, found.sizeof_lengths), found.base_address, root)
            }
            _ => {
                let found = SuperblockV2V3::decode(&begin)?;
                ((found.sizeof_offsets, found.sizeof_lengths), found.base_address, found.root_group_object_header_address)
            }
        };
        Ok(Self { input, context: FormatContext { sizeof_addr: sizes.0, sizeof_size: sizes.1 }, base, root })
    }

    /// Bytes at an address: up to `length`, fewer at the end of the file.
    fn bytes(&mut self, address: u64, length: u64) -> Result<Vec<u8>, Hdf5Error> {
        if length > LARGEST {
            return Err(FormatError::InvalidData(format!("a block of {length} bytes in a header")).into());
        }
        let begin = address.checked_add(self.base).ok_or(FormatError::InvalidData("an address beyond the file".into()))?;
        self.input.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        Read::by_ref(self.input).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A number of the format at the beginning of `bytes`.
    fn number(bytes: &[u8], width: usize) -> Result<u64, Hdf5Error> {
        let found = bytes.get(..width).ok_or(FormatError::BufferTooShort { needed: width, available: bytes.len() })?;
        Ok(found.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    /// All messages of the header at an address, those of its further blocks too.
    fn messages(&mut self, address: u64) -> Result<Vec<Message>, Hdf5Error> {
        let begin = self.bytes(address, 64)?;
        let newer = begin.starts_with(b"OHDR");
        // Begin and length of the messages of the first block.
        let (skip, length, indexed) = if newer {
            let flags = *begin.get(5).unwrap_or(&0);
            let (times, thresholds, width) = (flags & 0x20 != 0, flags & 0x10 != 0, 1usize << (flags & 3));
            let at = 6 + if times { 16 } else { 0 } + if thresholds { 4 } else { 0 };
            (at + width, Self::number(begin.get(at..).unwrap_or_default(), width)?, flags & 4 != 0)
        } else {
            (16, Self::number(begin.get(8..).unwrap_or_default(), 4)?, false)
        };
        let mut blocks = vec![(address.saturating_add(skip as u64), length)];
        let mut found = Vec::new();
        let mut next = 0;
        while next < blocks.len() && next < BLOCKS {
            let (at, length) = blocks[next];
            let block = self.bytes(at, length)?;
            let mut rest = &block[..];
            // Type, length and flags; in the older format with three bytes in reserve, and in eights.
            while rest.len() >= 8 {
                let head = if newer { 4 + if indexed { 2 } else { 0 } } else { 8 };
                let (kind, size, flags) = if newer {
                    (rest[0], usize::from(u16::from_le_bytes([rest[1], rest[2]])), rest[3])
                } else {
                    (rest[0], usize::from(u16::from_le_bytes([rest[2], rest[3]])), rest[4])
                };
                let Some(data) = rest.get(head..head + size) else { break };
                if kind == MSG_OBJ_HEADER_CONTINUATION {
                    let (wide, long) = (usize::from(self.context.sizeof_addr), usize::from(self.context.sizeof_size));
                    let (at, length) = (Self::number(data, wide)?, Self::number(data.get(wide..).unwrap_or_default(), long)?);
                    // A newer block has its signature before it and its checksum behind.
                    blocks.push(if newer { (at.saturating_add(4), length.saturating_sub(8)) } else { (at, length) });
                } else {
                    found.push((kind, flags, data.to_vec()));
                }
                let whole = head + if newer { size } else { size.next_multiple_of(8) };
                rest = rest.get(whole..).unwrap_or_default();
            }
            next += 1;
        }
        Ok(found)
    }

    /// Address of what a group has under a name.
    fn child(&mut self, group: u64, name: &str) -> Result<Option<u64>, Hdf5Error> {
        let context = self.context;
        let mut links = Vec::new();
        for (kind, _, data) in self.messages(group)? {
            match kind {
                MSG_LINK => links.extend(LinkMessage::decode(&data, &context).ok().map(|(link, _)| link)),
                MSG_LINK_INFO => links.extend(read_dense_links(&LinkInfoMessage::decode(&data, &context)?.0, &context, self)?),
                _ => {}
            }
            if kind == MSG_SYMBOL_TABLE {
                let wide = usize::from(self.context.sizeof_addr);
                let (tree, heap) = (Self::number(&data, wide)?, Self::number(data.get(wide..).unwrap_or_default(), wide)?);
                return self.in_table(tree, heap, name);
            }
        }
        Ok(links.into_iter().find(|link| link.name == name).and_then(|link| match link.target {
            LinkTarget::Hard { address } => Some(address),
            _ => None,
        }))
    }

    /// Address under a name in a table of the older format: a tree of nodes, and a heap with the names.
    fn in_table(&mut self, tree: u64, heap: u64, name: &str) -> Result<Option<u64>, Hdf5Error> {
        let (wide, long) = (usize::from(self.context.sizeof_addr), usize::from(self.context.sizeof_size));
        let header = LocalHeapHeader::decode(&self.bytes(heap, 64)?, wide, long)?;
        let names = self.bytes(header.data_addr, header.data_size)?;
        let (mut nodes, mut seen) = (vec![tree], BTreeSet::new());
        while let Some(address) = nodes.pop().filter(|_| seen.len() < BLOCKS) {
            if !seen.insert(address) {
                continue;
            }
            let node = self.bytes(address, NODE)?;
            if node.starts_with(b"TREE") {
                nodes.extend(BTreeV1Node::decode(&node, wide, long, ENTRIES)?.children);
                continue;
            }
            for entry in SymbolTableNode::decode(&node, wide, long, ENTRIES)?.entries {
                if local_heap_get_string(&names, entry.name_offset)? == name {
                    return Ok(Some(entry.obj_header_addr));
                }
            }
        }
        Ok(None)
    }

    fn attributes(&mut self, object: u64) -> Result<Attributes, Hdf5Error> {
        let context = self.context;
        let mut found = Attributes::default();
        for (kind, flags, data) in self.messages(object)? {
            let several = match kind {
                MSG_ATTRIBUTE if flags & MSG_FLAG_SHARED == 0 => {
                    AttributeMessage::decode(&data, &context).ok().map(|(own, _)| own).into_iter().collect()
                }
                // More than eight, in files of the newest format.
                MSG_ATTR_INFO => {
                    let entries = read_dense_attributes(&AttributeInfoMessage::decode(&data, &context)?.0, &context, self)?;
                    entries.iter().filter_map(|entry| entry.readable().cloned()).collect()
                }
                _ => Vec::new(),
            };
            found.0.extend(several.into_iter().map(|own| (own.name.clone(), own)));
        }
        Ok(found)
    }
}

impl BlockReader for Walk<'_> {
    fn read_block(&mut self, offset: u64, len: usize) -> FormatResult<Vec<u8>> {
        self.bytes(offset, len as u64).map_err(|e| FormatError::InvalidData(e.to_string()))
    }
}
