//! What a pool promises about a connection that was dropped, or whose server went away.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use okt_model::RepositoryId;
use okt_store::{Databases, Purpose, counters};
use okt_testkit::db::TestDatabase;
use okt_testkit::wait::eventually;
use sqlx::PgConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;

const URL: &str = "SVC__DATABASES__DEFAULT__URL";
const MAX_CONNS: &str = "SVC__DATABASES__DEFAULT__MAX_CONNS";
const ACQUIRE_TIMEOUT: &str = "SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT";

/// With patience for a busy machine. One connection makes the next user the next user of that connection.
async fn open(database: &TestDatabase, limit: &str) -> Databases {
    let config = database.config(&[(MAX_CONNS, limit), (ACQUIRE_TIMEOUT, "10s")]);
    Databases::open(&config, &[Purpose::Api]).await.unwrap().remove(0)
}

async fn pid(conn: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(conn).await.unwrap()
}

async fn tenant(conn: &mut PgConnection) -> Option<String> {
    let setting = "SELECT nullif(current_setting('okt.repository', true), '')";
    sqlx::query_scalar(setting).fetch_one(conn).await.unwrap()
}

fn assert_within_the_limit(databases: &Databases) {
    for (name, usage) in databases.usage() {
        assert!(usage.open <= usage.limit, "{name}: {usage:?}");
    }
}

/// Takes every connection of the pool at the same time, and asks the server what it is in the middle of.
async fn assert_all_are_clean(databases: &Databases, watcher: &mut PgConnection) {
    let limit = databases.usage().next().unwrap().1.limit;
    let (mut held, mut pids) = (Vec::new(), Vec::new());
    for _ in 0..limit {
        let mut conn = databases.acquire_system().await.unwrap();
        assert_eq!(tenant(&mut conn).await, None);
        pids.push(pid(&mut conn).await);
        held.push(conn);
    }
    assert_within_the_limit(databases);
    let states: Vec<String> = sqlx::query_scalar("SELECT state FROM pg_stat_activity WHERE pid = ANY($1)")
        .bind(&pids)
        .fetch_all(watcher)
        .await
        .unwrap();
    assert_eq!(states, vec!["idle"; pids.len()]);
    drop(held);
    // But for a moment who wakes the relays after a commit.
    eventually(Duration::from_secs(10), "nobody holds any", async || {
        let (_, usage) = databases.usage().next().unwrap();
        if usage.open == usage.idle { Ok(()) } else { Err(format!("{usage:?}")) }
    })
    .await;
}

/// How many of the service's own connections are running a statement with this in it.
async fn running(watcher: &mut PgConnection, what: &str) -> i64 {
    let query = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND application_name = 'okt' AND state = 'active'
                    AND query LIKE '%' || $1 || '%'";
    sqlx::query_scalar(query).bind(what).fetch_one(watcher).await.unwrap()
}

/// How many connections the service has, by the server's count.
async fn connected(watcher: &mut PgConnection) -> i64 {
    let query = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND application_name = 'okt'";
    sqlx::query_scalar(query).fetch_one(watcher).await.unwrap()
}

/// Ends a backend and waits until it is gone.
async fn terminate(watcher: &mut PgConnection, pid: i32) {
    let ended: bool = sqlx::query_scalar("SELECT pg_terminate_backend($1, 5000)")
        .bind(pid)
        .fetch_one(watcher)
        .await
        .unwrap();
    assert!(ended);
}

#[tokio::test]
async fn a_dropped_transaction_leaves_nothing_to_the_next_user_of_its_connection() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "1").await;
    let mut watcher = database.connect().await;
    let repository = RepositoryId::mint();

    let mut tx = databases.begin("default", repository).await.unwrap();
    assert_eq!(tenant(&mut tx).await, Some(repository.uuid().to_string()));
    counters::add(&mut tx, repository, "dropped", 1).await.unwrap();
    let first = pid(&mut tx).await;
    drop(tx);
    assert_all_are_clean(&databases, &mut watcher).await;

    // One that failed can't be used for anything but its end.
    let mut tx = databases.begin("default", repository).await.unwrap();
    counters::add(&mut tx, repository, "failed", 1).await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(&mut *tx).await.unwrap_err();
    drop(tx);
    assert_all_are_clean(&databases, &mut watcher).await;

    let mut tx = databases.begin("default", repository).await.unwrap();
    counters::add(&mut tx, repository, "committed", 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_all_are_clean(&databases, &mut watcher).await;

    let mut tx = databases.begin("default", repository).await.unwrap();
    assert_eq!(counters::list(&mut tx, repository).await.unwrap(), [("committed".to_owned(), 1)]);
    assert_eq!(pid(&mut tx).await, first, "all of this was the same connection");
}

