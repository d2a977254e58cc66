//! Tables in kubectl's manner: upper-case headers, no borders, three spaces between columns.

use comfy_table::{ColumnConstraint, Table, Width, presets};

/// Blanks between columns.
const GAP: u16 = 3;

/// Columns whose widths later rows keep, so that pages and live rows stay in line with the first page.
#[derive(Debug)]
pub struct Columns {
    header: Vec<String>,
    widths: Vec<u16>,
    headed: bool,
}

impl Columns {
    /// Columns under these headers.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let header: Vec<String> = header.into_iter().map(Into::into).collect();
        let widths = vec![0; header.len()];
        Self { header, widths, headed: false }
    }

    /// The lines of `rows`, under the headers the first time.
    pub fn lines(&mut self, rows: Vec<Vec<String>>) -> Vec<String> {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        if !self.headed {
            table.set_header(self.header.iter().map(|word| word.to_uppercase()));
            self.headed = true;
        }
        for row in rows {
            table.add_row(row.into_iter().map(|cell| one_line(&cell)));
        }
        let content = table.column_max_content_widths();
        for (index, (width, content)) in self.widths.iter_mut().zip(content).enumerate() {
            *width = content.saturating_add(GAP).max(*width);
            if let Some(column) = table.column_mut(index) {
                column
                    .set_padding((0, GAP))
                    .set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(*width)));
            }
        }
        // Trailing blanks are noise in a terminal and in diffs alike.
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// A table in one go.
pub fn render(header: &[&str], rows: Vec<Vec<String>>) -> String {
    Columns::new(header.iter().copied()).lines(rows).join("\n")
}

/// A cell never breaks its row.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn a_table_has_upper_case_headers_and_no_borders() {
        let table = render(&["name", "phase"], vec![row(&["payments-prod", "Ready"]), row(&["b", "a\nb"])]);
        expect![[r#"
            NAME            PHASE
            payments-prod   Ready
            b               a b"#]]
        .assert_eq(&table);
    }

    #[test]
    fn later_rows_stay_in_line_and_have_no_header() {
        let mut columns = Columns::new(["name", "phase"]);
        columns.lines(vec![row(&["payments-prod", "Ready"])]);
        expect!["b               Failed"].assert_eq(&columns.lines(vec![row(&["b", "Failed"])]).join("\n"));
    }
}
