//! The confusion table: kinds of tokens × verifiers × mutations. Only a whole token at its own verifier passes.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::crypto;
use serde_json::{Value, json};

use super::*;

const SECRET: &[u8] = b"the secret in force, longer than 32 bytes";
const PREVIOUS: &[u8] = b"the secret before, longer than 32 bytes too";
const RESOURCE: &str = "https://okt.example.org/api";
const ISSUER: &str = "https://okt.example.org";
const NOW: u64 = 1_800_000_000;
const HOUR: Duration = Duration::from_hours(1);

fn tokens() -> Tokens {
    Tokens::new(SECRET, Some(PREVIOUS), Some(&ISSUER.parse().unwrap()))
}

/// A token as somebody with the secret would write it by hand.
#[derive(Clone)]
struct Draft {
    header: Value,
    claims: Value,
    algorithm: Algorithm,
    secret: &'static [u8],
    /// What is done to the text once it is signed.
    after: fn(&str) -> String,
}

impl Draft {
    /// It has the claims of both kinds: so only `typ` and `aud` keep them apart, and each has to do so alone.
    fn new(kind: Kind, secret: &'static [u8]) -> Self {
        let (typ, audience) = match kind {
            Kind::Session => ("session+jwt", SESSION_AUDIENCE),
            Kind::Access => ("at+jwt", RESOURCE),
        };
        let key_id = Key::new(secret).id;
        Self {
            header: json!({ "alg": "HS256", "typ": typ, "kid": key_id }),
            claims: json!({
                "iss": ISSUER, "sub": UserId::mint(), "aud": audience, "jti": TokenId::mint(),
                "sid": SessionId::mint(), "client_id": "a client", "scope": "fact:read", "grant": GrantId::mint(),
                "iat": NOW, "exp": NOW + 3600,
            }),
            algorithm: Algorithm::HS256,
            secret,
            after: str::to_owned,
        }
    }

    fn write(&self) -> String {
        let message = format!("{}.{}", header_part(&self.header), part(&self.claims));
        let key = EncodingKey::from_secret(self.secret);
        let signature = crypto::sign(message.as_bytes(), &key, self.algorithm).unwrap();
        (self.after)(&format!("{message}.{signature}"))
    }

    fn is_session(&self) -> bool {
        self.claims["aud"] == SESSION_AUDIENCE
    }
}

/// In the order of our own headers, so that a mutation is the only difference.
fn header_part(header: &Value) -> String {
    let ours = |name: &String| ["typ", "alg"].iter().position(|own| own == name).unwrap_or(2);
    let Some(fields) = header.as_object() else { return part(header) };
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| ours(name));
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    BASE64_URL_SAFE_NO_PAD.encode(format!("{{{}}}", fields.join(",")))
}

