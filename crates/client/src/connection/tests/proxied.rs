//! Requests through proxies. The environment belongs to a process, so each case runs in one of its own.

use std::process::{Command, Output};

use super::*;

const SERVER: &str = "TEST_SERVER";

/// Runs [`asks`] with these variables.
fn run(server: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "connection::tests::proxied::asks",
        "--ignored",
        "--nocapture",
    ]);
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ] {
        command.env_remove(name);
    }
    command.env(SERVER, server).envs(variables.iter().copied());
    command.output().unwrap()
}

#[tokio::test]
#[ignore = "the other tests run it, in an environment of its own"]
async fn asks() {
    let server = std::env::var(SERVER).unwrap();
    let connection = Connection::new(server.parse().unwrap(), "test");
    let said = match connection {
        Ok(connection) => runs(&connection).await.unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    println!("said: {said}");
}

/// What a request to a port where nothing listens fails with.
fn said(variables: &[(&str, &str)]) -> String {
    let output = run("http://127.0.0.1:2", variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("said: "), "{text}");
    text
}

#[test]
fn a_dead_proxy_is_named_without_its_password() {
    let text = said(&[("HTTP_PROXY", "http://ann:SECRET@127.0.0.1:1")]);
    assert!(
        text.contains("through the proxy http://127.0.0.1:1 of HTTP_PROXY"),
        "{text}"
    );
    assert!(!text.contains("SECRET"), "{text}");
}

#[test]
fn exceptions_hold_for_addresses() {
    for exception in ["*", "127.0.0.1", "127.0.0.0/8"] {
        let text = said(&[
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("NO_PROXY", exception),
        ]);
        assert!(
            text.contains("not reachable") && !text.contains("through"),
            "{exception}: {text}"
        );
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_named() {
    let text = said(&[("ALL_PROXY", "socks5://ann:SECRET@127.0.0.1:1")]);
    assert!(
        text.contains("ALL_PROXY is no proxy that can be used"),
        "{text}"
    );
    assert!(!text.contains("SECRET"), "{text}");
}
