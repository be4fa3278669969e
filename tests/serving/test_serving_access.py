"""Who may see what is served: what the API server is asked, how often, and what its answers and silences mean."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from aiohttp import web

from ctrlruntime.errors import APIStatusError, RequestTimeoutError, TransportError
from ctrlruntime.rest.transport import Response
from ctrlruntime.serving.access import MAX_ASKED, MAX_REMEMBERED, AccessReviews, UserRecord, guarded
from ctrlruntime.serving.server import Address, HTTPServer

ALICE = {"username": "alice", "uid": "1", "groups": ["dev"], "extra": {"scopes": ["a", "b"]}}


class Reviewer:
    """An API server that knows the tokens "alice" and "bob", of whom alice may get /metrics. `failures` come first, one a request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict]] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.most_waiting = 0
        self.closed = False

    async def request(self, method, path, *, body, timeout):
        assert method == "POST"
        review = json.loads(body)
        self.asked.append((review["kind"], review["spec"]))
        self.waiting += 1
        self.most_waiting = max(self.waiting, self.most_waiting)
        try:
            await self.gate.wait()
        finally:
            self.waiting -= 1
        if self.failures:
            raise self.failures.pop(0)
        return Response(201, {}, json.dumps({**review, "status": self.status(review)}).encode())

    def status(self, review):
        if review["kind"] == "SubjectAccessReview":
            attributes = {"path": "/metrics", "verb": "get"}
            return {
                "allowed": review["spec"]["user"] == "alice" and review["spec"]["nonResourceAttributes"] == attributes
            }
        token = review["spec"]["token"]
        users = {"alice": ALICE, "bob": {"username": "bob"}}
        return {"authenticated": True, "user": users[token]} if token in users else {"user": {}, "error": "who is that"}

    async def close(self):
        self.closed = True

    @property
    def kinds(self):
        return [kind for kind, _ in self.asked]


class Time:
    now = 1000.0

    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
async def reviewer():
    return Reviewer()


@pytest.fixture
def time():
    return Time()


@pytest.fixture
async def reviews(reviewer, time):
    made = AccessReviews(reviewer, clock=time, sleep=time.sleep, jitter=lambda: 0.0)
    yield made
    await made.close()


def failure(code: int) -> APIStatusError:
    return APIStatusError.from_response(code, b"", retry_after=None)


