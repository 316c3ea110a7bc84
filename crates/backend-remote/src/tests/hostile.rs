//! Clients that lie, stall, flood or do not know the token harm only themselves.

use std::io::Write as _;
use std::net::Shutdown;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use rookery_common::encoding::PolicyEncoding;
use rookery_common::ids::ContentHash;
use rookery_common::network::{NetworkSpec, PolicySpec};

use super::clients::GatedBackend;
use super::raw::Raw;
use super::*;
use crate::frame::frame;
use crate::message::{DATA_BYTES, Reply, Request};
use crate::positions::{part_from, write_positions};
use crate::{MAX_POSITIONS, ServerError, VERSION};

/// Evaluates as an honest client.
fn check_honest(server: &Server) {
    let weights = weights(1);
    let batch = batch(&weights, 5, 9);
    let mut answer = Evaluations::default();
    let mut evaluator = connect(server).load(&weights).unwrap().evaluator();
    let before = server.statistics().positions;
    evaluator.evaluate(&batch, &mut answer).unwrap();
    assert!(answer == expected(&weights, &batch));
    // Batches of a client that is gone may still be under way.
    let counted = server.statistics().positions - before;
    assert!(counted >= 5, "it was the server, which counts {counted}");
}

#[test]
fn lengths_are_refused_before_memory_is_taken() {
    let server = serve(cpu(), ServerOptions::default());
    for length in [0, 300, 1 << 21, u32::MAX] {
        let mut stranger = Raw::stranger(&server);
        stranger.write(&length.to_le_bytes());
        stranger.is_closed();
    }
    for length in [0, (2 << 20) + 1, u32::MAX] {
        let mut client = Raw::known(&server);
        client.write(&length.to_le_bytes());
        let why = client.refusal();
        assert!(why.contains(&format!("a frame of {length} bytes")), "{why}");
    }
    check_honest(&server);
}

#[test]
fn what_breaks_the_protocol_is_named_and_ends_the_connection() {
    let server = serve(cpu(), ServerOptions::default());
    let file = weights(1).to_bytes().unwrap();
    let hash = ContentHash::of(&file);
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (Request::Data(b"unasked").to_frame(), "not asked for"),
        (Request::Release { network: 3 }.to_frame(), "a network 3"),
        (frame(99, |_| {}), "unknown kind 99"),
        (frame(5, |out| out.push(1)), "too short"),
        (frame(5, |out| out.extend([0; 9])), "5 bytes too many"),
    ];
    for length in [0, (1 << 30) + 1, u64::MAX] {
        let request = Request::Network { hash, length };
        cases.push((request.to_frame(), "allowed is 1 to"));
    }
    let (version, proof) = (VERSION, [0; 32]);
    cases.push((
        Request::Hello { version, proof }.to_frame(),
        "second greeting",
    ));
    let evaluate = |network, positions| Request::Evaluate {
        id: 1,
        network,
        positions,
    };
    cases.push((evaluate(0, b"xx").to_frame(), "a network 0"));
    for (bytes, expected) in cases {
        let mut client = Raw::known(&server);
        client.write(&bytes);
        let why = client.refusal();
        assert!(why.contains(expected), "{why}");
    }
    let large = vec![0; DATA_BYTES + 1];
    let mut client = Raw::known(&server);
    client.send(Request::Network {
        hash,
        length: 1 << 30,
    });
    assert_eq!(client.next().0, 19);
    client.send(Request::Data(&large));
    assert!(client.refusal().contains("of a network at once"));
    for positions in [&b""[..], &[1, 0], &[0, 0], &[0xff; 70]] {
        let mut client = Raw::known(&server);
        let network = client.load(&file);
        client.send(evaluate(network, positions));
        let why = client.refusal();
        assert!(why.contains("the protocol was broken"), "{why}");
    }
    check_honest(&server);
}

