use std::sync::atomic::{AtomicUsize, Ordering};

use rookery_backend_cpu::CpuBackend;
use rookery_client::testing::{Answer, Request, Server};
use rookery_common::ids::NetworkNumber;
use rookery_common::network::{NetworkSpec, program_file};
use rookery_common::protocol::ProblemCode;
use rookery_common::signing::SigningKey;
use rookery_engine::Precision;
use rookery_model::Weights;

use super::*;
use crate::device_pool::DevicePool;

/// How the test's server answers one request.
#[derive(Debug, Clone)]
enum Reply {
    /// As a coordinator does, ranges too.
    Good,
    /// As a coordinator does, but the connection breaks after this number of bytes of the body.
    CutAfter(usize),
    /// The rest from another byte on than was asked for.
    OtherRest,
    /// The same to every request.
    Always(Answer),
}

impl Reply {
    /// The whole of these bytes, whatever range was asked for.
    fn whole(bytes: Vec<u8>) -> Self {
        Self::Always(Answer::new(200, bytes))
    }

    /// This body, without saying how long it is.
    fn endless(body: impl Into<Vec<u8>>, kind: &str) -> Self {
        Self::Always(Answer {
            length: None,
            ..Answer::new(200, body).with("content-type", kind)
        })
    }

    fn answer(&self, request: &Request, file: &[u8]) -> Answer {
        let rest = |from: usize| {
            let range = format!("bytes {from}-{}/{}", file.len() - 1, file.len());
            Answer::new(206, &file[from..]).with("content-range", range)
        };
        let good = || range_of(request).map_or_else(|| Answer::new(200, file), rest);
        match self {
            Self::Good => good(),
            Self::CutAfter(length) => {
                let mut answer = good();
                answer.body.truncate(*length);
                answer
            }
            Self::OtherRest => rest(10),
            Self::Always(answer) => answer.clone(),
        }
    }
}

/// The first byte that is asked for, where it is not that of the file.
fn range_of(request: &Request) -> Option<usize> {
    let range = request.header("range")?.strip_prefix("bytes=")?;
    range.trim_end_matches('-').parse().ok()
}

fn ranges(server: &Server) -> Vec<Option<usize>> {
    server.requests().iter().map(range_of).collect()
}

fn client(server: &Server) -> Client {
    Client::new(server.url.parse().unwrap()).unwrap()
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

    /// A server that gives the file, and replies to one request after the other so, the last way for ever.
    async fn server(&self, replies: &[Reply]) -> Server {
        let (file, replies) = (self.bytes.clone(), replies.to_vec());
        let count = AtomicUsize::new(0);
        Server::start(move |request| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            replies[number.min(replies.len() - 1)].answer(request, &file)
        })
        .await
    }

    /// What the cache says of the network, for which it may ask the server.
    async fn get(
        &self,
        cache: &Arc<NetworkCache>,
        server: &Server,
    ) -> Result<NetworkFile, NetworkError> {
        cache.get(&client(server), &self.network, None).await
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
    let server = fixture.server(&[Reply::Good]).await;
    let cache = fixture.cache();
    let file = fixture.get(&cache, &server).await.unwrap();
    assert_eq!(std::fs::read(&file.path).unwrap(), fixture.bytes);
    assert_eq!(fixture.get(&cache, &server).await.unwrap(), file);
    assert_eq!(fixture.get(&fixture.cache(), &server).await.unwrap(), file);
    assert_eq!(ranges(&server), [None]);
    std::fs::write(&file.path, b"bit rot").unwrap();
    fixture.get(&fixture.cache(), &server).await.unwrap();
    assert_eq!(std::fs::read(&file.path).unwrap(), fixture.bytes);
    assert_eq!(ranges(&server).len(), 2);
}

#[tokio::test]
async fn a_folder_that_somebody_has_removed_is_made_again() {
    let fixture = Fixture::new();
    let server = fixture.server(&[Reply::Good]).await;
    let cache = fixture.cache();
    for _ in 0..2 {
        cache.remove_old(&[fixture.network.hash]).unwrap();
        let got = fixture.get(&cache, &server).await;
        assert_eq!(std::fs::read(got.unwrap().path).unwrap(), fixture.bytes);
        std::fs::remove_dir_all(fixture.folder.path()).unwrap();
    }
    assert_eq!(ranges(&server), [None, None]);
}

