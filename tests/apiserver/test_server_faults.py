from __future__ import annotations

CORE = "/api/v1"


def test_expired_history_ends_resumed_watches_with_410(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    version = api.get(path).version

    api.call(api.server.faults.expire_history)

    with api.watch(path, resourceVersion=version) as frames:
        assert frames.next()["object"]["reason"] == "Expired"
    with api.watch(path, resourceVersion=api.get(path).version) as frames:
        api.made(path, make.config_map("a"))
        assert frames.take(1) == [("ADDED", "a")]


def test_watches_can_be_cut(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    api.made(path, make.config_map("a"))

    with api.watch(path) as frames, api.watch(f"{CORE}/{ns}/secrets", resourceVersion="0") as others:
        frames.take(1)
        assert api.call(lambda: api.server.faults.close_watches("", "configmaps")) == 1
        assert frames.next() is None
        api.made(f"{CORE}/{ns}/secrets", {"metadata": {"name": "s"}})
        assert others.take(1) == [("ADDED", "s")]


def test_requests_can_fail(api, ns):
    faults = api.server.faults
    api.call(lambda: faults.fail_next("GET", "configmaps", 429, retry_after=2))
    api.call(lambda: faults.fail_next("", "secrets", 503, times=2))

    busy = api.get(f"{CORE}/{ns}/configmaps")
    away = [api.get(f"{CORE}/{ns}/secrets") for _ in range(3)]

    assert (busy.code, busy.headers["Retry-After"]) == (429, "2")
    assert api.get(f"{CORE}/{ns}/configmaps").code == 200
    assert [answer.code for answer in away] == [503, 503, 200]
    assert away[0].reason == "ServiceUnavailable"


def test_failures_that_did_not_happen_can_be_cleared(api, ns):
    api.call(lambda: api.server.faults.fail_next("GET", "configmaps", 500))
    api.call(api.server.faults.clear)

    assert api.get(f"{CORE}/{ns}/configmaps").code == 200