#[test]
fn a_file_that_is_not_the_network_that_was_named_is_not_loaded() {
    let server = serve(cpu(), ServerOptions::default());
    let file = weights(1).to_bytes().unwrap();
    let other = ContentHash::of(b"other");
    let length = file.len() as u64;
    for (hash, bytes, expected) in [
        (other, &file[..], "and not"),
        (ContentHash::of(b"no network"), b"no network", ""),
    ] {
        let mut client = Raw::known(&server);
        let length = bytes.len() as u64;
        client.send(Request::Network { hash, length });
        assert_eq!(client.next().0, 19);
        client.send_file(bytes);
        let (kind, payload) = client.next();
        match Reply::read(kind, &payload).unwrap() {
            Reply::Failed { passing, why } => assert!(!passing && why.contains(expected), "{why}"),
            reply => panic!("{reply:?}"),
        }
        // The client may go on.
        client.load(&file);
    }
    let mut client = Raw::known(&server);
    client.send(Request::Network {
        hash: other,
        length,
    });
    assert_eq!(client.next().0, 19);
    client.send_file(&[file.as_slice(), b"x"].concat());
    assert!(
        client.refusal().contains("has not its"),
        "one byte too many"
    );
    check_honest(&server);
}

#[test]
fn a_network_that_is_there_is_not_sent_again() {
    let server = serve(cpu(), ServerOptions::default());
    let file = weights(1).to_bytes().unwrap();
    let (hash, length) = (ContentHash::of(&file), file.len() as u64);
    let mut first = Raw::known(&server);
    first.load(&file);
    let mut second = Raw::known(&server);
    for client in [&mut first, &mut second] {
        client.send(Request::Network { hash, length });
        assert_eq!(client.next().0, 20, "ready at once");
    }
}

#[test]
fn a_client_uses_no_more_networks_than_it_may() {
    let mut options = ServerOptions::default();
    options.limits.networks_of_client = 2;
    let server = serve(cpu(), options);
    let file = weights(1).to_bytes().unwrap();
    let (hash, length) = (ContentHash::of(&file), file.len() as u64);
    let mut client = Raw::known(&server);
    let numbers = [client.load(&file), client.load(&file)];
    client.send(Request::Network { hash, length });
    let (kind, payload) = client.next();
    match Reply::read(kind, &payload).unwrap() {
        Reply::Failed { passing, why } => assert!(passing && why.contains("2 networks"), "{why}"),
        reply => panic!("{reply:?}"),
    }
    client.send(Request::Release {
        network: numbers[0],
    });
    client.load(&file);
}

#[test]
fn who_does_not_greet_is_disconnected() {
    let mut options = ServerOptions::default();
    options.limits.greeting_time = Duration::from_millis(50);
    let server = serve(cpu(), options);
    Raw::stranger(&server).is_closed();
}

#[test]
fn who_stalls_in_the_middle_of_a_frame_is_disconnected() {
    let mut options = ServerOptions::default();
    options.limits.frame_time = Duration::from_secs(1);
    let server = serve(cpu(), options);
    let mut known = Raw::known(&server);
    known.write(&100_u32.to_le_bytes());
    known.write(&[4, 0, 0]);
    // A network that never arrives is such a frame, too.
    let mut uploading = Raw::known(&server);
    let (hash, length) = (ContentHash::of(b"x"), 1000);
    uploading.send(Request::Network { hash, length });
    assert_eq!(uploading.next().0, 19);
    check_honest(&server);
    assert!(known.refusal().contains("not finished"));
    assert!(uploading.refusal().contains("nothing was received"));
}

