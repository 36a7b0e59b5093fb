//! How long it takes to list, to open and to be let in, in a small and in a large installation.

use std::fmt;
use std::time::{Duration, Instant};

use http::Method;
use okt_auth::permissions::RepositoryRead;
use okt_auth::{Auth, Needed as _, Refused};
use okt_model::{Domain, RepositoryId};

use super::{Tenants, plans};
use crate::accounts::session;
use crate::client::Answer;
use crate::served::TestService;

const WARM_UP: usize = 50;
const SECRET: &[u8] = b"a secret of nobody but this measurement";

/// The product, in this process, on a database of its own full of tenants.
pub struct Installation {
    service: TestService,
    tenants: Tenants,
    busy: String,
    sysadmin: String,
    /// The tokens of members that only `Auth`s of ours take, which remember nothing.
    members: Vec<String>,
}

#[derive(Clone, Copy)]
enum Question {
    ListOwn,
    ListAll,
    OpenById,
    OpenBySlug,
    AskPermissions,
    Decide,
}

const QUESTIONS: [(Question, &str); 6] = [
    (Question::ListOwn, "list 50 of 200 of one's own"),
    (Question::ListAll, "list 50 of all, as sysadmin"),
    (Question::OpenById, "open by id"),
    (Question::OpenBySlug, "open by slug"),
    (Question::AskPermissions, "what may I do there"),
    (Question::Decide, "who is it, and may they (nothing remembered)"),
];

/// Medians of the same thing in both installations.
pub struct Figure {
    pub what: &'static str,
    pub small: Duration,
    pub large: Duration,
}

impl Figure {
    pub fn ratio(&self) -> f64 {
        self.large.as_secs_f64() / self.small.as_secs_f64()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        write!(f, "{:<46}{:>8.0} us{:>8.0} us", self.what, us(self.small), us(self.large))?;
        write!(f, "{:>7.2}", self.ratio())
    }
}

/// Both asked the same `samples` times, in turns and in both orders, so that whatever else the machine does falls on both.
pub async fn compare(small: &Installation, large: &Installation, samples: usize) -> Vec<Figure> {
    let mut times = QUESTIONS.map(|_| (Vec::new(), Vec::new()));
    for round in 0..WARM_UP + samples {
        for ((question, _), (of_small, of_large)) in QUESTIONS.iter().zip(&mut times) {
            let mut pair = [(small, of_small), (large, of_large)];
            if round % 2 == 1 {
                pair.reverse();
            }
            for (installation, times) in pair {
                let took = installation.ask(*question, round).await;
                if round >= WARM_UP {
                    times.push(took);
                }
            }
        }
    }
    let figure = |((_, what), (small, large)): (&(Question, &'static str), (Vec<_>, Vec<_>))| Figure {
        what,
        small: median(small),
        large: median(large),
    };
    QUESTIONS.iter().zip(times).map(figure).collect()
}

impl Installation {
    /// With so many repositories.
    pub async fn of(repositories: u32) -> Self {
        let service = TestService::product(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
        let tenants = Tenants::load(&mut service.database.connect().await, repositories).await;
        let busy = session(&service, tenants.busy.uuid()).await;
        let sysadmin = session(&service, tenants.sysadmin.uuid()).await;
        let mut it = Self { service, tenants, busy, sysadmin, members: Vec::new() };
        let auth = it.auth();
        let sign = |&(user, session, _): &_| auth.sign_session(user, session).expose().to_owned();
        it.members = it.tenants.members.iter().map(sign).collect();
        it
    }

    /// How its database runs the statements that every request needs.
    pub async fn plans(&self) -> String {
        let mut conn = self.service.api.app.databases().acquire_system().await.expect("a connection");
        plans::plans(&mut conn).await
    }

    async fn ask(&self, question: Question, round: usize) -> Duration {
        // Another one every time: where a repository lives is remembered for a moment.
        let (id, slug) = &self.tenants.theirs[round * 7 % self.tenants.theirs.len()];
        match question {
            Question::ListOwn => self.get(&self.busy, "/api/v1/repositories?limit=50", "sources", 50).await,
            Question::ListAll => {
                self.get(&self.sysadmin, "/api/v1/repositories?limit=50", "sources", 50).await
            }
            Question::OpenById => self.open(&id.to_string()).await,
            Question::OpenBySlug => self.open(slug).await,
            Question::AskPermissions => {
                let path = format!("/api/v1/repositories/{id}/permissions");
                self.get(&self.busy, &path, "editor", 1).await
            }
            Question::Decide => self.decide(round).await,
        }
    }

    async fn open(&self, named: &str) -> Duration {
        self.get(&self.busy, &format!("/api/v1/repositories/{named}"), "sources", 1).await
    }

    /// An answer counts when it says the word so many times: a page that was cut short would be quick.
    async fn get(&self, token: &str, path: &str, word: &str, times: usize) -> Duration {
        let request = self.service.request(Method::GET, path).bearer_auth(token);
        let started = Instant::now();
        let answer = Answer::of(request).await;
        let took = started.elapsed();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.text.matches(&format!("\"{word}\"")).count(), times, "{path}: {answer:?}");
        took
    }

    /// Without HTTP, and by somebody who has just started: session, roles and decision.
    async fn decide(&self, round: usize) -> Duration {
        let number = round % self.members.len();
        let (_, _, theirs) = self.tenants.members[number];
        let read = RepositoryRead::PERMISSION;
        let auth = self.auth();
        let started = Instant::now();
        let caller = auth.authenticate(&self.members[number]).await.expect("an answer").expect("a member");
        let there = caller.decide(Domain::Repository(theirs), read);
        let elsewhere = caller.decide(Domain::Repository(RepositoryId::mint()), read);
        let took = started.elapsed();
        assert_eq!((there, elsewhere), (Ok(()), Err(Refused::Invisible)));
        took
    }

    fn auth(&self) -> Auth {
        let app = &self.service.api.app;
        Auth::new(app.config(), app.databases().clone(), SECRET)
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
