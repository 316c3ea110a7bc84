use std::sync::atomic::{AtomicUsize, Ordering};

use rookery_backend_cpu::CpuBackend;
use rookery_common::ids::NetworkNumber;
use rookery_common::network::{NetworkSpec, program_file};
use rookery_common::protocol::{Problem, ProblemCode};
use rookery_common::signing::SigningKey;
use rookery_engine::Precision;
use rookery_model::Weights;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::device_pool::DevicePool;

/// How the test's server answers one request.
#[derive(Debug, Clone)]
enum Answer {
    /// As a coordinator does, ranges too.
    Good,
    /// As a coordinator does, but the connection breaks after this number of bytes of the body.
    CutAfter(usize),
    /// The whole file, whatever range was asked for.
    Whole,
    /// Other bytes of the right length.
    Wrong,
    /// More bytes than there should be, without saying how many.
    TooLong,
    /// A captive portal's page, without saying how long it is.
    Page,
    /// This number of bytes that are no network.
    Bytes(usize),
    /// The rest from another byte on than was asked for.
    OtherRest,
    /// This status and no body.
    Status(u16),
    /// A coordinator's word that there is no such network.
    NotFound,
    /// The file is at this address.
    Elsewhere(String),
}

/// A server that gives one file, and what it was asked for.
struct Server {
    address: String,
    requests: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Server {
    /// Answers one request after the other as told, the last way for ever.
    async fn start(file: Vec<u8>, answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            let count = AtomicUsize::new(0);
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let answer = answers[number.min(answers.len() - 1)].clone();
                let request = respond(stream, &file, &answer).await;
                log.lock().unwrap().push(request);
            }
        });
        Self { address, requests }
    }

    fn client(&self) -> Client {
        Client::new(self.address.parse().unwrap()).unwrap()
    }

    fn ranges(&self) -> Vec<Option<usize>> {
        self.requests
            .lock()
            .unwrap()
            .iter()
            .map(|request| range_of(request))
            .collect()
    }
}

fn range_of(request: &str) -> Option<usize> {
    let request = request.to_lowercase();
    let line = request
        .lines()
        .find_map(|line| line.strip_prefix("range: bytes="))?;
    line.trim_end_matches('-').parse().ok()
}

async fn respond(mut stream: TcpStream, file: &[u8], answer: &Answer) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            break;
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    let (status, from, mut body) = match (answer, range_of(&request)) {
        (Answer::Status(status), _) => (*status, 0, Vec::new()),
        (Answer::NotFound, _) => {
            let problem = Problem::new(ProblemCode::NotFound, "in a test");
            (404, 0, serde_json::to_vec(&problem).unwrap())
        }
        (Answer::Elsewhere(_), _) => (307, 0, Vec::new()),
        (Answer::Wrong, _) => (200, 0, vec![7; file.len()]),
        (Answer::TooLong, _) => (200, 0, vec![7; file.len() + 1]),
        (Answer::Page, _) => (200, 0, b"<html>please log in</html>".to_vec()),
        (Answer::Bytes(length), _) => (200, 0, vec![7; *length]),
        (Answer::OtherRest, _) => (206, 10, file[10..].to_vec()),
        (Answer::Whole, _) | (_, None) => (200, 0, file.to_vec()),
        (_, Some(from)) => (206, from, file[from..].to_vec()),
    };
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    match answer {
        Answer::TooLong => {}
        Answer::Page => head += "Content-Type: text/html; charset=utf-8\r\n",
        _ => head += &format!("Content-Length: {}\r\n", body.len()),
    }
    if status == 206 {
        head += &format!(
            "Content-Range: bytes {from}-{}/{}\r\n",
            file.len() - 1,
            file.len()
        );
    }
    if let Answer::Elsewhere(address) = answer {
        head += &format!("Location: {address}\r\n");
    }
    head += "Connection: close\r\n\r\n";
    if let Answer::CutAfter(length) = answer {
        body.truncate(*length);
    }
    drop(stream.write_all(head.as_bytes()).await);
    drop(stream.write_all(&body).await);
    drop(stream.shutdown().await);
    request
}

