//! Equality of JSON values: the rule behind every "unchanged".

use serde_json::{Number, Value};

/// Whether two values denote the same thing.
///
/// Numbers are equal by value whatever their notation (`42` and `42.0`), exactly also where doubles no longer
/// tell integers apart; objects are equal without key order, arrays with it. `{}`, `[]`, `null`, `""` and an
/// absent key are all different.
pub fn equal(a: &Value, b: &Value) -> bool {
    // An explicit stack: the verdict must not depend on how much call stack is left.
    let mut pending = vec![(a, b)];
    while let Some(pair) = pending.pop() {
        match pair {
            (Value::Number(a), Value::Number(b)) => {
                if !numbers_equal(a, b) {
                    return false;
                }
            }
            (Value::Array(a), Value::Array(b)) => {
                if a.len() != b.len() {
                    return false;
                }
                pending.extend(a.iter().zip(b));
            }
            (Value::Object(a), Value::Object(b)) => {
                // Same size and every key of one found in the other: the key sets are the same.
                if a.len() != b.len() {
                    return false;
                }
                for (key, value) in a {
                    match b.get(key) {
                        Some(other) => pending.push((value, other)),
                        None => return false,
                    }
                }
            }
            (a, b) => {
                if a != b {
                    return false;
                }
            }
        }
    }
    true
}

fn numbers_equal(a: &Number, b: &Number) -> bool {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a == b,
        // Every integer a double can denote in 64-bit range was caught above, so two doubles remain.
        (None, None) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

/// The number as an exact integer, if it is one within ±2⁶⁵ (a little more than 64-bit integers reach).
fn integer(number: &Number) -> Option<i128> {
    const BOUND: f64 = 36_893_488_147_419_103_232.0;
    if let Some(value) = number.as_u64() {
        return Some(i128::from(value));
    }
    if let Some(value) = number.as_i64() {
        return Some(i128::from(value));
    }
    let value = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "integral and within ±2^65: the cast is exact")]
    (value.fract() == 0.0 && value.abs() < BOUND).then_some(value as i128)
}

#[cfg(test)]
mod tests {
    use super::equal;
    use crate::json::arbitrary::json;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn numbers_are_equal_by_value_whatever_their_notation() {
        assert!(equal(&json!(42), &json!(42.0)));
        assert!(equal(&json!(0), &json!(-0.0)));
        assert!(equal(&json!(9_007_199_254_740_992_u64), &json!(9_007_199_254_740_992.0)));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
        assert!(!equal(&json!(u64::MAX), &json!(18_446_744_073_709_551_616.0)));
        assert!(equal(&json!(i64::MIN), &json!(-9_223_372_036_854_775_808.0)));
        assert!(!equal(&json!(i64::MIN + 1), &json!(-9_223_372_036_854_775_808.0)));
        assert!(equal(&json!(1e300), &json!(1e300)));
        assert!(!equal(&json!(42), &json!(42.5)));
    }

    #[test]
    fn empty_things_are_all_different() {
        let things =
            [json!({}), json!([]), json!(null), json!(""), json!(0), json!(false), json!({"a": null})];
        for (i, a) in things.iter().enumerate() {
            for (j, b) in things.iter().enumerate() {
                assert_eq!(equal(a, b), i == j, "{a} {b}");
            }
        }
    }

    #[test]
    fn objects_compare_without_key_order_and_arrays_with_it() {
        assert!(equal(&json!({"a": 1, "b": [1, 2]}), &json!({"b": [1.0, 2], "a": 1})));
        assert!(!equal(&json!([1, 2]), &json!([2, 1])));
        assert!(!equal(&json!([1]), &json!([1, 1])));
        assert!(!equal(&json!({"a": 1}), &json!({"b": 1})));
    }

    proptest! {
        #[test]
        fn equality_is_an_equivalence(a in json(), b in json(), c in json()) {
            prop_assert!(equal(&a, &a));
            prop_assert_eq!(equal(&a, &b), equal(&b, &a));
            if equal(&a, &b) && equal(&b, &c) {
                prop_assert!(equal(&a, &c));
            }
        }

        #[test]
        fn a_value_written_and_read_again_is_equal(a in json()) {
            let read = crate::json::faithful::parse(&a.to_string());
            prop_assert!(equal(&a, &read.unwrap()));
        }
    }
}
