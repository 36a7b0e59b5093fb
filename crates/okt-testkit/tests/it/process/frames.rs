//! HTTP/2 by hand, for what no client would do.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;

pub(super) fn frame(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    to.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes()[1..]);
    to.extend_from_slice(&[kind, flags]);
    to.extend_from_slice(&stream.to_be_bytes());
    to.extend_from_slice(payload);
}

/// A text of HPACK, as it is.
fn text(to: &mut Vec<u8>, text: &str) {
    if let Ok(length @ 0..127) = u8::try_from(text.len()) {
        to.push(length);
    } else {
        let mut left = text.len() - 127;
        to.push(127);
        while left >= 128 {
            to.push(u8::try_from(left % 128).unwrap() | 128);
            left /= 128;
        }
        to.push(u8::try_from(left).unwrap());
    }
    to.extend_from_slice(text.as_bytes());
}

/// The head of a request without a body, to be ended with the headers.
pub(super) fn request(method: &str, path: &str, token: Option<&str>) -> Vec<u8> {
    let mut headers = Vec::new();
    let token = token.map(|token| format!("Bearer {token}"));
    let lines = [(":method", method), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", path)];
    for (name, value) in lines.into_iter().chain(token.as_deref().map(|token| ("authorization", token))) {
        headers.push(0);
        text(&mut headers, name);
        text(&mut headers, value);
    }
    headers
}

pub(super) async fn answer(stream: &mut TcpStream, kind: u8, payload: &[u8]) {
    let mut bytes = Vec::new();
    frame(&mut bytes, kind, 1, 0, payload);
    stream.write_all(&bytes).await.unwrap();
}

pub(super) async fn read_frame(stream: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.expect("the connection stays");
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.unwrap();
    (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)
}
