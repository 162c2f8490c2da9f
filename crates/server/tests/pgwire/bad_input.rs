//! Bytes that make no sense: an error or a closed connection, and the server goes on.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{PATIENCE, Served};

const STARTUP: &[u8] = b"\0\0\0\x11\0\x03\0\0user\0me\0\0";

/// All that the server says to these bytes until it hangs up.
async fn answered(served: &Served, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(served.address).await.unwrap();
    // The server may hang up before it has read everything.
    let _ = socket.write_all(bytes).await;
    rest(socket).await
}

/// The same where the client closes its own half first.
async fn said(served: &Served, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(served.address).await.unwrap();
    let _ = socket.write_all(bytes).await;
    let _ = socket.shutdown().await;
    rest(socket).await
}

async fn rest(mut socket: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, socket.read_to_end(&mut answer)).await;
    // A reset is a way of closing, too.
    let _ = read.expect("the server hangs up");
    answer
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}

fn after_startup(messages: &[u8]) -> Vec<u8> {
    [STARTUP, messages].concat()
}

fn contains(answer: &[u8], text: &str) -> bool {
    text.is_empty()
        || answer
            .windows(text.len())
            .any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_opens_wrongly_is_closed() {
    let served = Served::start().await;
    let wrong: [(&[u8], &str); 8] = [
        (b"", ""),
        (b"\0\0", ""),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "invalid length of startup packet",
        ),
        (b"\0\0\0\x08\0\x02\0\0", "protocol 2.0 is not supported"),
        (b"\0\0\0\x09\0\x03\0\0\0", "no user name in startup packet"),
        (b"\0\0\0\x0c\0\x03\0\0user", "invalid message format"),
        (
            b"\x7f\xff\xff\xff\0\x03\0\0",
            "invalid length of startup packet",
        ),
        (
            b"\0\0\0\x28\0\x03\0\0user\0me\0client_encoding\0LATIN1\0\0",
            "'LATIN1' is not supported",
        ),
    ];
    for (bytes, expected) in wrong {
        let answer = said(&served, bytes).await;
        assert!(
            contains(&answer, expected),
            "{bytes:?}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    let encryption = said(&served, b"\0\0\0\x08\x04\xd2\x16\x2f").await;
    assert_eq!(encryption, b"N");
    assert_eq!(served.connect().await.rows("SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_lie_are_errors_and_not_panics() {
    let served = Served::start().await;
    let wrong: [(Vec<u8>, &str); 9] = [
        (message(b'!', b""), "invalid frontend message type 33"),
        (message(b'p', b"secret\0"), "no password was asked for"),
        (message(b'Q', b"SELECT 1"), "no bytes are left"),
        (message(b'Q', b"SELECT '\xff'\0"), "invalid byte sequence"),
        (
            message(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff"),
            "no bytes are left",
        ),
        (
            message(b'E', b"nosuch\0\0\0\0\0"),
            "portal \"nosuch\" does not exist",
        ),
        (
            message(b'D', b"Xnosuch\0"),
            "neither a statement nor a portal",
        ),
        (b"Q\0\0\0\x01".to_vec(), "invalid message length"),
        (b"Q\x7f\xff\xff\xff".to_vec(), "too long"),
    ];
    for (bytes, expected) in wrong {
        // What can be told apart is followed by a good-bye.
        let bytes = [bytes, message(b'X', b"")].concat();
        let answer = answered(&served, &after_startup(&bytes)).await;
        assert!(
            contains(&answer, expected),
            "{bytes:?}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(served.connect().await.rows("SELECT 1").await, ["1"]);
    assert!(!served.server.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_series_skips_to_its_sync() {
    let served = Served::start().await;
    let parse = |sql: &str| message(b'P', format!("\0{sql}\0\0\0").as_bytes());
    let series = [
        parse("SELECT nosuch"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
        parse("SELECT 'fine'"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
        message(b'X', b""),
    ];
    let answer = answered(&served, &after_startup(&series.concat())).await;
    let text = String::from_utf8_lossy(&answer);
    assert_eq!(text.matches("\"nosuch\"").count(), 1, "{text}");
    assert!(!text.contains("portal"), "{text}");
    assert!(text.contains("fine"), "{text}");
}

/// Deterministic noise, in and after the opening.
#[tokio::test(flavor = "multi_thread")]
async fn noise_does_no_harm() {
    use rand::{Rng, SeedableRng, rngs::StdRng};
    let served = Served::start().await;
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes: Vec<u8> = (0..random.random_range(1..400))
            .map(|_| random.random())
            .collect();
        if seed % 3 == 1 {
            bytes = after_startup(&bytes);
        } else if seed % 3 == 2 {
            // Messages of known kinds with noise in them.
            let tag = b"QPBDECHS"[random.random_range(0..8)];
            bytes = after_startup(&message(tag, &bytes));
        }
        let answered = timeout(PATIENCE, said(&served, &bytes)).await;
        answered.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    assert_eq!(served.connect().await.rows("SELECT 1").await, ["1"]);
    assert!(!served.server.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_served_while_one_says_nothing() {
    let served = Served::start().await;
    let silent = TcpStream::connect(served.address).await.unwrap();
    let mut half = TcpStream::connect(served.address).await.unwrap();
    half.write_all(&STARTUP[..9]).await.unwrap();
    assert_eq!(served.connect().await.rows("SELECT 1").await, ["1"]);
    drop((silent, half));
    served.shutdown.send_replace(true);
    timeout(PATIENCE.max(Duration::from_secs(1)), served.server)
        .await
        .unwrap()
        .unwrap();
}
