//! The part of the entities that was measured.

/// A sample of entities. All rows of an entity are in it, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled<'a> {
    /// By what counts of the sample are multiplied to get those of all rows.
    pub factor: f64,
    /// The columns that tell entities apart.
    pub entity: &'a [String],
}

impl Default for Sampled<'_> {
    fn default() -> Self {
        Self { factor: 1.0, entity: &[] }
    }
}

impl Sampled<'_> {
    /// By what a count of rows with equal values of `columns` is multiplied: the rows of one entity are all there, those of
    /// several are there as far as the sample has these.
    pub fn beside(&self, columns: &[&str]) -> f64 {
        if self.entity.iter().all(|name| columns.contains(&name.as_str())) { 1.0 } else { self.factor }
    }

    /// By what a share of the sampled rows is multiplied to get that of all rows, where the share is of rows with equal values
    /// of `columns`.
    pub fn share(&self, columns: &[&str]) -> f64 {
        self.beside(columns) / self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_is_whole_and_many_are_a_part() {
        let entity = ["host".to_owned(), "metric".to_owned()];
        let sampled = Sampled { factor: 50.0, entity: &entity };
        assert_eq!([&["host", "metric"][..], &["host"], &[]].map(|columns| sampled.beside(columns)), [1.0, 50.0, 50.0]);
        assert_eq!([&["metric", "host"][..], &["host"]].map(|columns| sampled.share(columns)), [0.02, 1.0]);
        assert_eq!(Sampled::default().beside(&[]), 1.0);
    }
}
