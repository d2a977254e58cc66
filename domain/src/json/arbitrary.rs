//! Random JSON for property tests.

use proptest::prelude::*;
use serde_json::Value;

/// Small values of every type, with keys that need escaping in pointers and few distinct scalars, so that equal
/// pairs do occur.
pub fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i64..4).prop_map(Value::from),
        (0_u8..4).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        "[ab~/\"\\\\日\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Keys, among them the empty one and ones made of pointer syntax.
pub fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ab~/01日-]{1,3}"]
}
