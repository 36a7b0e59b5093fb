use std::sync::Arc;

use okt_model::Error;
use okt_testkit::vectors::{Cloud, cosine};
use okt_vectors::Space;

use crate::vectors::stores::{id, point, stores};

#[tokio::test]
async fn a_point_is_there_until_it_is_removed() {
    for fixture in stores(2).await {
        let (name, store, space, tenant) =
            (fixture.name, &fixture.store, &fixture.space, fixture.tenant().await);
        let points = [point(1, &[1.0, 0.0]), point(2, &[0.0, 1.0]), point(3, &[-3.0, 4.0])];
        for _ in 0..2 {
            fixture.upsert(&tenant, &points).await;
            assert_eq!(store.count(&tenant, space).await.unwrap(), 3, "{name}");
        }
        let mut found = store.find(&tenant, space, &[id(3), id(9), id(1)]).await.unwrap();
        found.sort_by_key(|point| point.id);
        assert_eq!(found, [point(1, &[1.0, 0.0]), point(3, &[-0.6, 0.8])], "{name}");

        // The last of two with one id counts, also within one call.
        fixture.upsert(&tenant, &[point(1, &[0.5, 0.5]), point(1, &[0.0, -2.0])]).await;
        assert_eq!(store.find(&tenant, space, &[id(1)]).await.unwrap(), [point(1, &[0.0, -1.0])], "{name}");
        let nearest = store.nearest(&tenant, space, &[vec![0.0, -1.0]], 1, 0.9).await.unwrap();
        assert_eq!(nearest[0][0].id, id(1), "{name}");

        for _ in 0..2 {
            store.remove(&tenant, space, &[id(1), id(9)]).await.unwrap();
            assert_eq!(fixture.ids(&tenant, 10).await, [id(2), id(3)], "{name}");
            assert_eq!(store.find(&tenant, space, &[id(1)]).await.unwrap(), [], "{name}");
        }
        store.upsert(&tenant, space, &[]).await.unwrap();
        store.remove(&tenant, space, &[]).await.unwrap();
        assert_eq!(store.find(&tenant, space, &[]).await.unwrap(), [], "{name}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn pages_hold_every_id_once_also_when_points_go_meanwhile() {
    for fixture in stores(4).await {
        let (name, tenant) = (fixture.name, fixture.tenant().await);
        let points = Cloud::new(1, 4, 3).points(53);
        fixture.upsert(&tenant, &points).await;
        let mut expected: Vec<_> = points.iter().map(|point| point.id).collect();
        expected.sort();
        for page in [1, 7, 53, 54] {
            assert_eq!(fixture.ids(&tenant, page).await, expected, "{name}, pages of {page}");
        }
        assert!(fixture.store.list(&tenant, &fixture.space, None, 0).await.unwrap().is_empty(), "{name}");
        let first = fixture.store.list(&tenant, &fixture.space, None, 10).await.unwrap();
        let last = *first.last().unwrap();
        fixture.store.remove(&tenant, &fixture.space, &[last]).await.unwrap();
        let rest = fixture.store.list(&tenant, &fixture.space, Some(last), 100).await.unwrap();
        let mut all = [first, rest].concat();
        all.sort();
        assert_eq!(all, expected, "{name}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn the_nearest_points_come_first_with_their_cosines() {
    for fixture in stores(48).await {
        let (name, store, space, tenant) =
            (fixture.name, &fixture.store, &fixture.space, fixture.tenant().await);
        let mut cloud = Cloud::new(2, 48, 5);
        let points = cloud.points(400);
        fixture.upsert(&tenant, &points).await;
        let queries = cloud.vectors(20);
        for (limit, at_least) in [(1, -1.0), (10, -1.0), (400, -1.0), (10, 0.8), (400, 0.5), (400, 0.999)] {
            let found = store.nearest(&tenant, space, &queries, limit, at_least).await.unwrap();
            assert_eq!(found.len(), queries.len(), "{name}");
            for (query, found) in queries.iter().zip(&found) {
                let mut expected: Vec<_> = points.iter().map(|p| (cosine(query, &p.vector), p.id)).collect();
                expected.retain(|(cosine, _)| *cosine >= f64::from(at_least));
                expected.sort_by(|one, other| other.0.total_cmp(&one.0));
                expected.truncate(usize::try_from(limit).unwrap());
                assert_eq!(found.len(), expected.len(), "{name}, {limit} from {at_least}");
                for (near, (cosine, id)) in found.iter().zip(&expected) {
                    assert!((f64::from(near.cosine) - cosine).abs() < 1e-5, "{name}: {near:?}, not {cosine}");
                    assert_eq!(near.id, *id, "{name}");
                }
            }
        }
        fixture.end().await;
    }
}

#[tokio::test]
async fn whoever_has_nothing_finds_nothing() {
    for fixture in stores(2).await {
        let (name, store, space) = (fixture.name, &fixture.store, &fixture.space);
        let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
        fixture.upsert(&other, &[point(1, &[1.0, 0.0])]).await;
        let queries = vec![vec![1.0, 0.0]; 3];
        assert_eq!(store.nearest(&tenant, space, &queries, 5, -1.0).await.unwrap(), [[], [], []], "{name}");
        assert_eq!(store.nearest(&other, space, &queries, 0, -1.0).await.unwrap(), [[], [], []], "{name}");
        assert!(store.nearest(&other, space, &[], 5, -1.0).await.unwrap().is_empty(), "{name}");
        assert_eq!(store.count(&tenant, space).await.unwrap(), 0, "{name}");
        assert!(fixture.ids(&tenant, 5).await.is_empty(), "{name}");
        store.remove(&tenant, space, &[id(1)]).await.unwrap();
        store.delete_tenant(&tenant, space).await.unwrap();
        assert_eq!(fixture.ids(&other, 5).await, [id(1)], "{name}");
        store.ping().await.unwrap();
        fixture.end().await;
    }
}

#[tokio::test]
async fn one_id_may_be_a_point_of_two_tenants() {
    for fixture in stores(2).await {
        let (name, store, space) = (fixture.name, &fixture.store, &fixture.space);
        let (one, two) = (fixture.tenant().await, fixture.tenant().await);
        fixture.upsert(&one, &[point(1, &[1.0, 0.0])]).await;
        fixture.upsert(&two, &[point(1, &[0.0, 1.0])]).await;
        assert_eq!(store.find(&one, space, &[id(1)]).await.unwrap(), [point(1, &[1.0, 0.0])], "{name}");
        store.remove(&one, space, &[id(1)]).await.unwrap();
        assert_eq!(store.find(&two, space, &[id(1)]).await.unwrap(), [point(1, &[0.0, 1.0])], "{name}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn what_has_no_direction_in_the_space_is_refused_and_nothing_is_written() {
    for fixture in stores(2).await {
        let (name, store, space, tenant) =
            (fixture.name, &fixture.store, &fixture.space, fixture.tenant().await);
        for bad in
            [&[1.0][..], &[1.0, 2.0, 3.0], &[], &[f32::NAN, 1.0], &[1.0, f32::NEG_INFINITY], &[0.0, 0.0]]
        {
            let points = [point(1, &[1.0, 0.0]), point(2, bad)];
            let refused = store.upsert(&tenant, space, &points).await.unwrap_err();
            assert!(matches!(&refused, Error::Invalid(_)), "{name}: {refused:?}");
            let queries = [vec![1.0, 0.0], bad.to_vec()];
            let refused = store.nearest(&tenant, space, &queries, 1, 0.0).await.unwrap_err();
            assert!(matches!(&refused, Error::Invalid(_)), "{name}: {refused:?}");
        }
        assert_eq!(store.count(&tenant, space).await.unwrap(), 0, "{name}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_space_of_other_dimensions_is_refused_or_made_anew() {
    for fixture in stores(2).await {
        let (name, store, tenant) = (fixture.name, &fixture.store, fixture.tenant().await);
        fixture.upsert(&tenant, &[point(1, &[1.0, 0.0])]).await;
        store.prepare(&fixture.space, true).await.unwrap();
        assert_eq!(
            store.count(&tenant, &fixture.space).await.unwrap(),
            1,
            "{name}: one that fits is left alone"
        );

        let longer = Space { dimensions: 3, ..fixture.space.clone() };
        let refused = store.prepare(&longer, false).await.unwrap_err();
        let Error::Operator(message) = &refused else { panic!("{name}: {refused:?}") };
        for part in [&*longer.name, "vectors of 2 dimensions", "allow_recreate", "okt reembed"] {
            assert!(message.contains(part), "{name}: {message}");
        }
        assert_eq!(store.count(&tenant, &fixture.space).await.unwrap(), 1, "{name}");

        store.prepare(&longer, true).await.unwrap();
        assert_eq!(store.count(&tenant, &longer).await.unwrap(), 0, "{name}");
        store.upsert(&tenant, &longer, &[point(1, &[1.0, 0.0, 0.0])]).await.unwrap();
        assert_eq!(store.count(&tenant, &longer).await.unwrap(), 1, "{name}");
        if let Some(database) = &fixture.database {
            let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM okt_vectors.points")
                .fetch_one(&mut database.connect().await)
                .await
                .unwrap();
            assert_eq!(rows, 1, "nothing is left of the old ones");
        }
        store.drop_space(&longer).await.unwrap();
    }
}

#[tokio::test]
async fn forgetting_a_tenant_leaves_the_others() {
    for fixture in stores(4).await {
        let (name, store, space) = (fixture.name, &fixture.store, &fixture.space);
        let (one, two) = (fixture.tenant().await, fixture.tenant().await);
        let other = Space { name: format!("{}_concepts", space.name), dimensions: 4 };
        store.prepare(&other, false).await.unwrap();
        let points = Cloud::new(3, 4, 2).points(100);
        for tenant in [&one, &two] {
            fixture.upsert(tenant, &points).await;
            store.upsert(tenant, &other, &points[..3]).await.unwrap();
        }
        for _ in 0..2 {
            store.delete_tenant(&one, space).await.unwrap();
            assert_eq!(store.count(&one, space).await.unwrap(), 0, "{name}");
            assert_eq!(store.count(&one, &other).await.unwrap(), 3, "{name}: another space of theirs");
            assert_eq!(store.count(&two, space).await.unwrap(), 100, "{name}: somebody else");
        }
        store.drop_space(&other).await.unwrap();
        fixture.end().await;
    }
}

#[tokio::test]
async fn a_space_that_is_dropped_is_empty_and_can_not_be_written_to() {
    for fixture in stores(2).await {
        let (name, store, space) = (fixture.name, &fixture.store, &fixture.space);
        let tenants = [fixture.tenant().await, fixture.tenant().await];
        for tenant in &tenants {
            fixture.upsert(tenant, &[point(1, &[1.0, 0.0])]).await;
        }
        for _ in 0..2 {
            store.drop_space(space).await.unwrap();
            for tenant in &tenants {
                let found = store.nearest(tenant, space, &[vec![1.0, 0.0]], 1, -1.0).await.unwrap();
                assert_eq!(found, [[]], "{name}");
                assert_eq!(store.count(tenant, space).await.unwrap(), 0, "{name}");
                assert_eq!(store.find(tenant, space, &[id(1)]).await.unwrap(), [], "{name}");
                assert!(fixture.ids(tenant, 5).await.is_empty(), "{name}");
                store.remove(tenant, space, &[id(1)]).await.unwrap();
                store.delete_tenant(tenant, space).await.unwrap();
                let refused = store.upsert(tenant, space, &[point(1, &[1.0, 0.0])]).await.unwrap_err();
                assert!(
                    matches!(&refused, Error::Operator(text) if text.contains(&space.name)),
                    "{refused:?}"
                );
            }
        }
        store.prepare(space, false).await.unwrap();
        assert_eq!(store.count(&tenants[0], space).await.unwrap(), 0, "{name}: nothing comes back");
        fixture.upsert(&tenants[0], &[point(2, &[1.0, 0.0])]).await;
        assert_eq!(fixture.ids(&tenants[0], 5).await, [id(2)], "{name}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn more_points_and_queries_than_fit_into_a_batch_are_all_done() {
    for fixture in stores(1_200).await {
        let (name, store, space, tenant) =
            (fixture.name, &fixture.store, &fixture.space, fixture.tenant().await);
        let points = Cloud::new(4, 1_200, 4).points(500);
        fixture.upsert(&tenant, &points).await;
        let ids: Vec<_> = points.iter().map(|point| point.id).collect();
        assert_eq!(store.find(&tenant, space, &ids).await.unwrap().len(), 500, "{name}");
        let queries: Vec<_> = points.iter().map(|point| point.vector.clone()).collect();
        let found = store.nearest(&tenant, space, &queries, 1, 0.99).await.unwrap();
        let found: Vec<_> = found.iter().map(|near| near[0].id).collect();
        assert_eq!(found, ids, "{name}: each is nearest to itself");
        store.remove(&tenant, space, &ids[1..]).await.unwrap();
        assert_eq!(fixture.ids(&tenant, 100).await, ids[..1], "{name}");
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_write_and_prepare_at_once_do_not_stand_in_each_others_way() {
    for fixture in stores(8).await {
        let tenant = fixture.tenant().await;
        let points = Arc::new(Cloud::new(5, 8, 3).points(200));
        let mut writers = tokio::task::JoinSet::new();
        for turn in 0..8 {
            let (store, space) = (fixture.store.clone(), fixture.space.clone());
            let (tenant, points) = (tenant.clone(), points.clone());
            writers.spawn(async move {
                store.prepare(&space, false).await.unwrap();
                let mut mine = points.to_vec();
                mine.rotate_left(turn * 25);
                for point in &mut mine {
                    point.vector[0] += 1.0 / (1.0 + f32::from(u8::try_from(turn).unwrap()));
                }
                store.upsert(&tenant, &space, &mine).await.unwrap();
                store.remove(&tenant, &space, &[mine[0].id]).await.unwrap();
                store.upsert(&tenant, &space, &mine[..1]).await.unwrap();
            });
        }
        writers.join_all().await;
        assert_eq!(fixture.store.count(&tenant, &fixture.space).await.unwrap(), 200, "{}", fixture.name);
        fixture.end().await;
    }
}