/// A thread without a runtime, and a runtime that is ending: nobody is there to test the connection.
#[tokio::test]
async fn a_transaction_dropped_where_nothing_can_test_it_leaves_nothing_either() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "1").await;
    let mut watcher = database.connect().await;
    let repository = RepositoryId::mint();
    for ending in [false, true] {
        let mut tx = databases.begin("default", repository).await.unwrap();
        counters::add(&mut tx, repository, "dropped", 1).await.unwrap();
        let elsewhere = std::thread::spawn(move || {
            if ending {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let holder = runtime.spawn(async move {
                    let _held = tx;
                    std::future::pending::<()>().await;
                });
                runtime.block_on(tokio::task::yield_now());
                assert!(!holder.is_finished());
            } else {
                drop(tx);
            }
        });
        elsewhere.join().unwrap();
        assert_all_are_clean(&databases, &mut watcher).await;
        let mut tx = databases.begin("default", repository).await.unwrap();
        assert_eq!(counters::list(&mut tx, repository).await.unwrap(), []);
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_was_not_read_to_its_end_is_not_the_next_users() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "1").await;
    let mut watcher = database.connect().await;
    let rows = "SELECT -n FROM generate_series(1, 100000) AS n";
    for round in 0..20 {
        let mut conn = databases.acquire_system().await.unwrap();
        let mut answer = sqlx::query_scalar::<_, i32>(rows).fetch(&mut *conn);
        assert_eq!(answer.next().await.unwrap().unwrap(), -1);
        drop(answer);
        drop(conn);

        let mut tx = databases.begin_system().await.unwrap();
        let found: Vec<i32> =
            sqlx::query_scalar("SELECT $1::int").bind(round).fetch_all(&mut *tx).await.unwrap();
        assert_eq!(found, [round]);
        let mut answer = sqlx::query_scalar::<_, i32>(rows).fetch(&mut *tx);
        assert_eq!(answer.next().await.unwrap().unwrap(), -1);
        drop(answer);
        drop(tx);
        assert_all_are_clean(&databases, &mut watcher).await;
    }
}

/// PostgreSQL answers such a COMMIT by a rollback, and calls it a success.
#[tokio::test]
async fn a_transaction_in_which_a_statement_failed_is_not_committed_in_silence() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "1").await;
    let repository = RepositoryId::mint();
    let mut tx = databases.begin("default", repository).await.unwrap();
    counters::add(&mut tx, repository, "facts", 1).await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(&mut *tx).await.unwrap_err();
    let refused = tx.commit().await.unwrap_err();
    assert!(!refused.retryable(), "the same would happen again: {refused}");

    let mut tx = databases.begin("default", repository).await.unwrap();
    assert_eq!(counters::list(&mut tx, repository).await.unwrap(), [], "nothing of it is there");
    counters::add(&mut tx, repository, "facts", 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_all_are_clean(&databases, &mut database.connect().await).await;
}

