//! What the gateway promises about schemas.

use super::*;
use crate::json::Pointer;
use serde_json::{Value, json};

fn schema(schema: Value) -> CompiledSchema {
    CompiledSchema::compile(&schema).unwrap()
}

fn lines(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(Violation::to_string).collect()
}

fn all(s: &Value, value: &Value) -> Vec<String> {
    lines(&schema(s.clone()).violations(value))
}

fn left(s: &Value, value: &Value, pending: &[&str]) -> Vec<String> {
    let pending: Vec<_> = pending.iter().map(|text| Pointer::parse(text).unwrap()).collect();
    lines(&schema(s.clone()).violations_pending(value, &pending))
}

fn vpc() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["account_id", "cidr"],
        "properties": {
            "account_id": {"type": "string", "minLength": 12, "maxLength": 12},
            "cidr": {"type": "string", "minLength": 9},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}}
        }
    })
}

#[test]
fn every_fault_is_listed_with_its_place() {
    assert_eq!(
        all(&vpc(), &json!({"cidr": "short", "x/y": 1, "z": 2, "tags": {"a": 1, "b": [2]}})),
        [
            "/account_id: is required",
            "/cidr: must have at least 9 characters",
            "/tags/a: must be a string, but is 1",
            "/tags/b: must be a string, but is an array",
            "/x~1y: is not a known field",
            "/z: is not a known field",
        ]
    );
    assert_eq!(
        all(&vpc(), &json!([])),
        [": must be an object, but is an array"].map(|s| s.trim_start_matches(": "))
    );
}

#[test]
fn an_integer_is_what_fits_sixty_four_bits() {
    let count = json!({"properties": {"n": {"type": "integer"}, "m": {"type": ["integer", "null"]},
        "list": {"type": "array", "items": {"type": "integer"}}}});
    for ok in [json!(42), json!(42.0), json!(-1), json!(u64::MAX), json!(i64::MIN), json!(9.2e18)] {
        assert!(all(&count, &json!({"n": ok, "m": ok, "list": [ok]})).is_empty(), "{ok}");
    }
    for bad in [json!(42.5), json!(1e300), json!(18_446_744_073_709_551_616.0), json!(-1e19), json!("1")] {
        assert_eq!(all(&count, &json!({"n": bad, "m": bad, "list": [bad]})).len(), 3, "{bad}");
    }
    assert_eq!(
        all(&count, &json!({"n": 42.5})),
        ["/n: must be an integer, but is 42.5 (it has a fraction or does not fit 64 bits)"]
    );
}

#[test]
fn messages_never_carry_a_large_value() {
    let long = "x".repeat(1_000_000);
    for s in [
        json!({"enum": [1]}),
        json!({"const": 1}),
        json!({"type": "number"}),
        json!({"pattern": "^a"}),
        json!({"not": {}}),
        json!({"maxLength": 3}),
        json!({"anyOf": [{"type": "number"}, {"const": 2}]}),
        json!(false),
        json!({"contentEncoding": "base64", "pattern": "^$"}),
    ] {
        for violation in schema(s.clone()).violations(&json!(long)) {
            assert!(violation.message.len() < 600, "{s}: {}", violation.message.len());
        }
        assert!(!schema(s).violations(&json!(long)).is_empty());
    }
}

#[test]
fn a_pending_field_may_be_missing_or_wrong_but_its_neighbours_may_not() {
    assert!(left(&vpc(), &json!({"cidr": "10.0.0.0/16"}), &["/account_id"]).is_empty());
    assert!(left(&vpc(), &json!({"cidr": "10.0.0.0/16", "account_id": 7}), &["/account_id"]).is_empty());
    assert_eq!(left(&vpc(), &json!({}), &["/account_id"]), ["/cidr: is required"]);
    assert_eq!(
        left(&vpc(), &json!({"cidr": "10.0.0.0/16", "typo": 1}), &["/account_id"]),
        ["/typo: is not a known field"]
    );
    assert_eq!(left(&vpc(), &json!({"cidr": "10.0.0.0/16"}), &["/tags/a"]), ["/account_id: is required"]);
    assert!(left(&vpc(), &json!(null), &["/account_id", "/cidr"]).is_empty());
    // Where nothing is pending the check is the full one.
    assert_eq!(left(&vpc(), &json!({"cidr": "10.0.0.0/16"}), &[]), ["/account_id: is required"]);
}