#[test]
fn who_floods_waits_and_holds_up_nobody() {
    let backend = GatedBackend::new();
    let gate = Arc::clone(&backend.gate);
    let mut options = ServerOptions::default();
    options.limits.batches_in_flight = 3;
    let server = serve(Arc::new(backend), options);
    let weights = weights(1);
    let file = weights.to_bytes().unwrap();
    let mut flooding = Raw::known(&server);
    let network = flooding.load(&file);
    let own = batch(&weights, 2, 1);
    let mut positions = Vec::new();
    write_positions(&own, 0..2, &mut positions);
    let flood = |client: &mut Raw, ids: std::ops::Range<u32>| {
        for id in ids {
            let positions = &positions;
            client.send(Request::Evaluate {
                id,
                network,
                positions,
            });
        }
    };
    flood(&mut flooding, 0..1);
    eventually("the device is busy", || gate.entered.load(Relaxed) == 1);
    flood(&mut flooding, 1..40);
    eventually("two more wait", || server.statistics().waiting == 2);
    let honest = thread::spawn({
        let remote = connect(&server);
        move || {
            let batch = batch(&weights, 7, 2);
            let mut answer = Evaluations::default();
            let mut evaluator = remote.load(&weights).unwrap().evaluator();
            evaluator.evaluate(&batch, &mut answer).unwrap();
            assert!(answer == expected(&weights, &batch));
        }
    });
    eventually("the honest batch waits", || {
        server.statistics().waiting == 3
    });
    gate.open();
    honest.join().unwrap();
    // In the end it gets all its answers, too.
    for _ in 0..40 {
        assert_eq!(flooding.next().0, 22);
    }
    // The honest one was in the second batch of the device, with two or three of the flood's pairs.
    let computed = gate.computed.lock().unwrap();
    assert_eq!(computed[0], 2);
    assert!([11, 13].contains(&computed[1]), "{computed:?}");
}

#[test]
fn who_reads_no_answers_is_disconnected() {
    let mut options = ServerOptions::default();
    options.limits.write_time = Duration::from_millis(100);
    let server = serve(cpu(), options);
    let mut spec = NetworkSpec::resnet(1, 8);
    spec.policy = PolicySpec {
        encoding: PolicyEncoding::Az73,
        ..spec.policy
    };
    let weights = Weights::random(spec, 1).unwrap();
    let mut client = Raw::known(&server);
    let network = client.load(&weights.to_bytes().unwrap());
    // Every index of the policy, so that answers are large.
    let mut batch = Batch::new(weights.spec().input, PolicyEncoding::Az73);
    let game = rookery_common::chess::GameHistory::default();
    (0..MAX_POSITIONS).for_each(|_| batch.push_indices(&game, 0..4672));
    let mut positions = Vec::new();
    write_positions(&batch, part_from(&batch, 0), &mut positions);
    let request = Request::Evaluate {
        id: 1,
        network,
        positions: &positions,
    };
    let flooding = thread::spawn({
        let (mut stream, frame) = (client.stream.try_clone().unwrap(), request.to_frame());
        // Ends when the server has closed the connection.
        move || while stream.write_all(&frame).is_ok() {}
    });
    eventually("it is disconnected", || server.statistics().clients == 0);
    let _ = client.stream.shutdown(Shutdown::Both);
    flooding.join().unwrap();
    check_honest(&server);
}

/// A request for a network. A server that allows a client none answers it with a failure.
fn network_request() -> Vec<u8> {
    let (hash, length) = (ContentHash::of(b"x"), 1000);
    Request::Network { hash, length }.to_frame()
}

#[test]
fn who_asks_for_networks_and_reads_no_answers_is_not_read_any_further() {
    /// More frames than the buffers of both sockets hold in requests and answers: 128 MB.
    const TOO_MANY: usize = 3 << 20;
    let mut options = ServerOptions::default();
    options.limits.networks_of_client = 0;
    options.limits.write_time = LONG;
    let server = serve(cpu(), options);
    let mut client = Raw::known(&server);
    let frame = network_request();
    let frames = frame.repeat(1000);
    // A machine that is too slow for this makes the test weaker, never wrong.
    let stalled = Duration::from_secs(2);
    client.stream.set_write_timeout(Some(stalled)).unwrap();
    let mut sent = 0;
    while sent < TOO_MANY * frame.len() {
        match client.stream.write(&frames[sent % frame.len()..]) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
    }
    let asked = sent / frame.len();
    assert!(asked < TOO_MANY, "the server has read or kept everything");
    // It goes on when the answers are read, and none is lost.
    let _ = client.stream.shutdown(Shutdown::Write);
    for _ in 0..asked {
        assert_eq!(client.next().0, 21);
    }
    client.is_closed();
    eventually("none is left", || server.statistics().clients == 0);
}

