//! What all who watch a page share: the renewals that `live.js` asks for.
//!
//! They hear of the same change at the same moment and ask for the same page. It is rendered for the
//! first of them; concurrent requests wait for it, and requests within [`SHARED`] of
//! its beginning get the same. Such an answer has an `Age`, as from any cache: it may be older than
//! what the viewer has heard of, so `live.js` asks once more after its pause. That is as long as
//! [`SHARED`], so what comes then is new enough. A request that opens a page gets it as it is now.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::clock::Clock;
use crate::server::address::Address;

/// The header of a request for a renewal.
const RENEWAL: HeaderName = HeaderName::from_static("x-rookery-live");
/// How long a rendering is shared.
const SHARED: SignedDuration = SignedDuration::from_secs(2);
/// Cache size, in pages. Further pages are rendered for each request.
const PAGES: usize = 128;
/// Largest page that is kept, in bytes.
const PAGE_BYTES: usize = 256 << 10;

/// All that a page depends on besides the ledger: the coordinator's address, and the page's.
type Key = (Address, String);

/// A page, once it is rendered.
type Rendered = Arc<OnceCell<Response<Bytes>>>;

#[derive(Clone)]
struct Slot {
    begun: Timestamp,
    page: Rendered,
}

#[derive(Clone)]
pub(super) struct Live {
    clock: Arc<dyn Clock>,
    slots: Arc<Mutex<HashMap<Key, Slot>>>,
}

impl Live {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            slots: Arc::default(),
        }
    }

    /// Since when a page is being rendered or was.
    fn age(&self, begun: Timestamp) -> SignedDuration {
        self.clock.now().duration_since(begun)
    }

    /// The page's rendering, a new one if there is none of a moment ago; none if there is no place.
    fn slot(&self, key: &Key) -> Option<Slot> {
        let mut slots = self.slots.lock();
        slots.retain(|_, slot| (SignedDuration::ZERO..SHARED).contains(&self.age(slot.begun)));
        if let Some(slot) = slots.get(key) {
            return Some(slot.clone());
        }
        if slots.len() >= PAGES {
            return None;
        }
        let slot = Slot {
            begun: self.clock.now(),
            page: Rendered::default(),
        };
        slots.insert(key.clone(), slot.clone());
        Some(slot)
    }

    /// Lets the next one who asks have the page rendered again.
    fn forget(&self, key: &Key, page: &Rendered) {
        let mut slots = self.slots.lock();
        if slots
            .get(key)
            .is_some_and(|slot| Arc::ptr_eq(&slot.page, page))
        {
            slots.remove(key);
        }
    }
}

/// Answers renewals with what others were answered a moment ago.
pub(super) async fn share(
    State(live): State<Live>,
    address: Address,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::GET || !request.headers().contains_key(RENEWAL) {
        return next.run(request).await;
    }
    let key = (address, request.uri().to_string());
    let Some(Slot { begun, page }) = live.slot(&key) else {
        return next.run(request).await;
    };
    let mut first = false;
    let render = || {
        first = true;
        whole(next.run(request))
    };
    let rendered = page.get_or_init(render).await;
    if rendered.status() != StatusCode::OK || rendered.body().len() > PAGE_BYTES {
        live.forget(&key, &page);
    }
    let mut answer = rendered.clone().map(Body::from);
    if !first {
        let seconds = live.age(begun).as_secs().max(0);
        answer
            .headers_mut()
            .insert(header::AGE, HeaderValue::from(seconds));
    }
    answer
}