#[test]
fn a_pending_field_deep_inside_asks_for_its_neighbours_there() {
    let s = json!({"type": "object", "required": ["net"], "properties": {"net": {
        "type": "object", "required": ["id", "zone"], "additionalProperties": false,
        "properties": {"id": {"type": "string", "minLength": 3}, "zone": {"type": "string"}}}}});
    assert_eq!(left(&s, &json!({}), &["/net/id"]), ["/net/zone: is required"]);
    assert!(left(&s, &json!({}), &["/net/id", "/net/zone"]).is_empty());
    assert!(left(&s, &json!({}), &["/net"]).is_empty());
    // Also where the container could be left out, since the flow will make it.
    let optional = json!({"properties": s["properties"].clone()});
    assert_eq!(left(&optional, &json!({}), &["/net/id"]), ["/net/zone: is required"]);
    assert!(left(&s, &json!({"net": {"zone": "a", "id": ""}}), &["/net/id"]).is_empty());
    assert_eq!(left(&s, &json!({"net": "text"}), &["/net/id"]), ["/net: must be an object, but is \"text\""]);
    let list = json!({"properties": {"l": {"type": "array", "items": {"required": ["id"], "properties": {"n": {"type": "number"}}}}}});
    assert!(left(&list, &json!({"l": [{}]}), &["/l/0/id"]).is_empty());
    assert_eq!(left(&list, &json!({"l": [{}, {"n": ""}]}), &["/l/0/id"]).len(), 2);
}

#[test]
fn alternatives_are_judged_by_whether_the_pending_value_can_choose_one() {
    let s = json!({"oneOf": [
        {"required": ["vpc_id"], "properties": {"vpc_id": {"type": "string"}, "n": {"type": "number"}}},
        {"required": ["other"]}]});
    assert!(left(&s, &json!({}), &["/vpc_id"]).is_empty());
    assert_eq!(left(&s, &json!({"n": "x"}), &["/vpc_id"]).len(), 1);
    assert_eq!(left(&s, &json!({}), &["/unrelated"]).len(), 1);

    let conditional = json!({"if": {"properties": {"mode": {"const": "a"}}}, "then": {"required": ["x"]}});
    assert!(left(&conditional, &json!({}), &["/mode"]).is_empty());
    assert_eq!(all(&conditional, &json!({})), ["/x: is required"]);

    let whole = json!({"minProperties": 2, "not": {"maxProperties": 1}, "enum": [{"a": 1, "b": 2}]});
    assert!(left(&whole, &json!({"a": 1}), &["/b"]).is_empty());
    let unevaluated = json!({"allOf": [{"required": ["a"], "properties": {"a": true, "b": true}}],
        "unevaluatedProperties": false});
    assert!(left(&unevaluated, &json!({"b": 1}), &["/a"]).is_empty());
}

#[test]
fn references_work_inside_a_schema_and_lead_nowhere_outside() {
    let tree = json!({"$defs": {"node": {"type": "object", "properties":
        {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}}, "$ref": "#/$defs/node"});
    assert_eq!(
        all(&tree, &json!({"next": {"next": {"n": 1e300}}})),
        ["/next/next/n: must be an integer, but is 1e+300 (it has a fraction or does not fit 64 bits)"]
    );
    assert!(all(&json!({"$ref": "#"}), &json!(1)).is_empty());
    for outside in
        ["#/components/schemas/Team", "https://example.com/s.json", "other.json", "file:///etc/passwd"]
    {
        let s = json!({"properties": {"a": {"items": {"$ref": outside}}}});
        let error = CompiledSchema::try_compile(&s).unwrap_err();
        assert!(matches!(error, SchemaError::UnresolvableRef(_)), "{outside}: {error:?}");
    }
}

#[test]
fn a_schema_that_is_none_is_refused_with_every_fault() {
    let error =
        CompiledSchema::try_compile(&json!({"type": "strnig", "properties": {"a": {"minLength": -1}}}));
    match error {
        Err(SchemaError::Invalid(violations)) => {
            let places: Vec<_> = violations.iter().map(|v| v.pointer.as_str()).collect();
            assert!(places.contains(&"/type") && places.contains(&"/properties/a/minLength"), "{places:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(CompiledSchema::compile(&json!({"pattern": "("})).is_err());
    assert!(CompiledSchema::compile(&json!(1)).is_err());
    let other = json!({"$schema": "http://json-schema.org/draft-07/schema#"});
    assert!(matches!(CompiledSchema::try_compile(&other), Err(SchemaError::OtherDraft(_))));
    assert!(
        CompiledSchema::compile(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema"})).is_ok()
    );
}

#[test]
fn schemas_are_bounded() {
    let deep = (0..70).fold(json!({}), |inner, _| json!({"items": inner}));
    assert_eq!(CompiledSchema::try_compile(&deep).unwrap_err(), SchemaError::TooLarge);
    let wide: serde_json::Map<_, _> = (0..NODES_MAX).map(|n| (n.to_string(), json!(true))).collect();
    assert_eq!(CompiledSchema::try_compile(&json!({"properties": wide})).unwrap_err(), SchemaError::TooLarge);
}

#[test]
fn reports_are_bounded_and_curable_faults_never_hide_one_that_remains() {
    let s =
        json!({"properties": {"l": {"type": "array", "items": {"type": "string"}}, "z": {"type": "string"}}});
    let value = json!({"l": vec![1; 5000], "z": 1});
    assert_eq!(all(&s, &value).len(), VIOLATIONS_MAX);
    assert_eq!(left(&s, &value, &["/l"]), ["/z: must be a string, but is 1"]);
}

#[test]
fn compiled_schemas_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<CompiledSchema>();
}
