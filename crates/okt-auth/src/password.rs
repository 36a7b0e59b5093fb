//! Passwords: argon2id, a few at a time.
//!
//! A hash costs a core a tenth of a second and 19 MiB, so strangers could sink the service by logging in. Two are
//! computed at once, a few dozen wait, and the rest is refused.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use argon2::password_hash::{self, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, PasswordHash, RECOMMENDED_SALT_LEN, Version};
use okt_config::Secret;
use okt_model::{Error, Result};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::sync::Semaphore;

/// Hashes and checks passwords. One per process: it is what counts how many are at it.
#[derive(Debug)]
pub struct Passwords {
    /// Places for those at work and those waiting.
    admitted: Arc<Semaphore>,
    /// Places for those at work.
    running: Arc<Semaphore>,
    params: Params,
    /// The hash that is checked for unknown users, with the same parameters as real ones. A hash of nothing but zeros belongs to no known text.
    nobodys: String,
}

/// What a password turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verified {
    Wrong,
    Right,
    /// Right, and kept with other parameters than today's: hash it anew and keep that.
    RightButRehash,
}

impl Passwords {
    /// What hashing takes: memory in KiB, and how many times it is gone through.
    pub fn new(memory: u32, iterations: u32) -> Self {
        Self {
            admitted: Arc::new(Semaphore::new(AT_WORK + WAITING)),
            running: Arc::new(Semaphore::new(AT_WORK)),
            params: Params::new(memory, iterations, 1, Some(32)).unwrap_or(LEAST),
            nobodys: format!(
                "$argon2id$v=19$m={memory},t={iterations},p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            ),
        }
    }

    /// 8 to 256 characters, whatever they are, blanks at the ends included.
    pub fn check_length(field: &'static str, password: &str) -> Result<()> {
        // Bytes first: nobody counts the characters of a megabyte.
        if password.len() <= 4 * LONGEST && (SHORTEST..=LONGEST).contains(&password.chars().count()) {
            return Ok(());
        }
        Err(Error::invalid(field, format!("must have {SHORTEST} to {LONGEST} characters")))
    }

    /// Refuses what whoever guesses passwords tries first.
    pub fn check_uncommon(field: &'static str, password: &str) -> Result<()> {
        if COMMON.contains(password.to_lowercase().as_str()) {
            return Err(Error::invalid(field, "is a commonly used password; choose another one"));
        }
        Ok(())
    }

    /// The text to keep: algorithm, parameters, a fresh salt and the hash.
    pub async fn hash(&self, password: &str) -> Result<String> {
        let password = Secret::from(password.to_owned());
        let hasher = self.hasher();
        self.when_admitted(move || {
            let mut salt = [0; RECOMMENDED_SALT_LEN];
            SysRng.try_fill_bytes(&mut salt).map_err(Error::internal)?;
            let hash = hasher.hash_password_with_salt(password.expose().as_bytes(), &salt);
            Ok(hash.map_err(Error::internal)?.to_string())
        })
        .await
    }

    /// With `None`, for an account that does not exist, it takes as long and the answer is `Wrong`.
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> Result<Verified> {
        let password = Secret::from(password.to_owned());
        let known = hash.is_some();
        let hash = hash.unwrap_or(&self.nobodys).to_owned();
        let hasher = self.hasher();
        self.when_admitted(move || {
            let hash = PasswordHash::new(&hash).map_err(Error::internal)?;
            match hasher.verify_password(password.expose().as_bytes(), &hash) {
                Err(password_hash::Error::PasswordInvalid) => Ok(Verified::Wrong),
                Err(error) => Err(Error::internal(error)),
                Ok(()) if !known => Ok(Verified::Wrong),
                Ok(()) if is_current(&hash, hasher.params()) => Ok(Verified::Right),
                Ok(()) => Ok(Verified::RightButRehash),
            }
        })
        .await
    }

    fn hasher(&self) -> Argon2<'static> {
        Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone())
    }

    /// The permits go along with the work, which can't be stopped: a caller who leaves while it runs frees the slot
    /// when it is really free, and one who leaves while waiting frees the place at once.
    async fn when_admitted<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Ok(place) = self.admitted.clone().try_acquire_owned() else {
            return Err(Error::Overloaded("too many password checks are waiting; try again later"));
        };
        let slot = self.running.clone().acquire_owned().await.map_err(Error::internal)?;
        let work = move || {
            let _held = (place, slot);
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
    }
}

