"""`pods/log`: the text of an annotation, cut as asked."""

import pytest

CORE = "/api/v1"


@pytest.fixture
def pod(api, ns):
    """A pod that runs and has logged three lines; the value is its path."""
    path = f"{CORE}/{ns}/pods"
    annotations = {"simulation.ctrlruntime.dev/log": "one\ntwo\nthree", "simulation.ctrlruntime.dev/log.b": "mine"}
    containers = [{"name": name, "image": "i"} for name in ("a", "b")]
    made = api.made(
        path,
        {"metadata": {"name": "p", "annotations": annotations}, "spec": {"containers": containers, "nodeName": "n"}},
    )
    running = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
    statuses = [
        {"name": name, "state": running, "ready": True, "restartCount": 0, "image": "i", "imageID": ""}
        for name in ("a", "b")
    ]
    made["status"].update({"phase": "Running", "containerStatuses": statuses})
    assert api.put(f"{path}/p/status", made).code == 200
    return f"{path}/p"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"container": "a"}, b"one\ntwo\nthree\n"),
        ({"container": "b"}, b"mine\n"),
        ({"container": "a", "tailLines": 2}, b"two\nthree\n"),
        ({"container": "a", "tailLines": 0}, b""),
        ({"container": "a", "tailLines": 9}, b"one\ntwo\nthree\n"),
        ({"container": "a", "limitBytes": 5}, b"one\nt"),
        ({"container": "a", "sinceSeconds": 60}, b""),
        ({"container": "a", "sinceTime": "2026-01-02T03:04:04Z"}, b"one\ntwo\nthree\n"),
        ({"container": "a", "sinceTime": "2026-01-02T03:04:06Z"}, b""),
        (
            {"container": "a", "timestamps": "true", "tailLines": 2},
            b"2026-01-02T03:04:05Z two\n2026-01-02T03:04:05Z three\n",
        ),
    ],
)
def test_log_is_the_text_of_the_annotation(api, pod, query, text):
    answer = api.get(f"{pod}/log", **query)

    assert (answer.code, answer.raw) == (200, text)
    assert answer.headers["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({}, 400, "a container name must be specified for pod p, choose one of: [a b]"),
        ({"container": "z"}, 400, "container z is not valid for pod p"),
        ({"container": "a", "tailLines": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            {"container": "a", "tailLines": -1},
            422,
            'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            {"container": "a", "limitBytes": 0},
            422,
            'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
        ),
        ({"container": "a", "previous": "true"}, 400, 'previous terminated container "a" in pod "p" not found'),
    ],
)
def test_bad_log_requests_are_refused(api, pod, query, code, message):
    answer = api.get(f"{pod}/log", **query)

    assert (answer.code, answer.message) == (code, message)


def test_log_of_an_unscheduled_pod_is_empty(api, ns):
    spec = {"containers": [{"name": "a", "image": "i"}]}
    api.made(f"{CORE}/{ns}/pods", {"metadata": {"name": "q"}, "spec": spec})

    answer = api.get(f"{CORE}/{ns}/pods/q/log")

    assert (answer.code, answer.raw) == (204, b"")


def test_ephemeral_container_has_a_log(api, pod):
    added = [{"name": "e", "image": "i"}]
    assert api.patch(f"{pod}/ephemeralcontainers", {"spec": {"ephemeralContainers": added}}).code == 200
    assert api.get(f"{pod}/log", container="e").code == 400

    status = {"name": "e", "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "ready": False}
    assert api.patch(f"{pod}/status", {"status": {"ephemeralContainerStatuses": [status]}}).code == 200
    assert api.get(f"{pod}/log", container="e", timestamps=1).raw.startswith(b"2026-01-02T03:04:05Z one\n")