#[test]
fn who_asks_for_networks_and_reads_no_answers_is_disconnected() {
    let mut options = ServerOptions::default();
    options.limits.networks_of_client = 0;
    options.limits.write_time = Duration::from_millis(100);
    let server = serve(cpu(), options);
    let mut client = Raw::known(&server);
    let frames = network_request().repeat(1000);
    // Ends when the server has closed the connection.
    while client.stream.write_all(&frames).is_ok() {}
    // Its reader has ended as well, although it waited for room.
    eventually("none is left", || server.statistics().clients == 0);
}

#[test]
fn only_who_knows_the_token_is_served() {
    let token = "correct horse battery staple";
    let options = ServerOptions {
        token: Some(DeviceToken::parse(token).unwrap()),
        ..ServerOptions::default()
    };
    let server = serve(cpu(), options);
    let address = address(&server);
    let refused = |token| {
        let error = open(&address, token, LONG).unwrap_err().to_string();
        assert!(error.contains("--device-token-file"), "{error}");
        error
    };
    assert!(refused(Some("incorrect horse battery")).contains("token is wrong"));
    assert!(refused(None).contains("asks for a token"));
    let mut stranger = Raw::stranger(&server);
    stranger.send(Request::Release { network: 0 });
    stranger.is_closed();
    open(&address, Some(token), LONG).unwrap();
    eventually("none is left", || server.statistics().clients == 0);
}

#[test]
fn other_machines_are_not_served_without_a_token() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let started = Server::start(listener, cpu(), NonZeroUsize::MIN, ServerOptions::default());
    let error = started.unwrap_err();
    assert!(matches!(error, ServerError::NeedsToken(_)), "{error}");
    assert!(error.to_string().contains("--device-token-file"), "{error}");
}

#[test]
fn another_version_is_told_what_to_do() {
    let server = serve(cpu(), ServerOptions::default());
    let mut client = Raw::stranger(&server);
    let (version, proof) = (VERSION + 1, [0; 32]);
    client.send(Request::Hello { version, proof });
    let why = client.refusal();
    assert!(why.contains("update the older"), "{why}");
}

#[test]
fn no_more_clients_are_served_than_there_is_room_for() {
    let mut options = ServerOptions::default();
    options.limits.clients = 1;
    options.limits.greetings = 2;
    let server = serve(cpu(), options);
    let first = connect(&server);
    let error = open(&address(&server), None, LONG).unwrap_err().to_string();
    assert!(error.contains("1 clients already"), "{error}");
    // Strangers take no client's place, and keep nobody out: the oldest is closed for whoever comes.
    drop(first);
    eventually("the first has left", || server.statistics().clients == 0);
    let mut strangers = [Raw::stranger(&server), Raw::stranger(&server)];
    open(&address(&server), None, Duration::ZERO).unwrap();
    strangers[0].is_closed();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn garbage_harms_nobody(frames in vec((0_u8..30, vec(any::<u8>(), 0..400)), 1..8), tail in vec(any::<u8>(), 0..40)) {
        let server = serve(cpu(), ServerOptions::default());
        let file = weights(1).to_bytes().unwrap();
        for mut client in [Raw::stranger(&server), Raw::known(&server)] {
            for (kind, payload) in &frames {
                client.write(&frame(*kind, |out| out.extend_from_slice(payload)));
            }
            client.write(&tail);
            let _ = client.stream.shutdown(Shutdown::Write);
            client.is_closed();
        }
        let mut client = Raw::known(&server);
        let network = client.load(&file);
        for (_, payload) in &frames {
            client.send(Request::Evaluate { id: 1, network, positions: payload });
        }
        let _ = client.stream.shutdown(Shutdown::Write);
        client.is_closed();
        eventually("none is left", || server.statistics().clients == 0);
        check_honest(&server);
    }
}
