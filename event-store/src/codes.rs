//! The small integers that stand for enums in the inline tables.
//!
//! They are spelled out, not derived from declaration order: `append` compares against them in SQL, and
//! reordering an enum must not change what a stored row means.

use crate::rows::ChildMark;
use converge_domain::resource::{Phase, Standing};

/// The code of a phase in `head.phase`.
pub const fn phase_code(phase: Phase) -> i16 {
    match phase {
        Phase::Deleting => 0,
        Phase::Quarantined => 1,
        Phase::Failed => 2,
        Phase::Orphaned => 3,
        Phase::Degraded => 4,
        Phase::Ready => 5,
        Phase::Reconciling => 6,
    }
}

/// The code of a standing in `head.standing` and `head.subtree`; a higher code is less settled.
pub const fn standing_code(standing: Standing) -> i16 {
    match standing {
        Standing::LeftOut => 0,
        Standing::AllReady => 1,
        Standing::Impaired => 2,
        Standing::Open => 3,
    }
}

/// The code of a child row's mark in `child.mark`.
pub const fn mark_code(mark: ChildMark) -> i16 {
    match mark {
        ChildMark::Open => 1,
        ChildMark::Impaired => 2,
        ChildMark::Dropped => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_less_settled_standing_has_a_higher_code() {
        let standings = [Standing::LeftOut, Standing::AllReady, Standing::Impaired, Standing::Open];
        assert!(standings.windows(2).all(|pair| standing_code(pair[0]) < standing_code(pair[1])));
        assert!(standings.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn the_codes_that_sql_spells_out_are_these() {
        assert_eq!((phase_code(Phase::Deleting), phase_code(Phase::Ready)), (0, 5));
        assert_eq!((mark_code(ChildMark::Open), mark_code(ChildMark::Impaired)), (1, 2));
    }
}
