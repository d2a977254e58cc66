//! Placeholder; see the contract.