#[tokio::test]
async fn a_program_is_named_by_its_file_and_needs_no_trial() {
    let program = Program::alpha_beta(2);
    let fixture = Fixture::of(program_file(program).unwrap());
    let server = fixture.server(&[Reply::Good]).await;
    let cache = fixture.cache();
    // Fetched, known, and found after a restart.
    for cache in [&cache, &cache, &fixture.cache()] {
        let file = fixture.get(cache, &server).await;
        assert_eq!(file.unwrap().contents, Contents::Program(program));
    }
    assert_eq!(ranges(&server), [None]);
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_ended() {
    let fixture = Fixture::new();
    let server = fixture
        .server(&[Reply::CutAfter(1000), Reply::CutAfter(500), Reply::Good])
        .await;
    let cache = fixture.cache();
    for _ in 0..2 {
        let error = fixture.get(&cache, &server).await.unwrap_err();
        assert!(error.may_pass(), "{error}");
    }
    fixture.get(&cache, &server).await.unwrap();
    assert_eq!(ranges(&server), [None, Some(1000), Some(1500)]);
}

#[tokio::test]
async fn the_store_that_a_coordinator_sends_us_to_gets_the_range_and_no_token() {
    let fixture = Fixture::new();
    let store = fixture.server(&[Reply::CutAfter(1000), Reply::Good]).await;
    let signed = format!("{}/bucket/network?signature=1", store.url);
    let elsewhere = Answer::new(307, "").with("location", signed);
    let coordinator = Server::answering(vec![elsewhere]).await;
    let token = crate::api::Token::parse("rk_secret").unwrap();
    let client = client(&coordinator).with_token(token);
    let cache = fixture.cache();
    cache
        .get(&client, &fixture.network, None)
        .await
        .unwrap_err();
    cache.get(&client, &fixture.network, None).await.unwrap();
    assert_eq!(ranges(&store), [None, Some(1000)]);
    let asked = &coordinator.requests()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer rk_secret"));
    for seen in store.requests() {
        assert_eq!(seen.line, "GET /bucket/network?signature=1");
        assert!(!format!("{seen:?}").contains("rk_secret"), "{seen:?}");
        assert_eq!(seen.header("authorization"), None);
    }
}

#[tokio::test]
async fn a_server_without_ranges_gives_the_whole_file() {
    let fixture = Fixture::new();
    let server = fixture
        .server(&[Reply::CutAfter(1000), Reply::whole(fixture.bytes.clone())])
        .await;
    let cache = fixture.cache();
    fixture.get(&cache, &server).await.unwrap_err();
    fixture.get(&cache, &server).await.unwrap();
    let refused = Fixture::new();
    let answers = [
        Reply::CutAfter(1000),
        Reply::Always(Answer::new(416, "")),
        Reply::Good,
    ];
    let server = refused.server(&answers).await;
    let cache = refused.cache();
    refused.get(&cache, &server).await.unwrap_err();
    refused.get(&cache, &server).await.unwrap();
    assert_eq!(ranges(&server), [None, Some(1000), None]);
}

#[tokio::test]
async fn what_is_not_from_a_coordinator_costs_nothing_of_what_has_arrived() {
    let fixture = Fixture::new();
    let strange = [
        Reply::endless("<html>please log in</html>", "text/html; charset=utf-8"),
        Reply::whole(vec![7; 500]),
        Reply::whole(vec![7; fixture.bytes.len() + 1]),
        Reply::OtherRest,
    ];
    let mut answers = vec![Reply::CutAfter(1000)];
    answers.extend(strange.iter().cloned());
    answers.push(Reply::Good);
    let server = fixture.server(&answers).await;
    let cache = fixture.cache();
    let cut = fixture.get(&cache, &server).await;
    cut.unwrap_err();
    for answer in &strange {
        let got = fixture.get(&cache, &server).await;
        let error = got.unwrap_err();
        assert!(error.may_pass(), "{answer:?}: {error}");
        let text = error.to_string();
        assert!(
            text.starts_with("RK-0607: a network could not be fetched")
                && text.contains("did not come from a coordinator"),
            "{answer:?}: {text}"
        );
    }
    let got = fixture.get(&cache, &server).await;
    assert_eq!(std::fs::read(got.unwrap().path).unwrap(), fixture.bytes);
    assert_eq!(ranges(&server)[1..], [Some(1000); 5]);
}

#[tokio::test]
async fn wrong_bytes_are_refused_and_removed() {
    let fixture = Fixture::new();
    let length = fixture.bytes.len();
    let wrong = Reply::whole(vec![7; length]);
    let too_long = Reply::endless(vec![7; length + 1], "application/octet-stream");
    let server = fixture.server(&[wrong, too_long]).await;
    let cache = fixture.cache();
    let error = fixture.get(&cache, &server).await.unwrap_err();
    assert!(matches!(error, NetworkError::Hash { .. }), "{error}");
    let error = fixture.get(&cache, &server).await.unwrap_err();
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
    let server = fixture.server(&[Reply::Good]).await;
    let (key, other) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    let good = signed(&fixture.network, &key, &fixture.bytes);
    let cache = fixture.cache();
    let get = async |cache: &Arc<NetworkCache>, network: &NetworkRef| {
        cache
            .get(&client(&server), network, Some(key.public()))
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
    unsigned.get(&cache, &server).await.unwrap();
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
    let server = fixture.server(&[Reply::Good]).await;
    let error = fixture.get(&fixture.cache(), &server).await.unwrap_err();
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
    let server = fixture.server(&[Reply::Good]).await;
    let cache = fixture.cache();
    for cache in [&cache, &cache, &fixture.cache()] {
        let got = fixture.get(cache, &server).await;
        let error = got.unwrap_err();
        assert!(matches!(error, NetworkError::Trial { .. }), "{error}");
    }
    assert_eq!(ranges(&server), [None]);
}

#[tokio::test]
async fn absurd_sizes_and_missing_networks_are_not_waited_for() {
    let fixture = Fixture::new();
    let server = fixture
        .server(&[Reply::Always(Answer::problem(ProblemCode::NotFound))])
        .await;
    let error = fixture.get(&fixture.cache(), &server).await.unwrap_err();
    assert!(!error.may_pass(), "{error}");
    for bytes in [0, u64::MAX] {
        let network = NetworkRef {
            bytes,
            ..fixture.network.clone()
        };
        let error = fixture
            .cache()
            .get(&client(&server), &network, None)
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
