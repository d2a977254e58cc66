//! One request holds so much and no more; larger sets go in several, each of them all or nothing.

use super::{Document, DocumentError};

/// The server's limits on one apply.
pub const REQUEST_DOCUMENTS_MAX: usize = 1_000;
/// See [`REQUEST_DOCUMENTS_MAX`].
pub const REQUEST_BYTES_MAX: usize = 32 << 20;

/// Cuts `documents` into runs that each fit into one request, keeping their order.
///
/// # Errors
/// When one document alone is too large for a request.
pub fn split(documents: Vec<Document>) -> Result<Vec<Vec<Document>>, DocumentError> {
    cut(documents, REQUEST_DOCUMENTS_MAX, REQUEST_BYTES_MAX)
}

fn cut(
    documents: Vec<Document>,
    documents_max: usize,
    bytes_max: usize,
) -> Result<Vec<Vec<Document>>, DocumentError> {
    let mut runs: Vec<Vec<Document>> = Vec::new();
    let mut bytes = 0;
    for document in documents {
        let size = document.json.get().len();
        if size > bytes_max {
            return Err(DocumentError::DocumentTooLarge { origin: document.origin, bytes: size });
        }
        match runs.last_mut() {
            Some(run) if run.len() < documents_max && bytes + size <= bytes_max => {
                bytes += size;
                run.push(document);
            }
            _ => {
                bytes = size;
                runs.push(vec![document]);
            }
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::super::load::from_text;
    use super::*;

    fn documents(count: usize) -> Vec<Document> {
        (0..count).flat_map(|index| from_text(&format!(r#"{{"name":"{index:03}"}}"#), "t").unwrap()).collect()
    }

    fn lengths(runs: &[Vec<Document>]) -> Vec<usize> {
        runs.iter().map(Vec::len).collect()
    }

    #[test]
    fn a_set_within_the_limits_is_one_request() {
        assert_eq!(lengths(&split(documents(1_000)).unwrap()), [1_000]);
        assert_eq!(lengths(&split(documents(2_001)).unwrap()), [1_000, 1_000, 1]);
    }

    #[test]
    fn a_request_never_exceeds_its_bytes() {
        // Each of these documents is 14 bytes long.
        assert_eq!(lengths(&cut(documents(5), 100, 28).unwrap()), [2, 2, 1]);
        assert!(matches!(cut(documents(1), 100, 13), Err(DocumentError::DocumentTooLarge { bytes: 14, .. })));
    }
}
