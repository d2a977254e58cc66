//! What no dependency may switch on for the whole build.

/// `serde_json/arbitrary_precision` changes how every crate's numbers are read and written, ours and others'.
#[test]
fn no_dependency_switches_on_arbitrary_precision() {
    let number: serde_json::Value = serde_json::from_str("1.10").expect("a number");
    assert_eq!(number.to_string(), "1.1");
}
