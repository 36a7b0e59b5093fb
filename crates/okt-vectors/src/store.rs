//! What every store of vectors does, and what it is given.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use okt_model::{Error, RepositoryId, Result};
use uuid::Uuid;

/// Whose points they are. Nothing here works on points without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub(crate) repository: RepositoryId,
    /// The named database in which the repository lives.
    pub(crate) database: String,
}

impl Tenant {
    pub fn new(repository: RepositoryId, database: impl Into<String>) -> Self {
        Self { repository, database: database.into() }
    }

    pub const fn repository(&self) -> RepositoryId {
        self.repository
    }
}

/// Where the vectors of one model lie; only those of one space can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    pub name: String,
    pub dimensions: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub id: Uuid,
    pub vector: Vec<f32>,
}

/// A point that was found, and the cosine of the angle between it and what was asked for: 1 for the same direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub id: Uuid,
    pub cosine: f32,
}

/// The cosine of the angle between two vectors; 0 where one of them has no direction.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let length = (dot(one, one) * dot(other, other)).sqrt();
    if length > 0.0 { dot(one, other) / length } else { 0.0 }
}

/// Keeps points of tenants. Whatever one tenant asks for, nothing of another one comes back.
///
/// In a space that is not there nothing is found, and nothing can be written. An error that may pass is retryable.
pub trait VectorStore: Send + Sync {
    /// Makes the space, or sees that what is there is as long. Where it is not, it is an error that tells the operator
    /// what to do; with `recreate` the old one is dropped with all its points and made anew. True when that has happened.
    fn prepare<'a>(&'a self, space: &'a Space, recreate: bool) -> BoxFuture<'a, Result<bool>>;

    /// Writes points, in place of those with the same ids. Doing it again changes nothing. Only the direction of a vector
    /// is kept: it comes back with length one. Points go in batches, and an error may leave some of them written.
    fn upsert<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        points: &'a [Point],
    ) -> BoxFuture<'a, Result<()>>;

    /// Removes points; those that are not there are no error.
    fn remove<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<()>>;

    /// For each query the nearest points, best first, at most `limit`, none with a lesser cosine than `at_least`.
    fn nearest<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        queries: &'a [Vec<f32>],
        limit: u32,
        at_least: f32,
    ) -> BoxFuture<'a, Result<Vec<Vec<Near>>>>;

    /// Those of these points that are there, in no order.
    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<Vec<Point>>>;

    /// As [`Self::find`], without the vectors.
    fn existing<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<Vec<Uuid>>>;

    /// The ids of a tenant, a page at a time, in an order of the store's own that stays the same. The next page comes after
    /// the last id of this one, also when that has been removed meanwhile. An empty page is the end.
    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        after: Option<Uuid>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Uuid>>>;

    fn count<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<u64>>;

    /// Sees that a tenant is searched by an index of its own, if it has so many points that the store wants one. May take
    /// minutes; nobody else waits for it.
    fn index<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<()>>;

    /// Removes all points of a tenant in the named database, also when its repository is deleted or lives elsewhere.
    fn delete_tenant<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<()>>;

    /// Removes a space with the points of all tenants.
    fn drop_space<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, Result<()>>;

    /// Whether it answers.
    fn ping(&self) -> BoxFuture<'_, Result<()>>;
}

/// How many numbers go out at once: about a megabyte.
const BATCH: usize = 250_000;

impl Space {
    /// How many of its vectors make a batch.
    pub(crate) fn batch(&self) -> usize {
        (BATCH / usize::try_from(self.dimensions).unwrap_or(BATCH).max(1)).max(1)
    }

    /// The points as they are kept: each id once, of which the last counts; in the order of their ids, so that two who
    /// write the same ones never wait for each other in a circle.
    pub(crate) fn directions(&self, points: &[Point]) -> Result<Vec<Point>> {
        let mut kept = BTreeMap::new();
        for point in points {
            kept.insert(point.id, self.direction(&point.vector)?);
        }
        Ok(kept.into_iter().map(|(id, vector)| Point { id, vector }).collect())
    }

    /// Whether a vector has a direction, without which it can't be kept or compared.
    pub fn has_direction(vector: &[f32]) -> bool {
        vector.iter().all(|number| number.is_finite()) && vector.iter().any(|number| *number != 0.0)
    }

    /// A vector of length one, if it has a direction in this space.
    pub(crate) fn direction(&self, vector: &[f32]) -> Result<Vec<f32>> {
        if u32::try_from(vector.len()) != Ok(self.dimensions) {
            let (name, dimensions) = (&self.name, self.dimensions);
            let reason = format!("has {} dimensions, but vectors of {name} have {dimensions}", vector.len());
            return Err(Error::invalid("vector", reason));
        }
        if !vector.iter().all(|number| number.is_finite()) {
            return Err(Error::invalid("vector", "contains a value that is not a finite number"));
        }
        let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
        if length == 0.0 {
            return Err(Error::invalid("vector", "has no direction: all its values are 0"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "between -1 and 1; the rounding is meant")]
        let scaled = vector.iter().map(|number| (f64::from(*number) / length) as f32);
        Ok(scaled.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space { name: "test".to_owned(), dimensions: 2 }
    }

    #[test]
    fn only_the_direction_of_a_vector_is_kept() {
        assert_eq!(space().direction(&[3.0, 4.0]).unwrap(), [0.6, 0.8]);
        assert_eq!(space().direction(&[f32::MAX, 0.0]).unwrap(), [1.0, 0.0], "nothing overflows");
        assert_eq!(space().direction(&[0.0, f32::MIN_POSITIVE]).unwrap(), [0.0, 1.0], "nor vanishes");
    }

    #[test]
    fn what_has_no_direction_in_the_space_is_refused() {
        let bad: [&[f32]; 6] =
            [&[], &[1.0], &[1.0, 2.0, 3.0], &[0.0, 0.0], &[f32::NAN, 1.0], &[1.0, f32::INFINITY]];
        for vector in bad {
            assert!(matches!(space().direction(vector), Err(Error::Invalid(_))), "{vector:?}");
        }
    }

    #[test]
    fn the_last_of_two_points_with_one_id_counts() {
        let point = |id, vector: [f32; 2]| Point { id: Uuid::from_u128(id), vector: vector.to_vec() };
        let kept = space().directions(&[point(2, [1.0, 0.0]), point(1, [1.0, 0.0]), point(2, [0.0, 1.0])]);
        assert_eq!(kept.unwrap(), [point(1, [1.0, 0.0]), point(2, [0.0, 1.0])]);
    }

    #[test]
    fn a_batch_is_never_empty() {
        assert_eq!(Space { name: String::new(), dimensions: 65_535 }.batch(), 3);
        assert_eq!(Space { name: String::new(), dimensions: u32::MAX }.batch(), 1);
    }
}