#[tokio::test]
async fn users_aborted_in_the_middle_of_a_statement_leave_neither_rows_nor_connections() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "2").await;
    let mut watcher = database.connect().await;
    // The first ends while the dropped connection is being tested, the second long after the test has given up.
    for seconds in [1, 8] {
        let statement = "SELECT -1 FROM pg_sleep($1)";
        let plain = tokio::spawn({
            let databases = databases.clone();
            async move {
                let mut conn = databases.acquire_system().await.unwrap();
                sqlx::query(statement).bind(f64::from(seconds)).execute(&mut *conn).await
            }
        });
        let transaction = tokio::spawn({
            let databases = databases.clone();
            async move {
                let mut tx = databases.begin("default", RepositoryId::mint()).await.unwrap();
                sqlx::query(statement).bind(f64::from(seconds)).execute(&mut *tx).await
            }
        });
        while running(&mut watcher, "pg_sleep").await < 2 {
            assert!(!plain.is_finished() && !transaction.is_finished());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        plain.abort();
        transaction.abort();
        assert!(plain.await.unwrap_err().is_cancelled());
        assert!(transaction.await.unwrap_err().is_cancelled());

        let users = (0..20).map(async |number| {
            let mut conn = databases.acquire_system().await.unwrap();
            assert_within_the_limit(&databases);
            let query = sqlx::query_scalar("SELECT $1::int").bind(number);
            let found: Vec<i32> = query.fetch_all(&mut *conn).await.unwrap();
            assert_eq!(found, [number]);
            assert_eq!(tenant(&mut conn).await, None);
        });
        let started = Instant::now();
        futures_util::future::join_all(users).await;
        assert!(started.elapsed() < Duration::from_secs(5), "nobody waits for the long one");
        if seconds == 1 {
            assert!(connected(&mut watcher).await <= 2);
        }
        assert_all_are_clean(&databases, &mut watcher).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_aborted_at_any_point_are_done_or_undone_and_never_left_open() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "2").await;
    let mut watcher = database.connect().await;
    let repository = RepositoryId::mint();
    let write = |number: u64| {
        let databases = databases.clone();
        async move {
            let mut tx = databases.begin("default", repository).await.unwrap();
            counters::add(&mut tx, repository, &format!("{number} left"), 1).await.unwrap();
            counters::add(&mut tx, repository, &format!("{number} right"), 1).await.unwrap();
            tx.commit().await.unwrap();
        }
    };
    // Warm: every connection has prepared its statements.
    let mut usual = Duration::ZERO;
    for number in 1000..1020 {
        let started = Instant::now();
        write(number).await;
        usual = started.elapsed();
    }

    let (random, mut finished) = (RandomState::new(), Vec::new());
    for number in 0..200 {
        let point = usual.mul_f64(f64::from(u16::try_from(random.hash_one(number) % 1200).unwrap()) / 1000.0);
        let started = Instant::now();
        let task = tokio::spawn(write(number));
        // A timer is too coarse by far.
        while started.elapsed() < point {
            std::hint::spin_loop();
        }
        // One in ten may finish, however busy the machine is.
        if number % 10 != 9 {
            task.abort();
        }
        assert_within_the_limit(&databases);
        match task.await {
            Ok(()) => finished.push(number),
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
        if number % 20 == 0 {
            assert_all_are_clean(&databases, &mut watcher).await;
        }
    }
    assert!(!finished.is_empty() && finished.len() < 200, "{} of 200 finished", finished.len());
    assert_all_are_clean(&databases, &mut watcher).await;

    let mut tx = databases.begin("default", repository).await.unwrap();
    let written = counters::list(&mut tx, repository).await.unwrap();
    for number in 0..200 {
        let there = ["left", "right"].map(|side| written.contains(&(format!("{number} {side}"), 1)));
        assert_eq!(there[0], there[1], "half of {number}");
        assert!(there[0] || !finished.contains(&number), "{number} was committed");
    }
}

#[tokio::test]
async fn a_backend_that_ends_right_after_use_costs_at_most_one_error_that_can_be_retried() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "1").await;
    let mut watcher = database.connect().await;
    let mut errors = 0;
    for round in 0..10 {
        let mut conn = databases.acquire_system().await.unwrap();
        let ended = pid(&mut conn).await;
        drop(conn);
        terminate(&mut watcher, ended).await;

        let error = if round % 2 == 0 {
            let mut conn = databases.acquire_system().await.unwrap();
            sqlx::query("SELECT 1").execute(&mut *conn).await.map_err(okt_pg::Error::from).err()
        } else {
            databases.begin_system().await.err()
        };
        if let Some(error) = error {
            assert!(error.retryable(), "{error}: {:?}", std::error::Error::source(&error));
            errors += 1;
        }
        let mut next = databases.acquire_system().await.unwrap();
        assert_ne!(pid(&mut next).await, ended);
        drop(next);
        assert_all_are_clean(&databases, &mut watcher).await;
    }
    assert!(errors > 0, "none of them was used within the second");
}

