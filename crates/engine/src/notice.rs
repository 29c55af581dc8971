//! Notices from a library to the user during work, where no sink is at hand.

use std::sync::OnceLock;

static TELLER: OnceLock<fn(&str)> = OnceLock::new();

/// Has `teller` tell it; the first one stays. Without one it goes to the log.
pub fn told_by(teller: fn(&str)) {
    TELLER.get_or_init(|| teller);
}

/// Tells `text`.
pub fn tell(text: &str) {
    match TELLER.get() {
        Some(teller) => teller(text),
        None => tracing::info!("{text}"),
    }
}
