"""The frame of admission webhooks: reviews read and answered, exceptions turned into answers, time and readiness."""

from __future__ import annotations

import asyncio
import json

import pytest
from webhook_reviews import Game, game, patch_in, response_of, review

import ctrlruntime as ctrl
from ctrlruntime.errors import APIStatusError, CacheNotStartedError, ConfigError, FencedError, NotFound
from ctrlruntime.rest.fence import current_actor
from ctrlruntime.webhook import NotReadyError, multi_mutating, multi_validating
from ctrlruntime.webhook.endpoint import HandlerTimeoutError


async def ask(handler, body: bytes = b"", **options):
    return response_of(await ctrl.webhook.Admission(handler).answer(body or review(object=game()), **options))


async def allow(request):
    return ctrl.webhook.allowed()


def raising(error: BaseException):
    async def handle(request):
        raise error

    return handle


async def test_a_request_is_told_with_all_that_the_review_has():
    seen = []

    async def handle(request):
        seen.append(request)
        return ctrl.webhook.allowed("well done")

    body = review("UPDATE", game(replicas=2), game(replicas=1), dryRun=True, subResource="status", options={"a": 1})
    response = await ask(handle, body)

    assert response == {"uid": "u1", "allowed": True, "status": {"code": 200, "message": "well done"}}
    (request,) = seen
    assert request.kind == ("games.example.com", "v1", "Game")
    assert request.resource == ("games.example.com", "v1", "games")
    assert request.request_kind == request.kind
    assert request.request_resource == request.resource
    assert (request.operation, request.name, request.namespace) == ("UPDATE", "g", "ns")
    assert (request.sub_resource, request.dry_run, json.loads(request.options)) == ("status", True, {"a": 1})
    assert request.user_info.username == "jane"
    assert list(request.user_info.groups) == ["a"]
    assert request.user_info.extra == {"x": ["1"]}
    assert request.decode(Game).spec.replicas == 2
    assert request.decode_old(Game).spec.replicas == 1


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_review_is_answered_in_its_own_version(version):
    answer = json.loads(await ctrl.webhook.Admission(allow).answer(review(object=game(), version=version)))

    assert (answer["apiVersion"], answer["kind"]) == (f"admission.k8s.io/{version}", "AdmissionReview")
    assert answer["response"]["uid"] == "u1"


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"", "application/json", "the body is empty"),
        (b"{", "application/json", "the body is not an AdmissionReview"),
        (b"[]", "application/json", "the body is not an AdmissionReview"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "application/json", "the body is a 'v1' 'Pod'"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "application/json", "has no request"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","request":{}}', "application/json", "v2"),
        (review(object=game()), "text/plain", "the content type is 'text/plain'"),
        (review(object=game()), "", "the content type is ''"),
    ],
)
async def test_what_cannot_be_read_is_a_400_in_the_review(body, content_type, message):
    answer = json.loads(await ctrl.webhook.Admission(allow).answer(body, content_type=content_type))

    response = answer["response"]
    assert (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert (response["allowed"], response["status"]["code"], response["uid"]) == (False, 400, "")
    assert message in response["status"]["message"]


async def test_a_content_type_may_have_parameters():
    assert (await ask(allow, content_type="application/json; charset=utf-8"))["allowed"]


async def test_denied_is_a_403_with_its_warnings():
    response = await ask(raising(ctrl.webhook.Denied("not today", warnings=["tomorrow"])))

    assert response["allowed"] is False
    assert response["status"] == {"status": "Failure", "message": "not today", "code": 403, "reason": "Forbidden"}
    assert response["warnings"] == ["tomorrow"]


async def test_an_api_error_is_the_answer_word_for_word():
    error = ctrl.webhook.invalid(Game, "g", [ctrl.webhook.FieldError.required("spec.image", "an image is needed")])
    response = await ask(raising(error))

    assert response["status"]["code"] == 422
    assert response["status"]["reason"] == "Invalid"
    assert response["status"]["message"] == (
        'Game.games.example.com "g" is invalid: spec.image: Required value: an image is needed'
    )
    assert response["status"]["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value: an image is needed", "field": "spec.image"}
    ]


