//! Many repositories cost nobody who looks at a few, and many packages of a registry nobody who looks for one: the database runs the
//! same plans. How long it takes is measured by `okt-test bench repositories` and `okt-test bench vectors`.

mod registry;

use okt_testkit::golden;
use okt_testkit::tenants::Installation;

const FEW: u32 = 1_000;
const MANY: u32 = 50_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_runs_the_same_plans_for_a_thousand_repositories_and_for_many() {
    let few = Installation::of(FEW).await.plans().await;
    let many = Installation::of(MANY).await.plans().await;
    assert!(few == many, "with {FEW}:\n{few}\nwith {MANY}:\n{many}");
    for table in ["repositories", "role_assignments"] {
        assert!(!many.contains(&format!("Seq Scan on {table}")), "{many}");
    }
    golden::check("crates/okt-testkit/tests/it/scale/plans.txt", &many);
}
