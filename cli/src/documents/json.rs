//! JSON documents: the text is checked and kept, never printed anew.

use super::strict;
use serde_json::value::RawValue;

/// The documents of a JSON text: one, or several after one another.
///
/// # Errors
/// For what is not JSON, what is not an object, and for a key that is there twice: the server's transport
/// would silently keep the last one, so it cannot be left to the server.
pub fn documents(text: &str) -> Result<Vec<Box<RawValue>>, String> {
    let mut documents = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>() {
        let document = document.map_err(|error| error.to_string())?;
        let mut reader = serde_json::Deserializer::from_str(document.get());
        let tree = strict::read(&mut reader).map_err(|error| error.to_string())?;
        if !matches!(tree, strict::Tree::Map(_)) {
            return Err("a document must be an object".to_owned());
        }
        documents.push(document);
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_json_document_is_kept_as_written() {
        let text = r#"{"spec": {"a": 1.10, "big": 18446744073709551615, "e": 1E2}} {"b":null}"#;
        let texts: Vec<String> = documents(text).unwrap().iter().map(|raw| raw.get().to_owned()).collect();
        assert_eq!(
            texts,
            [r#"{"spec": {"a": 1.10, "big": 18446744073709551615, "e": 1E2}}"#, r#"{"b":null}"#]
        );
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_with_its_place() {
        let error = documents(r#"{"spec": {"x/y": [{"a": 1, "a": 2}]}}"#).unwrap_err();
        assert!(error.starts_with("the key `a` is there twice at /spec/x~1y/0"), "{error}");
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for nonsense in ["[]", "1", "{", "{} x"] {
            assert!(documents(nonsense).is_err(), "{nonsense}");
        }
    }
}