async def test_a_status_that_the_handler_made_is_the_answer():
    response = await ask(raising(NotFound("no such thing")))

    assert (response["allowed"], response["status"]["code"], response["status"]["message"]) == (
        False,
        404,
        "no such thing",
    )


@pytest.mark.parametrize(
    "error",
    [
        APIStatusError.from_response(
            403, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"secrets of team-b"}'
        ),
        APIStatusError.from_response(502, b"secrets of team-b"),
        FencedError("secrets of team-b"),
    ],
    ids=["status", "text", "own"],
)
async def test_what_the_handlers_own_requests_ran_into_is_for_the_log(error, capsys):
    response = await ask(raising(error))

    assert response["status"]["code"] == 500
    assert "team-b" not in json.dumps(response)
    assert "team-b" in capsys.readouterr().err


async def test_an_object_that_does_not_fit_its_class_is_a_400_naming_the_field():
    async def handle(request):
        request.decode(Game)
        return ctrl.webhook.allowed()

    response = await ask(handle, review(object=game(replicas="many")))

    assert response["status"]["code"] == 400
    assert "spec.replicas" in response["status"]["message"]


async def test_an_object_of_another_kind_or_none_at_all_is_a_400():
    async def handle(request):
        request.decode(Game)
        return ctrl.webhook.allowed()

    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    assert "is a v1 Pod" in (await ask(handle, review(object=pod)))["status"]["message"]
    assert "the DELETE request has no object" in (await ask(handle, review("DELETE")))["status"]["message"]


async def test_an_unexpected_exception_is_a_500_that_shows_nothing_of_it_and_is_logged(capsys):
    admission = ctrl.webhook.Admission(raising(ValueError("the password is hunter2")))
    response = response_of(await admission.answer(review(object=game())))

    assert (response["uid"], response["allowed"], response["status"]["code"]) == ("u1", False, 500)
    assert "hunter2" not in json.dumps(response)
    assert "ValueError" in response["status"]["message"]
    assert admission.panics == 1
    log = capsys.readouterr().err
    assert "hunter2" in log
    assert "Traceback" in log


async def test_without_recovery_an_exception_goes_through():
    with pytest.raises(ValueError, match="broken"):
        await ctrl.webhook.Admission(raising(ValueError("broken")), recover_panic=False).answer(review(object=game()))


async def test_a_handler_that_returns_no_response_is_a_defect():
    async def handle(request):
        return True

    assert (await ask(handle))["status"]["code"] == 500


async def test_a_handler_is_cancelled_when_nobody_waits_any_more():
    cancelled = asyncio.Event()

    async def handle(request):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(
        HandlerTimeoutError, match=r"did not decide within 0\.01 s"
    ):  # no review: the failure policy applies
        await ask(handle, timeout=0.01)

    assert cancelled.is_set()


async def test_a_timeout_of_the_handlers_own_is_its_failure():
    response = await ask(raising(TimeoutError()), timeout=5)

    assert response["status"]["code"] == 500


async def test_a_cache_that_has_not_started_makes_the_webhook_not_ready():
    with pytest.raises(NotReadyError, match="not started"):
        await ask(raising(CacheNotStartedError("the cache has not started")))


async def test_warnings_of_the_request_are_kept_whatever_the_answer():
    async def handle(request):
        request.warn("careful")
        raise ctrl.webhook.Denied("no", warnings=["really"])

    assert (await ask(handle))["warnings"] == ["careful", "really"]


async def test_audit_annotations_are_answered():
    async def handle(request):
        return ctrl.webhook.AdmissionResponse(allowed=True, audit_annotations={"why": "because"})

    assert (await ask(handle))["auditAnnotations"] == {"why": "because"}


async def test_writes_of_a_handler_need_no_leadership():
    actors = []

    async def handle(request):
        actors.append(current_actor())
        return ctrl.webhook.allowed()

    await ask(handle)

    assert actors[0] is not None
    assert not actors[0].fenced