async def test_what_is_known_of_the_user_is_what_the_permission_is_asked_for(reviews, reviewer):
    user = await reviews.user("alice")

    assert await reviews.may(user, "get", "/metrics")
    assert reviewer.asked == [
        ("TokenReview", {"token": "alice"}),
        (
            "SubjectAccessReview",
            {
                "user": "alice",
                "uid": "1",
                "groups": ["dev"],
                "extra": {"scopes": ["a", "b"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        ),
    ]


async def test_a_user_is_remembered_for_a_minute(reviews, reviewer, time):
    await reviews.user("alice")
    time.now += 59.9
    await reviews.user("alice")
    assert len(reviewer.asked) == 1

    time.now += 0.2
    await reviews.user("alice")
    assert len(reviewer.asked) == 2


@pytest.mark.parametrize(("name", "may", "seconds"), [("alice", True, 300.0), ("bob", False, 30.0)])
async def test_a_permission_is_remembered_for_five_minutes_and_its_lack_for_half_a_minute(
    reviews, reviewer, time, name, may, seconds
):
    user = UserRecord(name)
    assert await reviews.may(user, "get", "/metrics") is may
    time.now += seconds - 0.1
    await reviews.may(user, "get", "/metrics")
    assert len(reviewer.asked) == 1

    time.now += 0.2
    await reviews.may(user, "get", "/metrics")
    assert len(reviewer.asked) == 2


async def test_permissions_are_remembered_by_user_verb_and_path(reviews, reviewer):
    same_name_other_groups = UserRecord("alice", groups=("ops",))
    for user, verb, path in (
        (UserRecord("alice"), "get", "/metrics"),
        (UserRecord("alice"), "head", "/metrics"),
        (UserRecord("alice"), "get", "/other"),
        (same_name_other_groups, "get", "/metrics"),
    ):
        await reviews.may(user, verb, path)

    assert len(reviewer.asked) == 4


async def test_a_token_that_is_nobodys_is_asked_for_again(reviews, reviewer):
    assert await reviews.user("mallory") is None
    assert await reviews.user("mallory") is None

    assert len(reviewer.asked) == 2


async def test_an_explicit_denial_wins_over_allowed(reviews, reviewer, monkeypatch):
    monkeypatch.setattr(reviewer, "status", lambda _: {"allowed": True, "denied": True})

    assert not await reviews.may(UserRecord("alice"), "get", "/metrics")


async def test_a_failure_is_not_remembered(reviews, reviewer):
    reviewer.failures = [failure(403)]
    with pytest.raises(APIStatusError):
        await reviews.user("alice")

    assert (await reviews.user("alice")).username == "alice"


@pytest.mark.parametrize("error", [TransportError("cut"), RequestTimeoutError("late"), failure(503), failure(429)])
async def test_what_may_pass_is_asked_again_five_times_with_growing_waits(reviews, reviewer, time, error):
    reviewer.failures = [error] * 5

    with pytest.raises(type(error)):
        await reviews.user("alice")

    assert len(reviewer.asked) == 5
    assert time.slept == [0.5, 0.75, 1.125, 1.6875]


async def test_what_will_not_pass_is_asked_once(reviews, reviewer):
    reviewer.failures = [failure(403)]

    with pytest.raises(APIStatusError):
        await reviews.may(UserRecord("alice"), "get", "/metrics")

    assert len(reviewer.asked) == 1


async def test_callers_with_one_token_share_one_question(reviews, reviewer):
    reviewer.gate.clear()
    calls = [asyncio.ensure_future(reviews.user("alice")) for _ in range(20)]
    await asyncio.sleep(0)
    calls[0].cancel()
    await asyncio.sleep(0)
    reviewer.gate.set()

    found = await asyncio.gather(*calls, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert [user.username for user in found[1:]] == ["alice"] * 19
    assert reviewer.kinds == ["TokenReview"]


async def test_strangers_cost_a_bounded_number_of_questions_at_once(reviews, reviewer):
    reviewer.gate.clear()
    calls = [asyncio.ensure_future(reviews.user(f"stranger-{n}")) for n in range(50)]
    for _ in range(5):
        await asyncio.sleep(0)
    reviewer.gate.set()
    await asyncio.gather(*calls)

    assert reviewer.most_waiting == MAX_ASKED
    assert len(reviewer.asked) == 50


async def test_the_oldest_answer_is_forgotten_when_there_are_too_many(reviews, reviewer):
    for n in range(MAX_REMEMBERED + 1):
        await reviews.may(UserRecord(f"user-{n}"), "get", "/metrics")
    before = len(reviewer.asked)

    await reviews.may(UserRecord(f"user-{MAX_REMEMBERED}"), "get", "/metrics")
    assert len(reviewer.asked) == before
    await reviews.may(UserRecord("user-0"), "get", "/metrics")
    assert len(reviewer.asked) == before + 1


async def test_closing_ends_the_questions_under_way(reviews, reviewer):
    reviewer.gate.clear()
    call = asyncio.ensure_future(reviews.user("alice"))
    await asyncio.sleep(0)

    await reviews.close()

    assert reviewer.closed
    with pytest.raises(asyncio.CancelledError):
        await call


# Over HTTP


@pytest.fixture
async def session(reviews):
    async def hello(_request):
        return web.Response(text="hello")

    server = HTTPServer(Address("127.0.0.1", 0), {"/metrics": guarded(reviews, hello)}, name="metrics", flag="--flag")
    await server.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.address.port}") as session:
        yield session
    await server.stop()


async def get(session, *headers, path="/metrics"):
    async with session.get(path, headers=[("Authorization", header) for header in headers]) as answer:
        return answer.status, await answer.text()


async def test_who_may_gets_the_answer_of_the_handler(session):
    assert await get(session, "Bearer alice") == (200, "hello")
    assert await get(session, "bearer   alice ") == (200, "hello")


@pytest.mark.parametrize("headers", [(), ("Basic YTpi",), ("Bearer",), ("Bearer ",), ("alice",), ("Bearer alice",) * 2])
async def test_without_one_token_nobody_is_asked(session, reviewer, headers):
    assert await get(session, *headers) == (401, "Unauthorized\n")
    assert reviewer.asked == []


async def test_a_token_that_is_nobodys_is_401(session):
    async with session.get("/metrics", headers={"Authorization": "Bearer mallory"}) as answer:
        assert (answer.status, await answer.text()) == (401, "Unauthorized\n")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_who_may_not_is_told_so_by_name(session):
    assert await get(session, "Bearer bob") == (403, "bob may not get /metrics\n")


async def test_the_path_that_is_asked_for_is_the_one_of_the_request(session, reviewer):
    status, _ = await get(session, "Bearer alice", path="/metrics/")

    assert (status, reviewer.asked[-1][1]["nonResourceAttributes"]["path"]) == (403, "/metrics/")


async def test_an_api_server_that_does_not_say_is_500_and_told_of(session, reviewer, capsys):
    reviewer.failures = [failure(403)]
    assert await get(session, "Bearer alice") == (500, "Authentication failed\n")
    assert await get(session, "Bearer alice") == (200, "hello")

    assert "cannot authenticate caller" in capsys.readouterr().err


async def test_a_permission_the_api_server_does_not_tell_is_500_and_not_remembered(session, reviews, reviewer, capsys):
    await reviews.user("bob")
    reviewer.failures = [failure(403)]

    assert await get(session, "Bearer bob") == (500, "Authorization for user bob failed\n")
    assert (await get(session, "Bearer bob"))[0] == 403
    assert "cannot check permission" in capsys.readouterr().err
