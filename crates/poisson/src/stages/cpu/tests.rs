//! The passes against the definition spelt out node by node.
