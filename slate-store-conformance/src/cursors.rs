//! Cursors: bounds, seeks, steps and changes of direction.

use std::{ops::ControlFlow, thread};

use super::{
    Fixture,
    tools::{A, B, Writes, all, begin, commit, key_of, keys, put, within},
};
use slate_store::{Bounds, Cursor, Edge, Entries, Keyspace, Store, Transaction, TransactionExt, View};

const LETTERS: [(&str, &str); 5] = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")];

pub fn a_cursor_is_confined_to_its_bounds<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let view = store.snapshot().unwrap();
    assert_eq!(all(&view, A), "abcde");
    assert_eq!(keys(&view, A, within("b", "e")), "bcd");
    assert_eq!(keys(&view, A, within("aa", "cc")), "bc");
    assert_eq!(keys(&view, A, Bounds { start: Some(b"c"), end: None }), "cde");
    assert_eq!(keys(&view, A, Bounds { start: None, end: Some(b"c") }), "ab");
    assert_eq!(keys(&view, A, within("x", "z")), "");
    assert_eq!(all(&view, Keyspace(99)), "", "a keyspace that was never written to is empty");
}

pub fn a_seek_beyond_the_bounds_is_confined_to_them<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, within("b", "e")).unwrap();
    assert!(cursor.current().is_none(), "a new cursor has no position");
    assert!(cursor.seek(Edge::AtOrAfter(b"a")).unwrap());
    assert_eq!(key_of(&cursor), b"b");
    assert!(cursor.seek(Edge::Before(b"z")).unwrap());
    assert_eq!(key_of(&cursor), b"d");
    assert!(cursor.seek(Edge::AtOrAfter(b"bb")).unwrap());
    assert_eq!(key_of(&cursor), b"c");
    assert!(cursor.seek(Edge::Before(b"c")).unwrap());
    assert_eq!(key_of(&cursor), b"b");
    assert!(cursor.seek(Edge::Last).unwrap());
    assert_eq!(key_of(&cursor), b"d");
    assert!(cursor.seek(Edge::First).unwrap());
    assert_eq!(key_of(&cursor), b"b");
    for edge in [Edge::AtOrAfter(b"e"), Edge::AtOrAfter(b"z"), Edge::Before(b"b"), Edge::Before(b"")] {
        assert!(!cursor.seek(edge).unwrap(), "{edge:?}");
        assert!(cursor.current().is_none());
    }
}

pub fn cursors_over_several_ranges_are_at_the_edges_of_each<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let view = store.snapshot().unwrap();
    let ranges =
        [within("a", "c"), within("bb", "bc"), within("c", "z"), within("x", "z"), within("z", "a"), Bounds::ALL];
    for edge in [Edge::First, Edge::Last] {
        let mut opened = Vec::new();
        while let Some(rest) = ranges.get(opened.len()..).filter(|rest| !rest.is_empty()) {
            // `None`: the store does not open several cursors at once, so there is nothing to test.
            let Some(cursors) = view.cursors(A, rest, edge, 1_000).unwrap() else { return };
            assert!(!cursors.is_empty() && cursors.len() <= rest.len());
            opened.extend(cursors);
        }
        for (cursor, bounds) in opened.iter_mut().zip(ranges) {
            let mut alone = view.cursor(A, bounds).unwrap();
            let mut more = alone.seek(edge).unwrap();
            while more {
                assert_eq!(cursor.current(), alone.current(), "{bounds:?}");
                let moved = [&mut alone, &mut *cursor].map(|cursor| match edge {
                    Edge::First => cursor.step_forward().unwrap(),
                    _ => cursor.step_back().unwrap(),
                });
                assert_eq!(moved[0], moved[1], "{bounds:?}");
                more = moved[0];
            }
            assert_eq!(cursor.current(), None, "{bounds:?}");
        }
    }
}

fn scanned(view: &impl View, bounds: Bounds<'_>) -> Entries {
    let mut found = Entries::new();
    let visit = |key: &[u8], value: &[u8]| {
        found.push((key.into(), value.into()));
        ControlFlow::<()>::Continue(())
    };
    view.scan(A, bounds, visit).unwrap();
    found
}

pub fn a_read_ahead_has_what_a_scan_has<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let many: Vec<(String, String)> = (0..1_500).map(|n| (format!("m{n:04}"), n.to_string())).collect();
    put(&store, A, &many.iter().map(|(key, value)| (&**key, &**value)).collect::<Vec<_>>());
    put(&store, A, &LETTERS);
    let view = store.snapshot().unwrap();
    let mut own = begin(&store);
    own.put(A, b"b", b"own").unwrap();
    let mut elsewhere = begin(&store);
    elsewhere.put(B, b"b", b"own").unwrap();
    let is_remote = view.round_trips().is_some();
    for bounds in [within("b", "e"), within("x", "z"), within("z", "a"), Bounds::ALL] {
        assert!(own.view().scan_ahead(A, bounds).unwrap().is_none(), "beside own writes");
        let ahead = [view.scan_ahead(A, bounds).unwrap(), elsewhere.view().scan_ahead(A, bounds).unwrap()];
        put(&store, A, &[("c", "later")]);
        let expected = [scanned(&view, bounds), scanned(&elsewhere.view(), bounds)];
        for (ahead, expected) in ahead.into_iter().zip(expected) {
            assert_eq!(ahead.is_some(), is_remote, "{bounds:?}");
            if let Some(ahead) = ahead {
                assert!(ahead.wait().unwrap() == expected, "{bounds:?}");
            }
        }
    }
}

