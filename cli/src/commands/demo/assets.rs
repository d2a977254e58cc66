//! The landing zone's documents, inside the program, so that the demo works wherever it is started.

use crate::documents::{self, Document, DocumentError};

const KINDS: [(&str, &str); 5] = [
    ("account.kind.json", include_str!("../../../../examples/landing-zone/kinds/account.kind.json")),
    ("vpc.kind.json", include_str!("../../../../examples/landing-zone/kinds/vpc.kind.json")),
    ("tgw.kind.json", include_str!("../../../../examples/landing-zone/kinds/tgw.kind.json")),
    ("route.kind.json", include_str!("../../../../examples/landing-zone/kinds/route.kind.json")),
    ("classicbom.kind.json", include_str!("../../../../examples/landing-zone/kinds/classicbom.kind.json")),
];
const BOM: &str = include_str!("../../../../examples/landing-zone/bom.json");

/// The five kinds.
///
/// # Errors
/// Never: a test reads them.
pub fn kinds() -> Result<Vec<Document>, DocumentError> {
    let mut kinds = Vec::new();
    for (name, text) in KINDS {
        kinds.extend(documents::from_text(text, name)?);
    }
    Ok(kinds)
}

/// The bill of materials of 58 functional domains.
///
/// # Errors
/// Never: a test reads it.
pub fn bom() -> Result<Vec<Document>, DocumentError> {
    documents::from_text(BOM, "the demo's BOM")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_has_five_kinds_and_one_root() {
        assert_eq!(kinds().unwrap().len(), 5);
        let bom = bom().unwrap();
        assert_eq!(bom.len(), 1);
        assert_eq!(bom[0].head.kind.as_deref(), Some("classicbom"));
    }
}