#[tokio::test]
async fn backends_that_end_while_nobody_uses_them_are_not_noticed() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "3").await;
    let mut watcher = database.connect().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(databases.acquire_system().await.unwrap());
    }
    let mut ended = Vec::new();
    for mut conn in held {
        ended.push(pid(&mut conn).await);
    }
    for pid in &ended {
        terminate(&mut watcher, *pid).await;
    }
    tokio::time::sleep(Duration::from_millis(1200)).await;

    let mut tx = databases.begin("default", RepositoryId::mint()).await.unwrap();
    let mut conn = databases.acquire_system().await.unwrap();
    for conn in [&mut *tx, &mut *conn] {
        assert!(!ended.contains(&pid(conn).await));
    }
    tx.commit().await.unwrap();
    drop(conn);
    assert_all_are_clean(&databases, &mut watcher).await;
}

/// Several runtimes use one pool, and one of them ends before it could wake anybody.
#[test]
fn relays_are_woken_by_whoever_comes_after_one_that_could_not() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let ours = runtime();
    let (_database, databases, held) = ours.block_on(async {
        let database = TestDatabase::migrated().await;
        let databases = open(&database, "4").await;
        // A connection works in the runtime that opened it: the other one is to open its own.
        let held = databases.acquire_system().await.unwrap();
        (database, databases, held)
    });
    let commit = async || {
        databases.begin("default", RepositoryId::mint()).await.unwrap().commit().await.unwrap();
    };
    let ending = runtime();
    ending.block_on(commit());
    drop(ending);
    let heard = ours.block_on(async {
        drop(held);
        let mut listener = databases.listen_to_outbox("default").await.unwrap();
        commit().await;
        tokio::time::timeout(Duration::from_secs(10), listener.hear()).await
    });
    heard.expect("somebody is woken").unwrap();
}

#[tokio::test]
async fn a_server_that_goes_silent_is_given_up_in_time_however_many_connections_lie_idle() {
    let database = TestDatabase::migrated().await;
    let mut watcher = database.connect().await;
    let proxy = Proxy::before(&database).await;
    let config = database.config(&[(URL, &proxy.url), (MAX_CONNS, "6"), (ACQUIRE_TIMEOUT, "2s")]);
    let databases = Databases::open(&config, &[Purpose::Api]).await.unwrap().remove(0);
    assert_all_are_clean(&databases, &mut watcher).await;
    let idle = databases.usage().next().unwrap().1.idle;
    assert_eq!(idle, 6);
    tokio::time::sleep(Duration::from_millis(1200)).await;

    proxy.silent.send_replace(true);
    let started = Instant::now();
    assert!(databases.acquire_system().await.err().unwrap().retryable());
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    let started = Instant::now();
    let users = (0..6).map(|_| databases.acquire_system());
    let refused = futures_util::future::join_all(users).await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    for refused in refused {
        assert!(refused.err().unwrap().retryable());
    }
    // By now there is nothing left to test, and a new connection gets no answer either.
    let started = Instant::now();
    assert!(databases.begin("default", RepositoryId::mint()).await.err().unwrap().retryable());
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_within_the_limit(&databases);

    proxy.silent.send_replace(false);
    assert_all_are_clean(&databases, &mut watcher).await;
}

