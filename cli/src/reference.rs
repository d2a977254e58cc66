//! What a word on the command line names: a type, a resource, a kind version.
//!
//! The type words (`kind`, `providerconfig`, …) are reserved as kind names, so `vpc/prod` and `kind/vpc`
//! can never be confused. A reference splits at its first slash, because names may hold slashes.

use converge_domain::ResourceRef;

/// What `get`, `list` and `describe` are pointed at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Resources, of one kind or of all.
    Resources { kind: Option<String> },
    /// One resource.
    Resource(ResourceRef),
    /// Kinds, all or the versions of one.
    Kinds { kind: Option<String>, version: Option<u16> },
    /// Provider configs, all or one by name.
    ProviderConfigs { name: Option<String> },
}

/// Reads `KIND/NAME`.
///
/// # Errors
/// When there is no slash, or nothing on one side of it.
pub fn resource(word: &str) -> Result<ResourceRef, String> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(ResourceRef::new(kind, name)),
        _ => Err(format!("`{word}` is not a reference; write KIND/NAME, as in vpc/payments-prod")),
    }
}

/// Reads `TYPE`, `TYPE/NAME` or `KIND/NAME`.
///
/// # Errors
/// For a reference with an empty side and for types this client cannot show.
pub fn target(word: &str) -> Result<Target, String> {
    let (head, name) = match word.split_once('/') {
        Some(("", _) | (_, "")) => {
            return Err(format!("`{word}` is not a reference; write TYPE or KIND/NAME"));
        }
        Some((head, name)) => (head, Some(name)),
        None => (word, None),
    };
    match head {
        "" => Err("a type is needed, such as `vpc`, `kind` or `resource`".to_owned()),
        "resource" => match name {
            None => Ok(Target::Resources { kind: None }),
            Some(reference) => resource(reference).map(Target::Resource),
        },
        "kind" | "manifest" | "crd" => {
            let (kind, version) = name.map_or((None, Ok(None)), kind_and_version);
            Ok(Target::Kinds { kind, version: version? })
        }
        "providerconfig" => Ok(Target::ProviderConfigs { name: name.map(str::to_owned) }),
        "reactorbinding" => Err("reactor bindings cannot be listed yet".to_owned()),
        kind => Ok(match name {
            None => Target::Resources { kind: Some(kind.to_owned()) },
            Some(name) => Target::Resource(ResourceRef::new(kind, name)),
        }),
    }
}

/// `vpc` or `vpc/v1`.
fn kind_and_version(word: &str) -> (Option<String>, Result<Option<u16>, String>) {
    match word.split_once('/') {
        None => (Some(word.to_owned()), Ok(None)),
        Some((kind, version)) => {
            let number = version.strip_prefix('v').unwrap_or(version).parse();
            let number = number.map(Some).map_err(|_| format!("`{version}` is not a kind version; write v1"));
            (Some(kind.to_owned()), number)
        }
    }
}

/// Reads `k=v`, the form of `-l`.
///
/// # Errors
/// When there is no `=` or no key.
pub fn label(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{word}` is not a label; write key=value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_splits_at_its_first_slash() {
        assert_eq!(resource("route/a/fd-00/t-1"), Ok(ResourceRef::new("route", "a/fd-00/t-1")));
        for nonsense in ["vpc", "/x", "vpc/", ""] {
            assert!(resource(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn type_words_are_told_from_kinds() {
        assert_eq!(target("vpc"), Ok(Target::Resources { kind: Some("vpc".into()) }));
        assert_eq!(target("resource"), Ok(Target::Resources { kind: None }));
        assert_eq!(target("vpc/a/b"), Ok(Target::Resource(ResourceRef::new("vpc", "a/b"))));
        assert_eq!(target("resource/vpc/a"), Ok(Target::Resource(ResourceRef::new("vpc", "a"))));
        assert_eq!(target("kind"), Ok(Target::Kinds { kind: None, version: None }));
        assert_eq!(target("crd/vpc"), Ok(Target::Kinds { kind: Some("vpc".into()), version: None }));
        assert_eq!(target("kind/vpc/v2"), Ok(Target::Kinds { kind: Some("vpc".into()), version: Some(2) }));
        assert_eq!(target("providerconfig/d"), Ok(Target::ProviderConfigs { name: Some("d".into()) }));
        for nonsense in ["", "vpc/", "/a", "kind/vpc/latest", "reactorbinding", "resource/vpc"] {
            assert!(target(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_label_may_be_empty_but_its_key_may_not() {
        assert_eq!(label("team=a=b"), Ok(("team".into(), "a=b".into())));
        assert_eq!(label("env="), Ok(("env".into(), String::new())));
        assert!(label("team").is_err() && label("=x").is_err());
    }
}