/// A page with all its bytes.
async fn whole(page: impl Future<Output = Response>) -> Response<Bytes> {
    let (head, body) = page.await.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => Response::from_parts(head, bytes),
        Err(error) => {
            tracing::error!(%error, "A page could not be rendered to its end.");
            let mut failure = Response::new(Bytes::new());
            *failure.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            failure
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::extract::Path;
    use axum::http::{Request, request};
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use futures_util::future::join_all;
    use tower::ServiceExt as _;

    use super::*;
    use crate::clock::ManualClock;

    /// Pages that say how many were rendered before them.
    struct Site {
        router: Router,
        live: Live,
        clock: Arc<ManualClock>,
        rendered: Arc<AtomicUsize>,
    }

    /// What a page said, and its age.
    type Answer = (String, Option<HeaderValue>);

    impl Site {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
            let live = Live::new(clock.clone());
            let rendered = Arc::new(AtomicUsize::new(0));
            let count = rendered.clone();
            let page = move |Path(name): Path<String>| {
                let before = count.fetch_add(1, Ordering::Relaxed).to_string();
                async move {
                    tokio::task::yield_now().await;
                    match name.as_str() {
                        "failing" => (StatusCode::SERVICE_UNAVAILABLE, before),
                        "large" => (StatusCode::OK, before + &" ".repeat(PAGE_BYTES)),
                        _ => (StatusCode::OK, before),
                    }
                }
            };
            let router = Router::new()
                .route("/{name}", get(page))
                .route_layer(from_fn_with_state(live.clone(), share));
            Self {
                router,
                live,
                clock,
                rendered,
            }
        }

        async fn send(&self, request: request::Builder) -> Answer {
            let request = request.body(Body::empty()).unwrap();
            let answer = self.router.clone().oneshot(request).await.unwrap();
            let age = answer.headers().get(header::AGE).cloned();
            let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            (text.trim_end().to_owned(), age)
        }

        async fn renew(&self, path: &str) -> Answer {
            self.send(Request::get(path).header(RENEWAL, "1")).await
        }

        fn rendered(&self) -> usize {
            self.rendered.load(Ordering::Relaxed)
        }
    }

    fn age(seconds: u64) -> HeaderValue {
        HeaderValue::from(seconds)
    }

    #[tokio::test]
    async fn however_many_watch_a_page_is_rendered_once_in_a_while() {
        let site = Site::new();
        let answers = join_all((0..50).map(|_| site.renew("/main"))).await;
        assert_eq!(site.rendered(), 1);
        assert!(answers.iter().all(|(text, _)| text == "0"), "{answers:?}");
        let own = answers.iter().filter(|(_, age)| age.is_none());
        assert_eq!(own.count(), 1, "only the first is certainly new enough");
        site.clock.advance_seconds(1);
        assert_eq!(site.renew("/main").await, ("0".to_owned(), Some(age(1))));
        site.clock.advance_seconds(1);
        assert_eq!(site.renew("/main").await, ("1".to_owned(), None));
        assert_eq!(site.renew("/main").await, ("1".to_owned(), Some(age(0))));
        site.clock.advance_seconds(-60);
        assert_eq!(site.renew("/main").await, ("2".to_owned(), None));
    }

    #[tokio::test]
    async fn only_renewals_of_the_same_page_at_the_same_address_are_shared() {
        let site = Site::new();
        assert_eq!(site.renew("/main").await.0, "0");
        let other = Request::get("/main").header(RENEWAL, "1");
        let other = site.send(other.header(header::HOST, "b.example")).await;
        assert_eq!(other, ("1".to_owned(), None));
        assert_eq!(site.renew("/main?span=7d").await, ("2".to_owned(), None));
        let opened = site.send(Request::get("/main")).await;
        assert_eq!(opened, ("3".to_owned(), None));
        assert_eq!(site.renew("/main").await, ("0".to_owned(), Some(age(0))));
    }

    #[tokio::test]
    async fn failures_and_large_pages_are_not_kept() {
        let site = Site::new();
        for path in ["/failing", "/large"] {
            let before = site.rendered();
            let together = join_all((0..5).map(|_| site.renew(path))).await;
            assert_eq!(site.rendered(), before + 1, "{together:?}");
            assert_eq!(site.renew(path).await.1, None);
            assert_eq!(site.rendered(), before + 2);
        }
        assert!(site.live.slots.lock().is_empty());
    }

    #[tokio::test]
    async fn only_so_many_pages_are_kept_and_all_are_shown() {
        let site = Site::new();
        for number in 0..PAGES + 10 {
            let answer = site.renew(&format!("/{number}")).await;
            assert_eq!(answer, (number.to_string(), None));
        }
        assert_eq!(site.live.slots.lock().len(), PAGES);
        site.clock.advance_seconds(2);
        site.renew("/main").await;
        assert_eq!(site.live.slots.lock().len(), 1);
    }

    #[test]
    fn the_script_asks_as_is_answered_here() {
        let script = include_str!("../../assets/live.js");
        let pause = format!("const pause = {};", SHARED.as_millis());
        let [asks, told] = [RENEWAL, header::AGE].map(|name| format!("\"{name}\""));
        for part in [asks, told, pause] {
            assert!(script.contains(&part), "{part}");
        }
    }
}