/// On one thread, so that nothing happens between a drop and a look.
#[tokio::test]
async fn a_connection_with_nothing_left_to_say_is_the_next_users_at_once_and_others_are_tested_first() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "1").await;
    let mut watcher = database.connect().await;
    let idle = || databases.usage().next().unwrap().1.idle;
    let mut conn = databases.acquire_system().await.unwrap();
    let first = pid(&mut conn).await;
    assert_eq!(idle(), 0);
    drop(conn);
    assert_eq!(idle(), 1);

    let mut conn = databases.acquire_system().await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(&mut *conn).await.unwrap_err();
    drop(conn);
    assert_all_are_clean(&databases, &mut watcher).await;

    let mut tx = databases.begin_system().await.unwrap();
    assert_eq!(pid(&mut tx).await, first);
    tx.commit().await.unwrap();
    assert_eq!(idle(), 1);

    drop(databases.begin_system().await.unwrap());
    assert_eq!(idle(), 0, "it has to be rolled back");
    assert_all_are_clean(&databases, &mut watcher).await;

    let mut conn = databases.acquire_system().await.unwrap();
    let sleep = sqlx::query("SELECT pg_sleep(1)").execute(&mut *conn);
    tokio::time::timeout(Duration::from_millis(100), sleep).await.unwrap_err();
    drop(conn);
    assert_eq!(idle(), 0, "its answer is still to come");
    assert_all_are_clean(&databases, &mut watcher).await;

    let mut conn = databases.acquire_system().await.unwrap();
    assert_eq!(pid(&mut conn).await, first, "all of this was the same connection");
    terminate(&mut watcher, first).await;
    sqlx::query("SELECT 1").execute(&mut *conn).await.unwrap_err();
    drop(conn);
    assert_eq!(idle(), 0, "it is dead");
    assert_all_are_clean(&databases, &mut watcher).await;
}

#[tokio::test]
async fn a_server_without_room_for_another_connection_is_used_by_what_there_is() {
    let database = TestDatabase::migrated().await;
    let mut watcher = database.connect().await;
    let proxy = Proxy::before(&database).await;
    let config = database.config(&[(URL, &proxy.url), (MAX_CONNS, "3"), (ACQUIRE_TIMEOUT, "10s")]);
    let databases = Databases::open(&config, &[Purpose::Api]).await.unwrap().remove(0);
    proxy.full.send_replace(true);
    let mut held = databases.acquire_system().await.unwrap();
    let only = pid(&mut held).await;
    assert!(databases.acquire_system().await.err().unwrap().retryable(), "there is no other");
    assert_eq!(databases.usage().next().unwrap().1.open, 1);
    drop(held);
    assert_eq!(pid(&mut databases.acquire_system().await.unwrap()).await, only);

    // Nor is one given out that died meanwhile.
    terminate(&mut watcher, only).await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(databases.acquire_system().await.err().unwrap().retryable());
    assert_eq!(databases.usage().next().unwrap().1.open, 0);
    proxy.full.send_replace(false);
    assert_all_are_clean(&databases, &mut watcher).await;
}

#[tokio::test]
async fn a_pool_that_is_closed_gives_out_nothing_and_closes_what_comes_back() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, "2").await;
    let (first, second) =
        (databases.acquire_system().await.unwrap(), databases.begin_system().await.unwrap());
    let waits = tokio::spawn({
        let databases = databases.clone();
        async move { databases.acquire_system().await.map(drop) }
    });
    tokio::task::yield_now().await;
    databases.close().await;
    assert!(waits.await.unwrap().is_err(), "who waits is told at once");
    assert!(databases.acquire_system().await.is_err());
    drop(first);
    drop(second);
    let mut watcher = database.connect().await;
    eventually(Duration::from_secs(10), "what came back is closed", async || {
        match connected(&mut watcher).await {
            0 => Ok(()),
            open => Err(open),
        }
    })
    .await;
    assert_eq!(databases.usage().next().unwrap().1.open, 0);
}

/// Stands between the service and PostgreSQL, and can stop passing anything on without closing anything.
struct Proxy {
    url: String,
    silent: watch::Sender<bool>,
    /// Whether it takes no new connection.
    full: watch::Sender<bool>,
}

impl Proxy {
    async fn before(database: &TestDatabase) -> Self {
        let mut url = url::Url::parse(database.url()).unwrap();
        let server = (url.host_str().unwrap().to_owned(), url.port().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let (silent, heard) = watch::channel(false);
        let (full, is_full) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                if *is_full.borrow() {
                    continue;
                }
                #[expect(clippy::disallowed_methods, reason = "a proxy before PostgreSQL")]
                let far = TcpStream::connect(&server).await.unwrap();
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(pass_on(near_in, far_out, heard.clone()));
                tokio::spawn(pass_on(far_in, near_out, heard.clone()));
            }
        });
        Self { url: url.into(), silent, full }
    }
}

/// Until one side closes or the test ends.
async fn pass_on(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut silent: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if silent.wait_for(|silent| !silent).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
