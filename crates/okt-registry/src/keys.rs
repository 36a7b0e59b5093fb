//! Keys: who may pull, and who may push as well.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use chrono::{DateTime, Utc};
use hkdf::Hkdf;
use okt_config::Secret;
use okt_model::{Error, Result, checked_name};
use rand::TryRng as _;
use rand::rngs::SysRng;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{Registry, store};

const ID: usize = 12;
const SECRET: usize = 40;
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key as it is listed.
#[derive(Clone, Debug)]
pub struct Key {
    pub id: String,
    pub name: String,
    pub may_write: bool,
    pub daily_pushes: Option<i32>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// A key that is to be.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    pub may_write: bool,
    pub daily_pushes: Option<u32>,
    pub days: Option<u32>,
}

impl Registry {
    /// Makes a key; it is shown this once.
    pub async fn create_key(&self, new: &NewKey) -> Result<Secret> {
        let name = checked_name("name", &new.name, 1, 200)?;
        let id = format!("okg_{}", random(ID)?);
        let secret = random(SECRET)?;
        let whole = format!("{id}.{secret}");
        let sealed = self.seal.seal(id.as_bytes(), secret.as_bytes())?;
        let key = store::KeyRow {
            id,
            name,
            hash: hash(&whole).to_vec(),
            sealed,
            may_write: new.may_write,
            daily_pushes: new.daily_pushes.map(|count| i32::try_from(count).unwrap_or(i32::MAX)),
        };
        let days = new.days.map(|days| i32::try_from(days).unwrap_or(i32::MAX));
        let mut conn = self.acquire().await?;
        store::insert_key(&mut conn, &key, days).await?;
        Ok(Secret::from(whole))
    }

    pub async fn list_keys(&self) -> Result<Vec<Key>> {
        let mut conn = self.acquire().await?;
        Ok(store::list_keys(&mut conn).await?)
    }

    /// It lets nobody in any more; false if there is no such key. What it pushed stays, until it is withdrawn.
    pub async fn revoke_key(&self, id: &str) -> Result<bool> {
        let mut conn = self.acquire().await?;
        Ok(store::revoke_key(&mut conn, id).await?)
    }

    /// Withdraws everything that a key has pushed; how many packages and bundles.
    pub async fn withdraw_all_of(&self, id: &str, why: &str) -> Result<(u64, u64)> {
        let mut tx = self.begin().await?;
        let withdrawn = store::withdraw_all_of(&mut tx, id, why).await?;
        tx.commit().await?;
        Ok(withdrawn)
    }
}

/// Whether this is the whole key that the hash is of.
pub(crate) fn is_key(whole: &str, kept: &[u8]) -> bool {
    hash(whole).as_slice().ct_eq(kept).into()
}

fn hash(whole: &str) -> [u8; 32] {
    Sha256::digest(whole).into()
}

/// So many characters, each as likely as any other.
fn random(length: usize) -> Result<String> {
    let (mut text, mut bytes) = (String::new(), [0; 64]);
    while text.len() < length {
        SysRng.try_fill_bytes(&mut bytes).map_err(Error::internal)?;
        let fair = bytes.iter().filter(|byte| **byte < 248);
        text.extend(fair.map(|byte| char::from(LETTERS[usize::from(byte % 62)])).take(length - text.len()));
    }
    Ok(text)
}

/// Encrypts the secrets of keys, bound to the ids of the keys.
pub(crate) struct Seal {
    /// What is sealed now.
    present: LessSafeKey,
    /// What was sealed before the signing secret was changed.
    previous: Option<LessSafeKey>,
}

impl Seal {
    pub(crate) fn derive(secret: &[u8], previous: Option<&[u8]>) -> Self {
        let key = |secret: &[u8]| {
            let mut bytes = [0; 32];
            Hkdf::<Sha256>::new(None, secret)
                .expand(b"registry keys", &mut bytes)
                .expect("32 bytes are a valid length");
            LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).expect("32 bytes are a valid key"))
        };
        Self { present: key(secret), previous: previous.map(key) }
    }

    fn seal(&self, id: &[u8], secret: &[u8]) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        SysRng.try_fill_bytes(&mut nonce).map_err(Error::internal)?;
        let mut sealed = secret.to_vec();
        let tag = Nonce::assume_unique_for_key(nonce);
        self.present.seal_in_place_append_tag(tag, Aad::from(id), &mut sealed).map_err(Error::internal)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// `None` if it was sealed with a signing secret that is neither the present one nor the one before.
    pub(crate) fn open(&self, id: &[u8], sealed: &[u8]) -> Option<String> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        [Some(&self.present), self.previous.as_ref()].into_iter().flatten().find_map(|key| {
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let plain = key.open_in_place(nonce, Aad::from(id), &mut sealed).ok()?;
            String::from_utf8(plain.to_vec()).ok()
        })
    }
}