pub fn a_step_in_the_other_direction_returns_the_adjacent_key<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::AtOrAfter(b"c")).unwrap());
    for (forward, expected) in [(true, b"d"), (false, b"c"), (false, b"b"), (true, b"c"), (true, b"d"), (true, b"e")] {
        assert!(if forward { cursor.step_forward() } else { cursor.step_back() }.unwrap());
        assert_eq!(key_of(&cursor), expected);
    }
    assert!(cursor.seek(Edge::Before(b"c")).unwrap() && cursor.step_forward().unwrap());
    assert_eq!(cursor.current().unwrap(), (&b"c"[..], &b"3"[..]));
}

pub fn a_cursor_beyond_an_end_is_positioned_only_by_a_seek<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, within("b", "d")).unwrap();
    assert!(!cursor.step_forward().unwrap() && !cursor.step_back().unwrap(), "it was never positioned");
    for (edge, back) in [(Edge::Last, false), (Edge::First, true)] {
        assert!(cursor.seek(edge).unwrap());
        assert!(!if back { cursor.step_back() } else { cursor.step_forward() }.unwrap());
        assert!(cursor.current().is_none());
        assert!(!cursor.step_back().unwrap() && !cursor.step_forward().unwrap());
        assert!(cursor.current().is_none());
    }
    assert!(cursor.seek(Edge::First).unwrap());
    assert_eq!(key_of(&cursor), b"b");
}

pub fn bounds_of_0xff_bytes_are_exact<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let keys: [&[u8]; 6] = [b"", b"\0", b"\xfe\xff", b"\xff", b"\xff\xff", b"\xff\xff\xff"];
    let mut transaction = begin(&store);
    for key in keys {
        transaction.put(A, key, key).unwrap();
        transaction.put(Keyspace(u32::MAX), key, b"the greatest keyspace").unwrap();
        transaction.put(Keyspace(0), key, b"the smallest").unwrap();
    }
    commit(transaction);
    let view = store.snapshot().unwrap();
    for keyspace in [Keyspace(0), A, Keyspace(u32::MAX)] {
        let found = |start, end| {
            let entries = super::tools::scan(&view, keyspace, Bounds { start, end });
            entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(found(None, None), keys);
        assert_eq!(found(Some(b"\xff"), None), keys[3..]);
        assert_eq!(found(Some(b"\xff\xff\xff\xff"), None), keys[6..]);
        assert_eq!(found(Some(b"\xff"), Some(b"\xff\xff")), keys[3..4]);
        assert_eq!(found(None, Some(b"\xff")), keys[..3]);
        assert_eq!(found(Some(b""), Some(b"\0")), keys[..1]);
        let mut cursor = view.cursor(keyspace, Bounds::ALL).unwrap();
        assert!(cursor.seek(Edge::Before(b"\xff\xff\xff\xff")).unwrap());
        assert_eq!(key_of(&cursor), keys[5]);
        assert!(cursor.seek(Edge::AtOrAfter(b"")).unwrap());
        assert_eq!(key_of(&cursor), b"");
    }
}

pub fn empty_and_inverted_bounds_contain_nothing<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let check = |view: &dyn Fn(Bounds<'_>) -> bool| {
        for bounds in [within("b", "b"), within("d", "b"), Bounds { start: None, end: Some(b"") }] {
            assert!(view(bounds), "{bounds:?}");
        }
    };
    fn holds_nothing<V: View>(view: &V, bounds: Bounds<'_>) -> bool {
        let mut cursor = view.cursor(A, bounds).unwrap();
        [Edge::First, Edge::Last, Edge::AtOrAfter(b"c"), Edge::Before(b"c")]
            .into_iter()
            .all(|edge| !cursor.seek(edge).unwrap() && cursor.current().is_none())
    }
    let snapshot = store.snapshot().unwrap();
    check(&|bounds| holds_nothing(&snapshot, bounds));
    let mut transaction = begin(&store);
    transaction.put(A, b"c", b"again").unwrap();
    check(&|bounds| holds_nothing(&transaction.view(), bounds));
    transaction.delete_each(A, within("d", "b"));
    transaction.delete_each(A, within("b", "b"));
    assert_eq!(all(&transaction.view(), A), "abcde", "an empty range deletes nothing");
}

pub fn two_cursors_of_a_transaction_are_independent<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let mut transaction = begin(&store);
    transaction.put(A, b"f", b"6").unwrap();
    let view = transaction.view();
    let (mut one, mut other) =
        (view.cursor(A, Bounds::ALL).unwrap(), view.clone().cursor(A, within("b", "d")).unwrap());
    assert!(one.seek(Edge::Last).unwrap() && other.seek(Edge::First).unwrap());
    assert!(one.step_back().unwrap() && other.step_forward().unwrap());
    assert_eq!((key_of(&one), key_of(&other)), (&b"e"[..], &b"c"[..]));
}

pub fn a_cursor_of_a_snapshot_can_be_sent_to_another_thread<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &LETTERS);
    let mut cursor = store.snapshot().unwrap().cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::AtOrAfter(b"c")).unwrap());
    let moved = thread::spawn(move || {
        assert_eq!(key_of(&cursor), b"c", "the move to another thread keeps the position");
        assert!(cursor.step_forward().unwrap());
        cursor
    });
    assert_eq!(key_of(&moved.join().unwrap()), b"d");
}