struct Fixture {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    network: NetworkRef,
}

impl Fixture {
    fn new() -> Self {
        let bytes = Weights::random(NetworkSpec::resnet(1, 8), 1)
            .unwrap()
            .to_bytes()
            .unwrap();
        Self::of(bytes)
    }

    fn of(bytes: Vec<u8>) -> Self {
        let (hash, length) = (ContentHash::of(&bytes), bytes.len() as u64);
        let network = NetworkRef {
            hash,
            number: NetworkNumber(0),
            bytes: length,
            signature: None,
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            bytes,
            network,
        }
    }

    fn cache(&self) -> Arc<NetworkCache> {
        let backend = CpuBackend::new(Precision::F32).unwrap();
        let trial = Trial(DevicePool::single(Arc::new(backend)));
        NetworkCache::open(self.folder.path().to_owned(), trial).unwrap()
    }

    async fn server(&self, answers: &[Answer]) -> Server {
        Server::start(self.bytes.clone(), answers.to_vec()).await
    }

    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

#[tokio::test]
async fn a_network_is_fetched_once_and_checked_again_after_a_restart() {
    let fixture = Fixture::new();
    let server = fixture.server(&[Answer::Good]).await;
    let cache = fixture.cache();
    let file = cache
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap();
    assert_eq!(std::fs::read(&file.path).unwrap(), fixture.bytes);
    assert_eq!(
        cache
            .get(&server.client(), &fixture.network, None)
            .await
            .unwrap(),
        file
    );
    assert_eq!(
        fixture
            .cache()
            .get(&server.client(), &fixture.network, None)
            .await
            .unwrap(),
        file
    );
    assert_eq!(server.ranges(), [None]);
    std::fs::write(&file.path, b"bit rot").unwrap();
    fixture
        .cache()
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap();
    assert_eq!(std::fs::read(&file.path).unwrap(), fixture.bytes);
    assert_eq!(server.ranges().len(), 2);
}

#[tokio::test]
async fn a_folder_that_somebody_has_removed_is_made_again() {
    let fixture = Fixture::new();
    let server = fixture.server(&[Answer::Good]).await;
    let cache = fixture.cache();
    for _ in 0..2 {
        cache.remove_old(&[fixture.network.hash]).unwrap();
        let got = cache.get(&server.client(), &fixture.network, None).await;
        assert_eq!(std::fs::read(got.unwrap().path).unwrap(), fixture.bytes);
        std::fs::remove_dir_all(fixture.folder.path()).unwrap();
    }
    assert_eq!(server.ranges(), [None, None]);
}

#[tokio::test]
async fn a_program_is_named_by_its_file_and_needs_no_trial() {
    let program = Program::alpha_beta(2);
    let fixture = Fixture::of(program_file(program).unwrap());
    let server = fixture.server(&[Answer::Good]).await;
    let cache = fixture.cache();
    // Fetched, known, and found after a restart.
    for cache in [&cache, &cache, &fixture.cache()] {
        let file = cache.get(&server.client(), &fixture.network, None).await;
        assert_eq!(file.unwrap().contents, Contents::Program(program));
    }
    assert_eq!(server.ranges(), [None]);
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_ended() {
    let fixture = Fixture::new();
    let server = fixture
        .server(&[Answer::CutAfter(1000), Answer::CutAfter(500), Answer::Good])
        .await;
    let cache = fixture.cache();
    for _ in 0..2 {
        let error = cache
            .get(&server.client(), &fixture.network, None)
            .await
            .unwrap_err();
        assert!(error.may_pass(), "{error}");
    }
    cache
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap();
    assert_eq!(server.ranges(), [None, Some(1000), Some(1500)]);
}

#[tokio::test]
async fn the_store_that_a_coordinator_sends_us_to_gets_the_range_and_no_token() {
    let fixture = Fixture::new();
    let store = fixture
        .server(&[Answer::CutAfter(1000), Answer::Good])
        .await;
    let signed = format!("{}/bucket/network?signature=1", store.address);
    let coordinator = fixture.server(&[Answer::Elsewhere(signed)]).await;
    let token = crate::api::Token::parse("rk_secret").unwrap();
    let client = coordinator.client().with_token(token);
    let cache = fixture.cache();
    cache
        .get(&client, &fixture.network, None)
        .await
        .unwrap_err();
    cache.get(&client, &fixture.network, None).await.unwrap();
    assert_eq!(store.ranges(), [None, Some(1000)]);
    let lower = |server: &Server| server.requests.lock().unwrap().concat().to_lowercase();
    assert!(lower(&coordinator).contains("authorization: bearer rk_secret"));
    let seen = lower(&store);
    assert!(!seen.contains("authorization") && !seen.contains("rk_secret"));
    assert!(seen.contains("get /bucket/network?signature=1"));
}

#[tokio::test]
async fn a_server_without_ranges_gives_the_whole_file() {
    let fixture = Fixture::new();
    let server = fixture
        .server(&[Answer::CutAfter(1000), Answer::Whole])
        .await;
    let cache = fixture.cache();
    cache
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap_err();
    cache
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap();
    let refused = Fixture::new();
    let answers = [Answer::CutAfter(1000), Answer::Status(416), Answer::Good];
    let server = refused.server(&answers).await;
    let cache = refused.cache();
    cache
        .get(&server.client(), &refused.network, None)
        .await
        .unwrap_err();
    cache
        .get(&server.client(), &refused.network, None)
        .await
        .unwrap();
    assert_eq!(server.ranges(), [None, Some(1000), None]);
}

#[tokio::test]
async fn what_is_not_from_a_coordinator_costs_nothing_of_what_has_arrived() {
    let fixture = Fixture::new();
    let strange = [
        Answer::Page,
        Answer::Bytes(500),
        Answer::Bytes(fixture.bytes.len() + 1),
        Answer::OtherRest,
    ];
    let mut answers = vec![Answer::CutAfter(1000)];
    answers.extend(strange.iter().cloned());
    answers.push(Answer::Good);
    let server = fixture.server(&answers).await;
    let cache = fixture.cache();
    let cut = cache.get(&server.client(), &fixture.network, None).await;
    cut.unwrap_err();
    for answer in &strange {
        let got = cache.get(&server.client(), &fixture.network, None).await;
        let error = got.unwrap_err();
        assert!(error.may_pass(), "{answer:?}: {error}");
        let text = error.to_string();
        assert!(
            text.starts_with("a network could not be fetched")
                && text.contains("did not come from a coordinator"),
            "{answer:?}: {text}"
        );
    }
    let got = cache.get(&server.client(), &fixture.network, None).await;
    assert_eq!(std::fs::read(got.unwrap().path).unwrap(), fixture.bytes);
    assert_eq!(server.ranges()[1..], [Some(1000); 5]);
}

#[tokio::test]
async fn wrong_bytes_are_refused_and_removed() {
    let fixture = Fixture::new();
    let server = fixture.server(&[Answer::Wrong, Answer::TooLong]).await;
    let cache = fixture.cache();
    let error = cache
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap_err();
    assert!(matches!(error, NetworkError::Hash { .. }), "{error}");
    let error = cache
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap_err();
    assert!(matches!(error, NetworkError::Long { .. }), "{error}");
    assert!(fixture.files().is_empty(), "{:?}", fixture.files());
}

/// A network's description with a signature of these bytes by the key.
fn signed(network: &NetworkRef, key: &SigningKey, bytes: &[u8]) -> NetworkRef {
    let run = "main".parse().unwrap();
    NetworkRef {
        signature: Some(key.sign_network(&run, bytes).unwrap()),
        ..network.clone()
    }
}

#[tokio::test]
async fn only_networks_that_the_runs_key_signed_are_used() {
    let fixture = Fixture::new();
    let server = fixture.server(&[Answer::Good]).await;
    let (key, other) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    let good = signed(&fixture.network, &key, &fixture.bytes);
    let cache = fixture.cache();
    let get = async |cache: &Arc<NetworkCache>, network: &NetworkRef| {
        cache
            .get(&server.client(), network, Some(key.public()))
            .await
    };
    for (exchanged, what) in [
        (fixture.network.clone(), "not signed"),
        (
            signed(&fixture.network, &other, &fixture.bytes),
            "signed by another key",
        ),
        (
            signed(&fixture.network, &key, b"the real network"),
            "signed for another file",
        ),
    ] {
        let error = get(&cache, &exchanged).await.unwrap_err();
        assert!(
            matches!(error, NetworkError::Unsigned { .. }),
            "{what}: {error}"
        );
        assert!(error.is_final() && !error.may_pass(), "{what}");
        assert!(fixture.files().is_empty(), "{what}");
    }
    get(&cache, &good).await.unwrap();
    // One that lies here from before the run had a key needs its signature as well.
    let unsigned = Fixture::new();
    let cache = unsigned.cache();
    cache
        .get(&server.client(), &unsigned.network, None)
        .await
        .unwrap();
    for cache in [cache, unsigned.cache()] {
        assert!(get(&cache, &unsigned.network).await.is_err());
        let forged = signed(&unsigned.network, &other, &unsigned.bytes);
        assert!(get(&cache, &forged).await.unwrap_err().is_final());
        get(&cache, &good).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_no_network_is_refused_for_good() {
    let fixture = Fixture::of(b"these bytes are no network".to_vec());
    let server = fixture.server(&[Answer::Good]).await;
    let error = fixture
        .cache()
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap_err();
    assert!(
        matches!(error, NetworkError::Unusable { .. }) && !error.may_pass(),
        "{error}"
    );
    assert!(fixture.files().is_empty());
}

#[tokio::test]
async fn a_network_that_this_machine_cannot_compute_is_fetched_once() {
    let mut bytes = Fixture::new().bytes;
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    let numbers = bytes[8 + header as usize..].as_chunks_mut::<4>().0;
    // Every number is finite, also where normalisations are multiplied in, and no layer's output is.
    numbers.fill(1e20_f32.to_le_bytes());
    let fixture = Fixture::of(bytes);
    let server = fixture.server(&[Answer::Good]).await;
    let cache = fixture.cache();
    for cache in [&cache, &cache, &fixture.cache()] {
        let got = cache.get(&server.client(), &fixture.network, None).await;
        let error = got.unwrap_err();
        assert!(matches!(error, NetworkError::Trial { .. }), "{error}");
    }
    assert_eq!(server.ranges(), [None]);
}

#[tokio::test]
async fn absurd_sizes_and_missing_networks_are_not_waited_for() {
    let fixture = Fixture::new();
    let server = fixture.server(&[Answer::NotFound]).await;
    let error = fixture
        .cache()
        .get(&server.client(), &fixture.network, None)
        .await
        .unwrap_err();
    assert!(!error.may_pass(), "{error}");
    for bytes in [0, u64::MAX] {
        let network = NetworkRef {
            bytes,
            ..fixture.network.clone()
        };
        let error = fixture
            .cache()
            .get(&server.client(), &network, None)
            .await
            .unwrap_err();
        assert!(matches!(error, NetworkError::Size { .. }), "{error}");
    }
}

#[tokio::test]
async fn old_networks_are_removed_and_those_in_use_kept() {
    let fixture = Fixture::new();
    let hashes: Vec<ContentHash> = (0_u8..20).map(|n| ContentHash::of(&[n])).collect();
    for hash in &hashes {
        std::fs::write(
            fixture.folder.path().join(format!("{hash}.safetensors")),
            b"x",
        )
        .unwrap();
    }
    std::fs::write(fixture.folder.path().join("note.txt"), b"x").unwrap();
    // What never came whole counts as well.
    for hash in &hashes[3..5] {
        let part = format!("{hash}.part");
        std::fs::write(fixture.folder.path().join(part), b"x").unwrap();
    }
    fixture.cache().prune(&hashes[..3]).await;
    let files = fixture.files();
    assert_eq!(files.len(), 3 + KEPT + 1);
    assert!(
        hashes[..3]
            .iter()
            .all(|hash| files.contains(&format!("{hash}.safetensors")))
    );
}
