use super::*;

fn limits(change: impl FnOnce(&mut LimitArgs)) -> Limits {
    let mut args = LimitArgs::default();
    change(&mut args);
    Limits::new(args)
}

fn client(text: &str) -> Option<ClientAddress> {
    text.parse().ok().map(ClientAddress)
}

#[test]
fn an_address_has_so_many_connections_and_listeners_and_this_machine_any_number() {
    let limits = limits(|args| {
        args.address_connections = Some(2);
        args.listeners = Some(3);
        args.address_listeners = Some(2);
        args.trusted_proxies = Some(vec!["192.0.2.9/32".parse().unwrap()]);
    });
    let connect = |text: &str| limits.connection(text.parse().unwrap());
    let held = [connect("192.0.2.1"), connect("192.0.2.1")];
    assert!(connect("192.0.2.1").is_err() && connect("192.0.2.2").is_ok());
    drop(held);
    assert!(connect("192.0.2.1").is_ok());
    let many: Vec<_> = (0..9)
        .flat_map(|_| [connect("127.0.0.1"), connect("192.0.2.9")])
        .collect();
    assert!(many.iter().all(Result::is_ok));
    let _held = [client("192.0.2.1"), client("192.0.2.1")].map(|c| limits.listener(c).unwrap());
    assert!(limits.listener(client("192.0.2.1")).is_none());
    let _third = limits.listener(client("127.0.0.1")).unwrap();
    assert!(
        limits.listener(client("192.0.2.2")).is_none(),
        "all places are taken"
    );
    assert!(limits.address_connections.taken().is_empty());
}

#[test]
fn connections_and_files_fit_into_what_the_system_allows() {
    let limits = limits(|args| args.connections = Some(0));
    let limits = limits.within(12);
    assert_eq!(limits.connections, 6);
    let files: Vec<_> = (0..3).map(|_| limits.file(None).unwrap()).collect();
    assert!(limits.file(None).is_none());
    drop(files);
    assert!(limits.file(None).is_some());
    let boundless = Limits::default().within(u64::MAX);
    assert_eq!(boundless.connections, 32_768);
}

#[test]
fn nothing_is_limited_by_zero() {
    let limits = limits(|args| {
        args.address_rate = Some(0.0);
        args.contributor_rate = Some(0.0);
        args.registrations = Some(0.0);
        args.upload_mib = Some(0.0);
        args.body_mib = Some(0);
        args.address_answers = Some(0);
        args.contributor_leases = Some(0);
        args.worker_leases = Some(0);
        args.daily_upload_mib = Some(0.0);
        args.unreturned_leases = Some(0.0);
    });
    let who = client("192.0.2.1");
    for _ in 0..100_000 {
        limits.request(who).unwrap();
        limits.registration(who).unwrap();
        limits.upload(who, UserId(1), 1 << 30).unwrap();
    }
    assert!(limits.body(who, None).hold(1 << 40));
    assert_eq!(limits.leases(who), LeaseQuotas::default());
}

#[test]
fn one_address_has_a_share_of_the_files_that_are_sent() {
    let limits = Limits::default().within(1024);
    let (slow, other) = (client("192.0.2.1"), client("192.0.2.2"));
    let taken: Vec<_> = (0..256).map_while(|_| limits.file(slow)).collect();
    assert_eq!(taken.len(), 32);
    assert!(limits.file(other).is_some());
}

#[test]
fn what_an_address_is_refused_costs_its_neighbours_nothing() {
    let limits = limits(|args| args.registrations = Some(10.0));
    let greedy = client("198.51.100.1");
    let registered = (0..1000).filter(|_| limits.registration(greedy).is_ok());
    assert_eq!(registered.count(), 10);
    limits.registration(client("198.51.100.2")).unwrap();
}

#[test]
fn an_upload_that_the_hour_refuses_costs_the_day_nothing() {
    let limits = limits(|args| {
        args.upload_mib = Some(10.0);
        args.daily_upload_mib = Some(1000.0);
    });
    let (who, user) = (client("192.0.2.1"), UserId(1));
    let upload = || limits.upload(who, user, 1 << 20);
    let (_, refused) = (0..2000).fold((0, 0), |(taken, refused), _| match upload() {
        Ok(()) => (taken + 1, refused),
        Err(_) => (taken, refused + 1),
    });
    assert!(refused > 1900, "{refused}");
    limits.daily_uploads.take(Some(user), 900.0).unwrap();
}

#[test]
fn neighbours_register_as_often_as_a_few_addresses() {
    let limits = limits(|args| args.registrations = Some(10.0));
    let registered = |address: &dyn Fn(u32) -> String| {
        let all = (0..200).map(|n| client(&address(n)));
        all.filter(|who| limits.registration(*who).is_ok()).count()
    };
    assert_eq!(registered(&|n| format!("2001:db8:0:{n:x}::1")), 10, "a /56");
    let spread = |n: u32| format!("2001:db8:1:{:x}::1", (n << 8) & 0xffff);
    assert_eq!(registered(&spread), 40, "a /48");
    assert_eq!(registered(&|n| format!("198.51.100.{n}")), 40, "a /24");
    assert_eq!(registered(&|_| "203.0.113.1".to_owned()), 10);
    assert_eq!(registered(&|_| "127.0.0.1".to_owned()), 200);
}

#[test]
fn who_returns_games_may_take_any_number_of_jobs() {
    let limits = limits(|args| args.unreturned_leases = Some(100.0));
    let (who, honest, idle) = (client("192.0.2.1"), UserId(1), UserId(2));
    for _ in 0..10_000 {
        // Half of the jobs are lost, and the others come in two parts.
        for _ in 0..2 {
            limits.may_lease(who, honest).unwrap();
            limits.leased(who, honest);
        }
        limits.returned(honest, 0.5);
        limits.returned(honest, 0.5);
    }
    let take = |user| {
        limits.may_lease(who, user)?;
        limits.leased(who, user);
        Ok::<_, TooMuch>(())
    };
    let taken = (0..1000).map_while(|_| take(idle).ok()).count();
    assert_eq!(taken, 101);
    let TooMuch(wait) = take(idle).unwrap_err();
    assert!(wait <= Duration::from_secs(864), "a hundredth of a day");
}

#[test]
fn what_was_refused_in_a_day_is_paid_for() {
    let limits = limits(|args| {
        args.upload_mib = Some(0.0);
        args.daily_upload_mib = Some(64.0);
    });
    let who = client("192.0.2.1");
    limits.upload(who, UserId(1), 1 << 20).unwrap();
    limits.refused(who, UserId(1), 2 << 20);
    let TooMuch(wait) = limits.upload(who, UserId(1), 1).unwrap_err();
    assert!(wait > Duration::from_secs(23 * 3600), "{wait:?}");
    limits.upload(who, UserId(2), 64 << 20).unwrap();
    limits.upload(who, UserId(2), 1 << 20).unwrap_err();
}

#[test]
fn leases_are_limited_but_for_this_machine() {
    let limits = limits(|args| args.worker_leases = Some(2));
    let quotas = limits.leases(client("192.0.2.1"));
    assert_eq!((quotas.contributor, quotas.worker), (Some(4096), Some(2)));
    assert_eq!(limits.leases(client("127.0.0.1")), LeaseQuotas::default());
}
