//! Names that mean one thing when they are checked and another when they are used.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use okt_providers::{GuardedClient, Rule};

use crate::server::{ALLOWED, Server, common_port, get, moved, ok, refusal, text};

const FORBIDDEN: [u8; 4] = [127, 0, 0, 1];
const NAMES: usize = 1_000;

/// Two listeners on one port, the one allowed and the other not, and a client for which every name is the allowed one
/// when it is first looked up and what `later` says from then on.
async fn scene(
    later: &'static [[u8; 4]],
) -> (Server, Server, GuardedClient, Arc<Mutex<HashMap<String, usize>>>) {
    let port = common_port(ALLOWED, FORBIDDEN);
    let allowed = Server::start((ALLOWED, port), |_| ok("outside")).await;
    let forbidden = Server::start((FORBIDDEN, port), |_| ok("inside")).await;
    let look_ups = Arc::new(Mutex::new(HashMap::new()));
    let counted = Arc::clone(&look_ups);
    let client = GuardedClient::with_look_up(&[allowed.address], move |host| {
        let mut counted = counted.lock().unwrap();
        let times = counted.entry(host).or_default();
        *times += 1;
        let answer: Vec<IpAddr> = match *times {
            1 => vec![ALLOWED.into()],
            _ => later.iter().map(|ip| (*ip).into()).collect(),
        };
        async { Ok(answer) }
    })
    .unwrap();
    (allowed, forbidden, client, look_ups)
}

#[tokio::test]
async fn a_name_that_turns_private_after_its_check_is_never_connected_to() {
    let (allowed, forbidden, client, look_ups) = scene(&[FORBIDDEN]).await;
    let port = allowed.address.port();
    for n in 0..NAMES {
        let url = format!("http://n{n}.test:{port}/");
        assert_eq!(text(&client, get(&url)).await.unwrap(), "outside");
    }
    assert!(look_ups.lock().unwrap().values().all(|times| *times == 1), "one look-up each");
    // The names have turned; what they meant before is not kept.
    for n in 0..NAMES {
        let url = format!("http://n{n}.test:{port}/");
        assert_eq!(refusal(&client, get(&url)).await, Rule::Private);
    }
    assert_eq!(look_ups.lock().unwrap().len(), NAMES);
    assert_eq!(allowed.connections().await, NAMES);
    assert_eq!(forbidden.connections().await, 0);
}

#[tokio::test]
async fn one_private_address_among_public_ones_refuses_the_name() {
    for later in [&[ALLOWED, FORBIDDEN], &[FORBIDDEN, ALLOWED]] {
        let (allowed, forbidden, client, _) = scene(later).await;
        let url = format!("http://mixed.test:{}/", allowed.address.port());
        for n in 0..NAMES / 2 {
            if n == 0 {
                assert_eq!(text(&client, get(&url)).await.unwrap(), "outside");
            } else {
                assert_eq!(refusal(&client, get(&url)).await, Rule::Private);
            }
        }
        assert_eq!(allowed.connections().await, 1);
        assert_eq!(forbidden.connections().await, 0);
    }
}

/// Each hop is looked up for itself, so a chain on one name can turn in the middle.
#[tokio::test]
async fn a_name_that_turns_private_between_two_hops_is_refused_at_the_second() {
    let port = common_port(ALLOWED, FORBIDDEN);
    let redirecting = Server::start((ALLOWED, port), |_| moved(302, "/again")).await;
    let inside = Server::start((FORBIDDEN, port), |_| ok("inside")).await;
    let times = Arc::new(Mutex::new(0));
    let client = GuardedClient::with_look_up(&[redirecting.address], move |_| {
        let mut times = times.lock().unwrap();
        *times += 1;
        let answer = IpAddr::from(if *times == 1 { ALLOWED } else { FORBIDDEN });
        async move { Ok(vec![answer]) }
    })
    .unwrap();
    let request = get(&format!("http://turning.test:{port}/")).follow_redirects();
    assert_eq!(refusal(&client, request).await, Rule::Private);
    assert_eq!(redirecting.connections().await, 1);
    assert_eq!(inside.connections().await, 0);
}
