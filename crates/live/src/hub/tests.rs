//! Tests of the hub.

use zellige_engine::record::{Axis, Centring, Field, Record, Values};

use super::*;
use crate::frame::frames;

fn field(name: &str, side: usize) -> Vec<Content> {
    let axes = vec![Axis::bare(0, 0.0, 1.0, side), Axis::bare(1, 0.0, 1.0, side)];
    frames(&[Record::Field(Field::bare(name, axes, Centring::Cell, Values::F32(vec![1.0; side * side])))])
}

#[test]
fn rings_are_bounded_in_number_and_in_bytes() {
    let hub = Hub::new(RunNames::default());
    for step in 0..300 {
        hub.frames(Clock { step, time: None }, field("small", 4));
        if step % 2 == 0 {
            hub.frames(Clock { step, time: None }, field("large", 512));
        }
    }
    let state = hub.lock();
    let lengths: Vec<usize> = state.pictures.iter().map(|p| p.frames.len()).collect();
    assert_eq!(lengths, [RING, 150]);
    drop(state);
    for step in 300..500 {
        hub.frames(Clock { step, time: None }, field("large", 512));
        hub.frames(Clock { step, time: None }, field("other", 512));
    }
    let state = hub.lock();
    assert!(state.bytes <= RING_BYTES, "{}", state.bytes);
    let held: usize = state.pictures.iter().flat_map(|p| &p.frames).map(|f| f.bytes()).sum();
    assert_eq!(state.bytes, held);
    assert!(state.pictures.iter().all(|p| !p.frames.is_empty()));
    assert!(state.pictures[1].frames.len() > 100 && state.pictures[2].frames.len() > 100);
}

#[test]
fn a_client_is_told_each_thing_once_and_everything_at_first() {
    let hub = Hub::new(RunNames { name: "weibel".into(), ..RunNames::default() });
    let (mut told, soon) = (Told::default(), Duration::from_millis(1));
    hub.frames(Clock { step: 1, time: Some(0.5) }, field("E", 2));
    hub.notice("a checkpoint was saved");
    let first = hub.news(&mut told, soon).unwrap();
    assert_eq!((&first["run"]["name"], &first["frames"]), (&json!("weibel"), &json!([[1, 0, 1, 0.5]])));
    assert_eq!((&first["pictures"][0]["name"], &first["notices"]), (&json!("E"), &json!(["a checkpoint was saved"])));
    assert_eq!(hub.news(&mut told, soon), Some(Value::Null));
    hub.frames(Clock { step: 2, time: None }, field("E", 2));
    let second = hub.news(&mut told, soon).unwrap();
    assert_eq!((&second["frames"], second.get("run"), second.get("notices")), (&json!([[2, 0, 2, null]]), None, None));
    assert_eq!(hub.newer(&[(0, 1)]).len(), 1);
    assert!(hub.newer(&[(0, 2), (7, 0)]).is_empty() && hub.frame(1).is_some() && hub.frame(3).is_none());
    hub.close();
    assert!(hub.news(&mut told, soon).is_some() && hub.news(&mut told, soon).is_none());
}

#[test]
fn commands_are_refused_unless_they_are_allowed_and_taken_once() {
    let hub = Hub::new(RunNames::default());
    assert!(!hub.command(Command::Save) && !hub.is_commanded());
    let hub = Hub::new(RunNames { commands: vec![Command::Save, Command::Next], ..RunNames::default() });
    assert!(!hub.command(Command::Stop) && hub.command(Command::Save) && hub.is_commanded());
    assert_eq!(hub.take_commands(), Wish { save: true, ..Wish::default() });
    assert!(!hub.is_commanded() && hub.take_commands() == Wish::default());
}

#[test]
fn a_frame_is_sent_with_its_description_and_its_numbers() {
    let hub = Hub::new(RunNames::default());
    hub.frames(Clock { step: 7, time: None }, field("E", 3));
    let mut out = Vec::new();
    hub.frame(1).unwrap().write(&mut out);
    let length = u32::from_le_bytes(out[..4].try_into().unwrap()) as usize;
    let head: Value = serde_json::from_slice(&out[4..4 + length]).unwrap();
    assert_eq!((&head["step"], &head["nx"], &head["bytes"], length % 4), (&json!(7), &json!(3), &json!(36), 0));
    assert_eq!(out[4 + length..], [1f32; 9].map(f32::to_le_bytes).concat());
}
