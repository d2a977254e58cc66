//! The rules for names, kinds, versions and labels. Each check answers with the rule that was broken.

use super::fields::clip;

/// Longest name of a resource, config or binding, and of a label's key or value; in bytes.
pub const NAME_LENGTH_MAX: usize = 253;
/// Longest name of a kind, in bytes.
pub const KIND_LENGTH_MAX: usize = 63;
/// Highest version of a kind.
pub const KIND_VERSION_MAX: u16 = 32767;
/// Most labels on one resource.
pub const LABELS_MAX: usize = 64;
/// Labels under this prefix belong to the system; users and composers may not set them.
pub const RESERVED_LABEL_PREFIX: &str = "converge.sh/";
/// The words that say what a document is; none may name a kind.
pub const TYPE_WORDS: [&str; 6] = ["kind", "manifest", "crd", "providerconfig", "reactorbinding", "resource"];

/// Checks the name of a resource, provider config or binding.
///
/// # Errors
/// The rule, when the name breaks it.
pub fn check_name(name: &str) -> Result<(), String> {
    let inside = |b: &u8| b.is_ascii_alphanumeric() || b"._:-/".contains(b);
    if name.len() <= NAME_LENGTH_MAX && edged_by_alphanumerics(name) && name.as_bytes().iter().all(inside) {
        return Ok(());
    }
    Err(format!(
        "`{}` is not a name: 1 to {NAME_LENGTH_MAX} of A-Z a-z 0-9 . _ : - and /, starting and ending with a letter or digit",
        clip(name)
    ))
}

/// Checks the name of a kind.
///
/// # Errors
/// The rule, when the name breaks it.
pub fn check_kind(kind: &str) -> Result<(), String> {
    let inside = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    let starts_with_letter = kind.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    let legal = starts_with_letter
        && kind.len() <= KIND_LENGTH_MAX
        && edged_by_alphanumerics(kind)
        && kind.as_bytes().iter().all(inside);
    if legal {
        return Ok(());
    }
    Err(format!(
        "`{}` is not a kind: 1 to {KIND_LENGTH_MAX} of a-z 0-9 and -, starting with a letter and not ending with -",
        clip(kind)
    ))
}

/// Checks the version of a kind.
///
/// # Errors
/// The range, when the number is outside it.
pub fn check_kind_version(version: u64) -> Result<u16, String> {
    u16::try_from(version)
        .ok()
        .filter(|version| (1..=KIND_VERSION_MAX).contains(version))
        .ok_or_else(|| format!("must be between 1 and {KIND_VERSION_MAX}, but is {version}"))
}

/// Checks a label's key as a user may set it.
///
/// # Errors
/// The rule, when the key breaks it.
pub fn check_label_key(key: &str) -> Result<(), String> {
    if key.starts_with(RESERVED_LABEL_PREFIX) {
        return Err(format!("labels under `{RESERVED_LABEL_PREFIX}` are set by the system only"));
    }
    let inside = |b: &u8| b.is_ascii_alphanumeric() || b"._-/".contains(b);
    if key.len() <= NAME_LENGTH_MAX && edged_by_alphanumerics(key) && key.as_bytes().iter().all(inside) {
        return Ok(());
    }
    Err(format!(
        "is not a label key: 1 to {NAME_LENGTH_MAX} of A-Z a-z 0-9 . _ - and /, starting and ending with a letter or digit"
    ))
}

/// Checks a label's value; the empty one is fine.
///
/// # Errors
/// The rule, when the value breaks it.
pub fn check_label_value(value: &str) -> Result<(), String> {
    if value.len() > NAME_LENGTH_MAX || value.chars().any(char::is_control) {
        return Err(format!("a label's value has at most {NAME_LENGTH_MAX} bytes and no control characters"));
    }
    Ok(())
}

fn edged_by_alphanumerics(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(a), Some(b)) if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        for name in ["a", "A.b_c:d-e/f", "0", "demo-region-1/fd-00/team", &"x".repeat(253)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "-a", "a-", "/a", "a b", "é", "a\n", &"x".repeat(254)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn kinds_follow_their_rule() {
        for kind in ["a", "vpc", "a-1", &"k".repeat(63)] {
            assert_eq!(check_kind(kind), Ok(()), "{kind}");
        }
        for kind in ["", "1a", "Vpc", "a_b", "a-", "-a", "a.b", &"k".repeat(64)] {
            assert!(check_kind(kind).is_err(), "{kind}");
        }
        assert_eq!(check_kind_version(32767), Ok(32767));
        assert!(check_kind_version(0).is_err() && check_kind_version(32768).is_err());
        assert!(check_kind_version(65537).is_err());
    }

    #[test]
    fn labels_follow_their_rule() {
        assert!(check_label_key("user/note").is_ok() && check_label_key("team").is_ok());
        assert!(check_label_key("converge.sh/app").is_err() && check_label_key("a b").is_err());
        assert!(check_label_value("").is_ok() && check_label_value("Zürich 1").is_ok());
        assert!(check_label_value("a\nb").is_err() && check_label_value(&"x".repeat(254)).is_err());
    }
}