const SHORTEST: usize = 8;
const LONGEST: usize = 256;

const AT_WORK: usize = 2;
const WAITING: usize = 32;

/// The most common ones of at least eight characters, in lower case.
static COMMON: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("../common-passwords.txt").lines().collect());

/// The least that OWASP recommends.
const LEAST: Params = match Params::new(19_456, 2, 1, Some(32)) {
    Ok(params) => params,
    Err(_) => panic!("these parameters are valid"),
};

fn is_current(hash: &PasswordHash, current: &Params) -> bool {
    hash.algorithm == Algorithm::Argon2id.ident()
        && hash.version == Some(Version::V0x13.into())
        && Params::try_from(hash).is_ok_and(|params| params == *current)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use tokio::task::JoinHandle;

    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        for (password, sound) in [
            ("", false),
            ("sevenee", false),
            ("eighteen", true),
            ("ééééééé", false),
            ("éééééééé", true),
            ("        ", true),
            (&"é".repeat(256), true),
            (&"🦀".repeat(256), true),
            (&"é".repeat(257), false),
            (&"x".repeat(1_000_000), false),
        ] {
            assert_eq!(Passwords::check_length("password", password).is_ok(), sound, "{password:.20}");
        }
        let Err(Error::Invalid(errors)) = Passwords::check_length("password", "short") else {
            panic!("not refused")
        };
        assert_eq!((errors[0].field.as_ref(), errors.len()), ("password", 1));
    }

    #[test]
    fn the_passwords_that_everybody_has_are_refused() {
        assert_eq!(COMMON.len(), 3000);
        assert!(
            COMMON.iter().all(|password| password.len() >= SHORTEST && *password == password.to_lowercase())
        );
        for common in ["password", "Password", "12345678", "iloveyou", "qwertyuiop"] {
            assert!(Passwords::check_uncommon("password", common).is_err(), "{common}");
        }
        for good in ["correct horse", "password of nobody", ""] {
            assert!(Passwords::check_uncommon("password", good).is_ok(), "{good}");
        }
    }

    #[tokio::test]
    async fn the_right_password_is_right_and_others_are_wrong() {
        let passwords = Passwords::new(19_456, 2);
        let hash = passwords.hash(" correct horse ").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, passwords.hash(" correct horse ").await.unwrap(), "each has its own salt");
        let verify = async |password| passwords.verify(password, Some(&hash)).await.unwrap();
        assert_eq!(verify(" correct horse ").await, Verified::Right);
        for wrong in ["correct horse", "", " correct horse", " Correct horse ", "wrong"] {
            assert_eq!(verify(wrong).await, Verified::Wrong);
        }
    }

    #[tokio::test]
    async fn an_unknown_account_is_checked_like_any_other() {
        let passwords = Passwords::new(20_000, 3);
        let nobodys = PasswordHash::new(&passwords.nobodys).unwrap();
        assert!(is_current(&nobodys, &passwords.params), "same work as for a known account");
        assert_eq!(Passwords::new(19_456, 2).verify("whatever", None).await.unwrap(), Verified::Wrong);
    }

    #[tokio::test]
    async fn other_parameters_ask_for_a_new_hash() {
        let salt = [7; RECOMMENDED_SALT_LEN];
        let old = |algorithm, version, m, t, length| {
            let params = Params::new(m, t, 1, Some(length)).unwrap();
            let hash = Argon2::new(algorithm, version, params).hash_password_with_salt(b"password", &salt);
            hash.unwrap().to_string()
        };
        let passwords = Passwords::new(19_456, 2);
        for hash in [
            old(Algorithm::Argon2id, Version::V0x13, 8_192, 2, 32),
            old(Algorithm::Argon2id, Version::V0x13, 19_456, 1, 32),
            old(Algorithm::Argon2id, Version::V0x13, 19_456, 2, 16),
            old(Algorithm::Argon2id, Version::V0x10, 19_456, 2, 32),
            old(Algorithm::Argon2i, Version::V0x13, 19_456, 2, 32),
        ] {
            let answer = passwords.verify("password", Some(&hash)).await.unwrap();
            assert_eq!(answer, Verified::RightButRehash, "{hash}");
            assert_eq!(passwords.verify("passwort", Some(&hash)).await.unwrap(), Verified::Wrong);
        }
        let today = old(Algorithm::Argon2id, Version::V0x13, 19_456, 2, 32);
        assert_eq!(passwords.verify("password", Some(&today)).await.unwrap(), Verified::Right);
    }

    #[tokio::test]
    async fn a_broken_hash_is_our_fault_and_not_a_wrong_password() {
        let answer = Passwords::new(19_456, 2).verify("password", Some("plain")).await;
        assert!(matches!(answer, Err(Error::Internal(_))), "{answer:?}");
    }

    /// Work that goes on until the gate opens, and counts who is at it.
    #[derive(Default)]
    struct Gate {
        open: Mutex<bool>,
        opened: Condvar,
        at_work: AtomicUsize,
        most: AtomicUsize,
        done: AtomicUsize,
    }

    impl Gate {
        fn work(self: &Arc<Self>) -> impl FnOnce() -> Result<()> + Send + 'static {
            let gate = self.clone();
            move || {
                let now = gate.at_work.fetch_add(1, Ordering::SeqCst) + 1;
                gate.most.fetch_max(now, Ordering::SeqCst);
                let open = gate.open.lock().unwrap();
                drop(gate.opened.wait_while(open, |open| !*open).unwrap());
                gate.at_work.fetch_sub(1, Ordering::SeqCst);
                gate.done.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        }

        fn open(&self) {
            *self.open.lock().unwrap() = true;
            self.opened.notify_all();
        }
    }

    /// Opens the gate also when a test fails, or its runtime would wait for the work for ever.
    struct Keeper(Arc<Gate>);

    impl Drop for Keeper {
        fn drop(&mut self) {
            self.0.open();
        }
    }

    async fn until(condition: impl Fn() -> bool) {
        let met = async {
            while !condition() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), met).await.expect("it never came about");
    }

    fn begin(passwords: &Arc<Passwords>, gate: &Arc<Gate>) -> JoinHandle<Result<()>> {
        let (passwords, work) = (passwords.clone(), gate.work());
        tokio::spawn(async move { passwords.when_admitted(work).await })
    }

    #[tokio::test]
    async fn two_are_at_work_thirty_two_wait_and_the_next_is_refused() {
        let (passwords, gate) = (Arc::new(Passwords::new(19_456, 2)), Arc::new(Gate::default()));
        let _keeper = Keeper(gate.clone());
        let tasks: Vec<_> = (0..34).map(|_| begin(&passwords, &gate)).collect();
        until(|| passwords.admitted.available_permits() == 0 && gate.at_work.load(Ordering::SeqCst) >= 2)
            .await;

        for refused in
            [passwords.hash("password").await.map(drop), passwords.verify("password", None).await.map(drop)]
        {
            assert!(matches!(refused, Err(Error::Overloaded(_))), "{refused:?}");
        }

        gate.open();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!((gate.most.load(Ordering::SeqCst), gate.done.load(Ordering::SeqCst)), (2, 34));
        let _ = passwords.verify("password", None).await.expect("the queue has a free place again");
    }

    #[tokio::test]
    async fn whoever_goes_away_leaves_no_place_taken_and_no_desk_shared() {
        let (passwords, gate) = (Arc::new(Passwords::new(19_456, 2)), Arc::new(Gate::default()));
        let _keeper = Keeper(gate.clone());
        let at_work = [begin(&passwords, &gate), begin(&passwords, &gate)];
        until(|| gate.at_work.load(Ordering::SeqCst) >= 2).await;
        let waiting = begin(&passwords, &gate);
        until(|| passwords.admitted.available_permits() == 31).await;

        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(passwords.admitted.available_permits(), 32, "a place in the queue is free at once");
        for task in at_work {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert_eq!(passwords.running.available_permits(), 0, "the work goes on, and keeps its slot");

        gate.open();
        until(|| passwords.admitted.available_permits() == 34 && passwords.running.available_permits() == 2)
            .await;
        assert_eq!(gate.done.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_desk_back() {
        let passwords = Passwords::new(19_456, 2);
        let answer = passwords.when_admitted::<()>(|| panic!("on purpose")).await;
        assert!(matches!(answer, Err(Error::Internal(_))), "{answer:?}");
        assert_eq!((passwords.admitted.available_permits(), passwords.running.available_permits()), (34, 2));
    }
}