fn part(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

fn parts(token: &str) -> [&str; 3] {
    token.split('.').collect::<Vec<_>>().try_into().unwrap()
}

fn remove(object: &mut Value, name: &str) {
    object.as_object_mut().unwrap().remove(name).unwrap();
}

type Mutation = (&'static str, fn(&mut Draft));

const MUTATIONS: &[Mutation] = &[
    // The algorithm.
    ("alg none, unsigned", |d| {
        d.header["alg"] = json!("none");
        d.after = unsigned;
    }),
    ("alg None, unsigned", |d| {
        d.header["alg"] = json!("None");
        d.after = unsigned;
    }),
    ("alg none, signed", |d| d.header["alg"] = json!("none")),
    ("alg missing", |d| remove(&mut d.header, "alg")),
    ("alg HS384", |d| {
        d.header["alg"] = json!("HS384");
        d.algorithm = Algorithm::HS384;
    }),
    ("alg HS512", |d| {
        d.header["alg"] = json!("HS512");
        d.algorithm = Algorithm::HS512;
    }),
    ("alg RS256 over an HMAC", |d| d.header["alg"] = json!("RS256")),
    ("alg ES256 over an HMAC", |d| d.header["alg"] = json!("ES256")),
    ("alg HS256 over another", |d| d.algorithm = Algorithm::HS512),
    ("alg in lower case", |d| d.header["alg"] = json!("hs256")),
    // The rest of the header.
    ("typ of the other kind", |d| {
        d.header["typ"] = json!(if d.is_session() { "at+jwt" } else { "session+jwt" });
    }),
    ("typ missing", |d| remove(&mut d.header, "typ")),
    ("typ JWT", |d| d.header["typ"] = json!("JWT")),
    ("kid unknown", |d| d.header["kid"] = json!("0123456789abcdef")),
    ("kid missing", |d| remove(&mut d.header, "kid")),
    ("kid of the other secret", |d| {
        let other = if d.secret == SECRET { PREVIOUS } else { SECRET };
        d.header["kid"] = json!(Key::new(other).id);
    }),
    ("kid a path", |d| d.header["kid"] = json!("../../dev/null")),
    ("jwk", |d| d.header["jwk"] = json!({ "kty": "oct", "k": part(&json!("mine")) })),
    ("jku", |d| d.header["jku"] = json!("https://evil.example/keys")),
    ("x5u", |d| d.header["x5u"] = json!("https://evil.example/keys")),
    ("x5c", |d| d.header["x5c"] = json!(["MIIB"])),
    ("crit", |d| d.header["crit"] = json!(["exp"])),
    ("crit b64", |d| {
        d.header["crit"] = json!(["b64"]);
        d.header["b64"] = json!(false);
    }),
    ("a header of no meaning", |d| d.header["extra"] = json!(1)),
    ("a header that is no object", |d| d.header = json!("HS256")),
    // The claims.
    ("aud of the other kind", |d| {
        d.claims["aud"] = json!(if d.is_session() { RESOURCE } else { SESSION_AUDIENCE });
    }),
    ("aud of somebody else", |d| d.claims["aud"] = json!("https://other.example")),
    ("aud missing", |d| remove(&mut d.claims, "aud")),
    ("aud a list", |d| d.claims["aud"] = json!([SESSION_AUDIENCE, RESOURCE])),
    ("iss of somebody else", |d| d.claims["iss"] = json!("https://evil.example")),
    ("iss as if none were configured", |d| d.claims["iss"] = json!("okt")),
    ("iss with a slash", |d| d.claims["iss"] = json!(format!("{ISSUER}/"))),
    ("iss missing", |d| remove(&mut d.claims, "iss")),
    ("iss a list", |d| d.claims["iss"] = json!([ISSUER])),
    ("sub missing", |d| remove(&mut d.claims, "sub")),
    ("sub no id", |d| d.claims["sub"] = json!("admin")),
    ("what only its kind has missing", |d| {
        let own = if d.is_session() { "sid" } else { "client_id" };
        remove(&mut d.claims, own);
    }),
    ("jti missing", |d| remove(&mut d.claims, "jti")),
    ("exp past", |d| d.claims["exp"] = json!(NOW - LEEWAY)),
    ("exp missing", |d| remove(&mut d.claims, "exp")),
    ("exp a text", |d| d.claims["exp"] = json!((NOW + 3600).to_string())),
    ("exp null", |d| d.claims["exp"] = Value::Null),
    ("exp negative", |d| d.claims["exp"] = json!(-1)),
    ("exp beyond numbers", |d| d.claims["exp"] = json!(1e300)),
    ("iat in the future", |d| d.claims["iat"] = json!(NOW + LEEWAY + 1)),
    ("iat missing", |d| remove(&mut d.claims, "iat")),
    ("iat a text", |d| d.claims["iat"] = json!(NOW.to_string())),
    ("claims that are no object", |d| d.claims = json!([])),
    ("too long", |d| d.claims["pad"] = json!("x".repeat(8192))),
    // Who signed it, and what became of it.
    ("another secret", |d| d.secret = b"a secret that is none of ours, 32 bytes"),
    ("an empty secret", |d| d.secret = b""),
    ("signature stripped", |d| d.after = unsigned),
    ("signature left out", |d| d.after = |token| parts(token)[..2].join(".")),
    ("signature truncated", |d| d.after = |token| token[..token.len() - 4].to_owned()),
    ("signature padded", |d| d.after = |token| format!("{token}=")),
    ("signature of another token", |d| {
        d.after = |token| {
            let other = Draft::new(Kind::Session, SECRET).write();
            let ([header, claims, _], [.., signature]) = (parts(token), parts(&other));
            format!("{header}.{claims}.{signature}")
        };
    }),
    ("claims altered", |d| {
        d.after = |token| {
            let [header, claims, signature] = parts(token);
            let mut claims: Value =
                serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
            claims["sub"] = json!(UserId::mint());
            format!("{header}.{}.{signature}", part(&claims))
        };
    }),
    ("a fourth part", |d| d.after = |token| format!("{token}.e30")),
    ("a part in front", |d| d.after = |token| format!("e30.{token}")),
    ("a blank behind", |d| d.after = |token| format!("{token} ")),
    ("nothing at all", |d| d.after = |_| String::new()),
];

fn unsigned(token: &str) -> String {
    let [header, claims, _] = parts(token);
    format!("{header}.{claims}.")
}

#[test]
fn only_whole_tokens_pass_and_only_at_their_own_verifier() {
    let tokens = tokens();
    let kinds = [
        ("session", Draft::new(Kind::Session, SECRET)),
        ("access", Draft::new(Kind::Access, SECRET)),
        ("session of the previous secret", Draft::new(Kind::Session, PREVIOUS)),
        ("access of the previous secret", Draft::new(Kind::Access, PREVIOUS)),
    ];
    let untouched: Mutation = ("untouched", |_| {});
    let mut passed = Vec::new();
    for (kind, draft) in &kinds {
        for (mutation, mutate) in [&untouched].into_iter().chain(MUTATIONS) {
            let mut draft = draft.clone();
            mutate(&mut draft);
            let token = draft.write();
            if tokens.verify_session(&token, NOW).is_some() {
                passed.push((*kind, *mutation, "session"));
            }
            if tokens.verify_access(&token, ISSUER, RESOURCE, NOW).is_some() {
                passed.push((*kind, *mutation, "access"));
            }
        }
    }
    let expected = [
        ("session", "untouched", "session"),
        ("access", "untouched", "access"),
        ("session of the previous secret", "untouched", "session"),
        ("access of the previous secret", "untouched", "access"),
    ];
    assert_eq!(passed, expected);
}

#[test]
fn one_altered_character_anywhere_is_noticed() {
    let tokens = tokens();
    let token = tokens.sign_session(UserId::mint(), SessionId::mint(), TokenId::mint(), NOW, HOUR);
    for at in 0..token.len() {
        for other in ["A", "B", "-", "."] {
            let altered = format!("{}{other}{}", &token[..at], &token[at + 1..]);
            assert_eq!(tokens.verify_session(&altered, NOW).is_some(), altered == token, "at {at}: {other}");
        }
    }
}

#[test]
fn what_is_signed_is_what_the_contract_names() {
    let tokens = tokens();
    let (user, session, id) = (UserId::mint(), SessionId::mint(), TokenId::mint());
    let token = tokens.sign_session(user, session, id, NOW, HOUR);
    let claims = tokens.verify_session(&token, NOW).unwrap();
    assert_eq!((claims.sub, claims.sid, claims.jti), (user, session, id));
    assert_eq!(claims_of(&token), ["aud", "exp", "iat", "iss", "jti", "sid", "sub"]);

    let new = NewAccess {
        issuer: ISSUER,
        user,
        audience: RESOURCE,
        client: "a client",
        scope: "fact:read",
        grant: GrantId::mint(),
        id,
    };
    let token = tokens.sign_access(&new, NOW, HOUR);
    let claims = tokens.verify_access(&token, ISSUER, RESOURCE, NOW).unwrap();
    assert_eq!(
        (claims.sub, claims.client_id.as_str(), claims.scope.as_str()),
        (user, "a client", "fact:read")
    );
    assert_eq!(claims_of(&token), ["aud", "client_id", "exp", "grant", "iat", "iss", "jti", "scope", "sub"]);
    assert_eq!(tokens.verify_access(&token, ISSUER, ISSUER, NOW), None, "another resource");
    assert_eq!(tokens.verify_session(&token, NOW), None);
}

fn claims_of(token: &str) -> Vec<String> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(parts(token)[1]).unwrap();
    let claims: serde_json::Map<_, _> = serde_json::from_slice(&claims).unwrap();
    let mut names: Vec<_> = claims.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

#[test]
fn a_token_lasts_its_time_give_or_take_the_leeway() {
    let tokens = tokens();
    let token = tokens.sign_session(UserId::mint(), SessionId::mint(), TokenId::mint(), NOW, HOUR);
    let end = NOW + 3600 + LEEWAY;
    for (now, passes) in [
        (NOW - LEEWAY - 1, false),
        (NOW - LEEWAY, true),
        (NOW, true),
        (end - 1, true),
        (end, false),
        (0, false),
    ] {
        assert_eq!(tokens.verify_session(&token, now).is_some(), passes, "{now}");
    }
    let endless = tokens.sign_session(UserId::mint(), SessionId::mint(), TokenId::mint(), NOW, Duration::MAX);
    assert!(tokens.verify_session(&endless, NOW).is_some(), "no overflow");
}

#[test]
fn a_change_of_secret_signs_nobody_out_and_the_next_one_does() {
    let session =
        |tokens: &Tokens| tokens.sign_session(UserId::mint(), SessionId::mint(), TokenId::mint(), NOW, HOUR);
    let before = Tokens::new(PREVIOUS, None, None);
    let changed = Tokens::new(SECRET, Some(PREVIOUS), None);
    let after = Tokens::new(b"yet another secret, longer than 32 bytes", Some(SECRET), None);
    assert!(changed.verify_session(&session(&before), NOW).is_some());
    assert!(after.verify_session(&session(&changed), NOW).is_some(), "the new one signs");
    assert!(before.verify_session(&session(&changed), NOW).is_none());
    assert!(after.verify_session(&session(&before), NOW).is_none());
}

#[test]
fn an_empty_previous_secret_opens_nothing() {
    let forged = Tokens::new(b"", None, None).sign_session(
        UserId::mint(),
        SessionId::mint(),
        TokenId::mint(),
        NOW,
        HOUR,
    );
    assert!(Tokens::new(SECRET, Some(b""), None).verify_session(&forged, NOW).is_none());
}

#[test]
fn installations_without_an_issuer_sign_as_okt() {
    let tokens = Tokens::new(SECRET, None, None);
    let token = tokens.sign_session(UserId::mint(), SessionId::mint(), TokenId::mint(), NOW, HOUR);
    assert_eq!(tokens.verify_session(&token, NOW).unwrap().iss, "okt");
    let with_issuer = self::tokens();
    assert!(with_issuer.verify_session(&token, NOW).is_none());
}