@pytest.mark.usefixtures("sets_up_log")
async def test_log_lines_carry_the_request(capsys):
    ctrl.log.setup(ctrl.log.Options(encoder="console"))
    log = ctrl.get_logger("test")

    async def handle(request):
        log.info("asked")
        return ctrl.webhook.allowed()

    await ask(handle)
    line = capsys.readouterr().err
    assert all(part in line for part in ("webhookKind=Game", "requestID=u1", "user=jane", "namespace=ns", "name=g"))

    await ctrl.webhook.Admission(handle, log_constructor=lambda request: {"mine": request.uid}).answer(
        review(object=game())
    )
    line = capsys.readouterr().err
    assert "mine=u1" in line
    assert "webhookKind" not in line


@pytest.mark.parametrize("handler", [None, 1, lambda request: None, type("Handler", (), {"handle": lambda s, r: None})])
def test_what_is_no_handler_is_refused(handler):
    with pytest.raises(ConfigError, match="is not an admission handler"):
        ctrl.webhook.Admission(handler)


async def test_a_patch_from_raw_json():
    async def handle(request):
        new = json.loads(request.object)
        new["spec"]["image"] = "i"
        return ctrl.webhook.patch_response_from_raw(request.object, json.dumps(new).encode())

    response = await ask(handle, review(object=game(replicas=1)))

    assert patch_in(response) == [{"op": "add", "path": "/spec/image", "value": "i"}]


async def test_a_patch_from_raw_that_is_no_json_is_the_handlers_failure():
    async def handle(request):
        return ctrl.webhook.patch_response_from_raw(request.object, b"{")

    assert (await ask(handle))["status"]["code"] == 500


async def test_an_unchanged_object_is_no_patch():
    async def handle(request):
        return ctrl.webhook.patch_response(request, request.decode(Game))

    response = await ask(handle, review(object=game(replicas=0, image="", other=None)))

    assert response["allowed"]
    assert "patch" not in response


def test_an_error_needs_the_code_of_one():
    assert ctrl.webhook.errored(418, "teapot").status == {"status": "Failure", "message": "teapot", "code": 418}
    with pytest.raises(ValueError, match="code is 200"):
        ctrl.webhook.errored(200, "fine")


# Several handlers


def patching(**spec):
    async def handle(request):
        obj = request.decode(Game)
        for name, value in spec.items():
            setattr(obj.spec, name, value)
        return ctrl.webhook.patch_response(request, obj).with_warnings(*spec)

    return handle


async def test_mutating_handlers_see_what_the_ones_before_them_made():
    async def double(request):
        obj = request.decode(Game)
        obj.spec.replicas *= 2
        return ctrl.webhook.patch_response(request, obj)

    response = await ask(multi_mutating(patching(replicas=3), double), review(object=game(replicas=1)))

    from ctrlruntime.patch import apply_json_patch

    assert apply_json_patch(game(replicas=1), patch_in(response)) == game(replicas=6)
    assert response["warnings"] == ["replicas"]


async def test_the_first_mutating_handler_that_refuses_ends_it_without_patches():
    asked = []

    async def last(request):
        asked.append(request)
        return ctrl.webhook.allowed()

    async def refuse(request):
        return ctrl.webhook.denied("no").with_warnings("w")

    response = await ask(multi_mutating(patching(replicas=3), refuse, last), review(object=game(replicas=1)))

    assert not asked
    assert response["status"]["message"] == "no"
    assert response["warnings"] == ["replicas", "w"]
    assert "patch" not in response


async def test_validating_handlers_are_asked_until_one_refuses():
    async def warn(request):
        return ctrl.webhook.allowed().with_warnings("w")

    async def refuse(request):
        return ctrl.webhook.denied("no")

    assert (await ask(multi_validating(warn, warn)))["warnings"] == ["w", "w"]
    response = await ask(multi_validating(warn, refuse, raising(ValueError())))
    assert (response["status"]["message"], response["warnings"]) == ("no", ["w"])


async def test_a_validating_handler_may_not_patch(capsys):
    response = await ask(multi_validating(patching(replicas=3)), review(object=game(replicas=1)))

    assert response["status"]["code"] == 500
    assert "PatchError" in response["status"]["message"]
    assert "cannot change the object" in capsys.readouterr().err


def test_several_handlers_are_at_least_one():
    with pytest.raises(ConfigError):
        multi_mutating()
    with pytest.raises(ConfigError):
        multi_validating()
