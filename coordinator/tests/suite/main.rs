//! The coordinator's tests: the store's suite, and the API through the router.

mod api;
mod store;
mod support;
