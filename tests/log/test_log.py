from __future__ import annotations

import argparse
import asyncio
import io
import json
import logging
import re
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import structlog

from ctrlruntime import log
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.log.chain import Chain
from ctrlruntime.log.output import sink
from ctrlruntime.reconcile import Request

pytestmark = pytest.mark.usefixtures("sets_up_log")


class Lines(io.StringIO):
    @property
    def json(self):
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def lines() -> Lines:
    return Lines()


def parse(*args):
    parser = argparse.ArgumentParser(exit_on_error=False)
    log.add_flags(parser)
    return log.Options.from_args(parser.parse_args(args))


# --- flags and options ---------------------------------------------------------------------------------------------


def test_no_flag_is_production(lines):
    log.setup(parse(), stream=lines)
    logger = log.get_logger("part")
    logger.debug("unseen")
    logger.info("seen", number=3)

    (line,) = lines.json
    assert list(line) == ["level", "ts", "logger", "msg", "number"]
    assert (line["level"], line["logger"], line["msg"], line["number"]) == ("info", "part", "seen", 3)
    assert line["ts"].endswith("Z")


@pytest.mark.parametrize("args", [["--zap-devel"], ["--zap-devel=true"], ["--zap-devel", "1"]])
def test_devel_is_console_and_debug(lines, args):
    log.setup(parse(*args), stream=lines)
    log.get_logger("part").debug("seen", number=3)

    _, level, name, message, fields = lines.getvalue().split()
    assert (level, name, message, fields) == ("DEBUG", "part", "seen", "number=3")


def test_devel_can_be_denied():
    assert parse("--zap-devel=false") == log.Options()


def test_single_flags_override_the_mode(lines):
    log.setup(parse("--zap-devel", "--zap-encoder=json", "--zap-log-level=error"), stream=lines)
    log.get_logger().info("unseen")
    log.get_logger().warning("unseen")
    log.get_logger().error("seen")

    assert [line["msg"] for line in lines.json] == ["seen"]


def test_a_number_is_a_verbosity(lines):
    log.setup(parse("--zap-log-level=2"), stream=lines)
    logger = log.get_logger()
    for verbosity in range(4):
        logger.v(verbosity).info(f"v{verbosity}")
    logger.v(3).warning("warned")

    assert [(line["msg"], line["level"], line.get("v")) for line in lines.json] == [
        ("v0", "info", None),
        ("v1", "debug", None),
        ("v2", "debug", 2),
        ("warned", "warn", None),
    ]
    assert logger.v(2).is_enabled()
    assert not logger.v(1).v(2).is_enabled()
    assert logger.is_enabled("debug")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--zap-log-level", "loud"], "log level 'loud' is not known: give debug, info, warn, error, or an integer"),
        (["--zap-log-level", "0"], "log level '0' is not known"),
        (["--zap-log-level=-1"], "log level '-1' is not known"),
        (["--zap-encoder", "xml"], "encoder 'xml' is not known: give one of json, console"),
        (
            ["--zap-stacktrace-level", "debug"],
            "stacktrace level 'debug' is not known: give one of info, warn, error, panic",
        ),
        (["--zap-time-encoding", "lunar"], "time encoding 'lunar' is not known: give one of epoch"),
        (["--zap-devel=perhaps"], "'perhaps' is neither true nor false"),
    ],
)
def test_a_bad_flag_says_what_to_give(args, message):
    with pytest.raises(argparse.ArgumentError, match=message):
        parse(*args)


@pytest.mark.parametrize(
    "options",
    [{"encoder": "xml"}, {"log_level": 0}, {"log_level": "loud"}, {"stacktrace_level": "x"}, {"time_encoding": "x"}],
)
def test_bad_options_fail_at_construction(options):
    with pytest.raises(ValueError, match="is not known"):
        log.Options(**options)


def test_flag_values_may_be_upper_case(lines):
    log.setup(parse("--zap-log-level=INFO", "--zap-encoder=JSON", "--zap-stacktrace-level=Error"), stream=lines)
    log.get_logger().info("seen")

    assert lines.json[0]["msg"] == "seen"


@pytest.mark.parametrize(
    ("encoding", "stamp"),
    [
        ("epoch", 1700000000.123456),
        ("millis", 1700000000123.456),
        ("nano", 1700000000123456000),
        ("iso8601", "2023-11-14T22:13:20.123Z"),
        ("rfc3339", "2023-11-14T22:13:20Z"),
        ("rfc3339nano", "2023-11-14T22:13:20.123456Z"),
    ],
)
def test_time_encodings(lines, encoding, stamp):
    sink.output = Chain(log.Options(time_encoding=encoding), stream=lines, wall=lambda: 1_700_000_000_123_456_000)
    log.get_logger().info("now")

    assert lines.json[0]["ts"] == stamp


# --- without setup -------------------------------------------------------------------------------------------------


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)


def test_without_setup_lines_go_to_stderr_from_info_on():
    done = run(
        "import logging; from ctrlruntime import log; l = log.get_logger('part');"
        "l.debug('unseen'); l.info('seen', a='b c'); assert not logging.getLogger().handlers"
    )

    assert done.stdout == ""
    assert done.stderr.split("Z", 1)[1].split() == ["INFO", "part", "seen", 'a="b', 'c"']


def test_structlog_is_imported_by_the_first_line_that_is_written():
    run(
        "import sys, ctrlruntime; from ctrlruntime import log; l = log.get_logger('part').bind(a=1); l.debug('unseen');"
        "assert not l.v(2).is_enabled(); assert 'structlog' not in sys.modules; l.info('seen'); assert 'structlog' in sys.modules"
    )


def test_without_setup_structlogs_own_loggers_show_what_is_bound(capsys):
    structlog.reset_defaults()
    with log.bound(reconcileID="1"):
        structlog.get_logger().info("from the user")

    assert "reconcileID" in capsys.readouterr().out


# --- fields --------------------------------------------------------------------------------------------------------


def test_bound_fields_come_with_every_line_of_the_block(lines):
    log.setup(stream=lines)
    logger = log.get_logger().bind(kind="Pod")
    with log.bound(controller="c", reconcileID="1"), log.bound(reconcileID="2"):
        logger.info("inside", more=1)
    logger.info("outside")

    inside, outside = ({k: v for k, v in line.items() if k not in {"ts", "level"}} for line in lines.json)
    assert inside == {"msg": "inside", "controller": "c", "reconcileID": "2", "kind": "Pod", "more": 1}
    assert outside == {"msg": "outside", "kind": "Pod"}


async def test_bound_fields_go_along_into_tasks_and_threads(lines):
    log.setup(stream=lines)

    async def write(text):
        log.get_logger().info(text)

    with log.bound(id="1"):
        task = asyncio.create_task(write("task"))
        await asyncio.to_thread(log.get_logger().info, "thread")
    await task
    token = log.bind(id="2")
    log.unbind(token)
    log.get_logger().info("after")

    assert sorted((line["msg"], line.get("id")) for line in lines.json) == [
        ("after", None),
        ("task", "1"),
        ("thread", "1"),
    ]


@dataclass
class Meta:
    name: str = "web"
    namespace: str = "default"


@dataclass
class Pod:
    api_version: str = "v1"
    kind: str = "Pod"
    metadata: Meta = field(default_factory=Meta)
    spec: str = "large"


@pytest.mark.parametrize(
    ("value", "as_json", "on_console"),
    [
        (Pod(), {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web"}, "Pod default/web"),
        (
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}},
            {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            "Node n1",
        ),
        (Pod(api_version=None, kind=None), {"kind": "Pod", "namespace": "default", "name": "web"}, None),
        (Request("default", "web"), {"namespace": "default", "name": "web"}, "default/web"),
        (Request("", "n1", "edge"), {"cluster": "edge", "namespace": "", "name": "n1"}, None),
        (NamespacedName("default", "web"), {"namespace": "default", "name": "web"}, "default/web"),
        ({"a": [1, (2.5, None)], 3: {"x"}}, {"a": [1, [2.5, None]], "3": ["x"]}, None),
        (b"raw \xff", "raw \ufffd", None),
        (float("nan"), "nan", "nan"),
        (ValueError("no"), "ValueError: no", "ValueError: no"),
        (True, True, "true"),
        ("", "", ""),
    ],
)
def test_values(lines, value, as_json, on_console):
    log.setup(log.Options(encoder="json"), stream=lines)
    log.get_logger().info("x", value=value)
    console = Lines()
    log.setup(log.Options(encoder="console"), stream=console)
    log.get_logger().info("x", value=value)

    assert lines.json[0]["value"] == as_json
    text = console.getvalue().rstrip("\n").split("value=", 1)[1]
    if on_console is not None:
        assert text in {on_console, json.dumps(on_console)}


def test_a_real_object_is_logged_by_its_name(lines):
    from ctrlruntime.api import core, meta

    log.setup(stream=lines)
    log.get_logger().info("x", pod=core.Pod(metadata=meta.ObjectMeta(name="web", namespace="default")))

    assert lines.json[0]["pod"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web"}


class Broken:
    def __str__(self):
        raise RuntimeError

    __repr__ = __str__

    @property
    def metadata(self):
        raise KeyError


def test_a_value_that_cannot_be_shown_breaks_nothing(lines):
    loop = []
    loop.append(loop)
    log.setup(stream=lines)
    log.get_logger().info("x", broken=Broken(), loop=loop, huge={"a": object()})

    assert lines.json[0]["broken"].startswith("<Broken that cannot be shown")


def test_fields_cannot_take_the_place_of_the_lines_own(lines):
    log.setup(stream=lines)
    log.get_logger("real").info("real", msg="other", level=3, logger="other", event="e", name="n", self="s")

    line = lines.json[0]
    assert (line["msg"], line["logger"], line["level"]) == ("real", "real", "info")
    assert (line["msg_"], line["level_"], line["logger_"]) == ("other", 3, "other")
    assert (line["event_"], line["name"], line["self"]) == ("e", "n", "s")


def test_a_line_stays_one_line_on_the_console(lines):
    log.setup(log.Options(encoder="console"), stream=lines)
    log.get_logger().info("first\nINFO forged", value="a\nb", quoted='say "x"')

    assert lines.getvalue().count("\n") == 1
    assert r"first\nINFO forged" in lines.getvalue()
    assert r'value="a\nb" quoted="say \"x\""' in lines.getvalue()


def test_text_that_is_not_unicode_is_written_escaped(lines):
    log.setup(stream=lines)
    log.get_logger().info("read", path="\udcff", size=2**80)

    assert (lines.json[0]["path"], lines.json[0]["size"]) == ("\udcff", 2**80)


def test_the_fields_of_a_block_stand_in_the_order_they_were_first_bound(lines):
    log.setup(stream=lines)
    names = ["zeta", "alpha", "mid", "beta", "omega", "first"]
    with log.bound(**dict.fromkeys(names, 1)):
        log.get_logger().info("ours")
        structlog.get_logger().info("structlog's")

    assert [[key for key in line if key in names] for line in lines.json] == [names, names]


# --- console -------------------------------------------------------------------------------------------------------


def test_setup_writes_console_lines_on_a_terminal_and_json_elsewhere(lines):
    terminal = Terminal()

    for stream in (terminal, lines):
        log.setup(log.Options(), stream=stream)
        log.get_logger("x").info("hello", a=1)

    assert re.search(r"INFO .*hello .*a", terminal.getvalue())
    assert [line["a"] for line in lines.json] == [1]


def test_encoder_overrides_the_form_of_a_terminal():
    terminal = Terminal()

    log.setup(log.Options(encoder="json"), stream=terminal)
    log.get_logger("x").info("hello")

    assert [line["msg"] for line in terminal.json] == ["hello"]


class Terminal(Lines):
    def isatty(self):
        return True


def test_console_columns_stand_below_each_other(lines):
    log.setup(log.Options(devel=True), stream=lines)
    log.get_logger("cache").info("synced", objects=3)
    log.get_logger("leaderelection").warning("lease lost", objects=4)

    first, second = lines.getvalue().splitlines()
    assert first.index("objects=3") == second.index("objects=4")
    assert first.index("synced") == second.index("lease lost")


def test_only_a_terminal_gets_colours(lines, monkeypatch):
    terminal = Terminal()
    for stream in (lines, terminal):
        log.setup(log.Options(devel=True), stream=stream)
        log.get_logger("part").info("seen", a=1)

    assert "\033[" not in lines.getvalue()
    assert "\033[" in terminal.getvalue()
    assert re.sub(r"\033\[[0-9;]*m", "", terminal.getvalue()).split("Z")[1] == lines.getvalue().split("Z")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    log.get_logger("part").info("plain")
    assert "\033[" not in terminal.getvalue().splitlines()[1]


# --- exceptions ----------------------------------------------------------------------------------------------------


def log_failures():
    logger = log.get_logger()
    try:
        raise ValueError("no good")
    except ValueError as error:
        logger.info("informed", exc_info=error)
        logger.warning("warned", exc_info=True)
        logger.error("failed", exc_info=sys.exc_info())  # noqa: G201 - the form is what is tested
        logger.exception("failed")
        logger.error("named", error="mine", exc_info=error)  # noqa: TRY400 - as above


@pytest.mark.parametrize(
    ("options", "with_traceback"),
    [
        ({}, {"failed", "named"}),
        ({"devel": True, "encoder": "json"}, {"warned", "failed", "named"}),
        ({"stacktrace_level": "info"}, {"informed", "warned", "failed", "named"}),
        ({"stacktrace_level": "panic"}, set()),
    ],
)
def test_tracebacks_start_at_their_level(lines, options, with_traceback):
    log.setup(log.Options(**options), stream=lines)
    log_failures()

    assert {line["msg"] for line in lines.json if "stacktrace" in line} == with_traceback
    assert [line["error"] for line in lines.json] == ["ValueError: no good"] * 4 + ["mine"]
    assert all("in log_failures" in line.get("stacktrace", "in log_failures") for line in lines.json)
    assert not any("exc_info" in line for line in lines.json)


def test_the_console_shows_tracebacks_below_the_line(lines):
    log.setup(log.Options(encoder="console"), stream=lines)
    log_failures()

    text = lines.getvalue()
    assert re.search(r'informed +error="ValueError: no good"\n20', text)
    assert re.search(r'failed +error="ValueError: no good"\nTraceback \(most recent call last\):\n', text)


def test_describe_names_type_message_and_cause():
    try:
        try:
            raise OSError("no route")
        except OSError as cause:
            raise ValueError("cannot list") from cause
    except ValueError as error:
        text = log.describe(error)
    assert text == "ValueError: cannot list (caused by OSError: no route)"
    assert log.describe(ValueError()) == "ValueError"


# --- sampling ------------------------------------------------------------------------------------------------------


def test_production_thins_out_equal_lines_within_a_second(lines):
    now = 5.0
    sink.output = Chain(log.Options(), stream=lines, clock=lambda: now)
    logger = log.get_logger()
    for number in range(1000):
        logger.info("same", number=number)
    logger.info("other")
    logger.error("same")

    numbers = [line["number"] for line in lines.json if line["msg"] == "same" and line["level"] == "info"]
    assert numbers == [*range(100), *range(199, 1000, 100)]
    assert len(lines.json) == len(numbers) + 2
    now = 6.0
    logger.info("same", number=1000)
    assert lines.json[-1]["number"] == 1000


def test_development_writes_every_line(lines):
    log.setup(log.Options(devel=True), stream=lines)
    for _ in range(500):
        log.get_logger().info("same")

    assert lines.getvalue().count("\n") == 500


# --- the user's processors -----------------------------------------------------------------------------------------


def write_three_ways(**fields):
    log.get_logger("ours").info("line", **fields)
    structlog.get_logger("structlogs").info("line", **fields)
    logging.getLogger("librarys").info("line")


def test_a_processor_sees_every_line_with_level_time_and_name(lines):
    seen = []

    def note(logger, method, event_dict):
        seen.append((method, event_dict["event"], event_dict["level"], event_dict["logger"], "ts" in event_dict))
        event_dict["added"] = "***" if event_dict.pop("secret", None) else "added"
        return event_dict

    log.setup(stream=lines, processors=[note])
    write_three_ways(secret="s")
    log.get_logger().debug("unseen")

    assert seen == [("info", "line", "info", name, True) for name in ("ours", "structlogs", "librarys")]
    assert [(line["added"], "secret" in line) for line in lines.json] == [
        ("***", False),
        ("***", False),
        ("added", False),
    ]


def test_a_processor_may_drop_a_line(lines):
    def drop(logger, method, event_dict):
        raise structlog.DropEvent

    log.setup(stream=lines, processors=[drop])
    write_three_ways()

    assert lines.getvalue() == ""


def test_a_processor_that_fails_costs_no_line(lines):
    def fail(logger, method, event_dict):
        raise KeyError("oops")

    log.setup(stream=lines, processors=[fail, lambda *_: "text", lambda *_: {"event": "mine"}])
    write_three_ways()

    assert [line["msg"] for line in lines.json] == ["mine"] * 3
    assert all(line["level"] == "info" for line in lines.json)
    log.setup(stream=lines, processors=[fail])
    log.get_logger().info("x")
    assert lines.json[-1]["processor_error"] == "fail: KeyError: 'oops'"
    log.setup(stream=lines, processors=[lambda *_: "text"])
    log.get_logger().info("x")
    assert lines.json[-1]["processor_error"] == "<lambda>: returned str, must return the event_dict"


def test_structlogs_processors_fit(lines):
    callsite = structlog.processors.CallsiteParameterAdder(
        {structlog.processors.CallsiteParameter.FUNC_NAME}, additional_ignores=["ctrlruntime.log"]
    )
    log.setup(stream=lines, processors=[callsite, structlog.processors.dict_tracebacks])
    log_failures()

    assert {line["func_name"] for line in lines.json} == {"log_failures"}
    assert lines.json[-1]["stacktrace"][0]["exc_type"] == "ValueError"


def test_structlogs_log_capture_serves_a_test(lines):
    capture = structlog.testing.LogCapture()
    log.setup(log.Options(devel=True), stream=lines, processors=[capture])
    with log.bound(reconcileID="1"):
        log.get_logger("part").error("failed", number=3)

    (entry,) = capture.entries
    assert (entry["event"], entry["log_level"], entry["number"], entry["reconcileID"]) == ("failed", "error", 3, "1")
    assert lines.getvalue() == ""


# --- the process's other loggers -----------------------------------------------------------------------------------


def test_structlog_loggers_write_here_after_setup(lines):
    log.setup(stream=lines)
    logger = structlog.get_logger().bind(part="user")
    with log.bound(controller="c"), structlog.contextvars.bound_contextvars(trace="t"):
        logger.info("from structlog", number=1)
        logger.debug("unseen")
        try:
            raise ValueError("no")
        except ValueError:
            logger.exception("failed")

    first, second = lines.json
    assert {k: first[k] for k in ("msg", "part", "number", "controller", "trace")} == {
        "msg": "from structlog", "part": "user", "number": 1, "controller": "c", "trace": "t",
    }  # fmt: skip
    assert second["error"] == "ValueError: no"
    assert "stacktrace" in second


def test_standard_loggers_write_here_after_setup(lines):
    log.setup(stream=lines)
    logger = logging.getLogger("some.library")
    with log.bound(controller="c"):
        logger.info("counted %d", 3)
        logger.debug("unseen")
        logger.warning("bad format %d", 1)
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("failed")

    first, _, failed = lines.json
    assert (first["logger"], first["msg"], first["controller"]) == ("some.library", "counted 3", "c")
    assert (failed["level"], failed["error"]) == ("error", "ValueError: no")


@pytest.mark.parametrize(("level", "seen"), [("debug", False), (2, True)])
def test_what_libraries_say_at_debug_needs_verbosity_two(lines, level, seen):
    log.setup(log.Options(log_level=level), stream=lines)
    logging.getLogger("some.library").debug("noise")

    assert ("noise" in lines.getvalue()) is seen


def test_a_second_setup_replaces_the_first(lines):
    log.setup(stream=Lines())
    log.setup(stream=lines)
    logging.getLogger("x").warning("once")
    structlog.get_logger().warning("once too")

    assert [line["msg"] for line in lines.json] == ["once", "once too"]


def test_a_closed_stream_breaks_nothing():
    stream = Lines()
    stream.close()
    log.setup(stream=stream)

    log.get_logger().error("nobody reads this")
    assert stream.closed


def test_structlogs_loggers_have_names_and_zaps_levels(lines):
    log.setup(stream=lines)
    structlog.get_logger("user.part").warning("warned")
    structlog.get_logger("user.part").critical("failed", logger="other")
    structlog.get_logger().info("named by a field", logger="field")
    structlog.get_logger().info("with a stack", stack_info=True)

    assert [(line["level"], line.get("logger")) for line in lines.json] == [
        ("warn", "user.part"),
        ("error", "user.part"),
        ("info", "field"),
        ("info", None),
    ]
    assert "test_structlogs_loggers_have_names_and_zaps_levels" in lines.json[-1]["stack"].splitlines()[-2]


def test_a_librarys_own_level_does_not_pass_the_threshold(lines):
    log.setup(log.Options(log_level="error"), stream=lines)
    logger = logging.getLogger("some.eager.library")
    logger.setLevel(logging.DEBUG)
    logger.info("unseen")
    logger.error("seen")

    assert [line["msg"] for line in lines.json] == ["seen"]


def test_sampling_counts_the_lines_of_all_loggers(lines):
    sink.output = chain = Chain(log.Options(), stream=lines, clock=lambda: 5.0)
    for _ in range(100):
        log.get_logger().info("same")
        chain.write(0, "library", "same", {})

    assert len(lines.json) == 101


def test_lines_follow_a_replaced_stderr(capsys, monkeypatch):
    log.setup()
    log.get_logger().info("before")
    replaced = Lines()
    monkeypatch.setattr(sys, "stderr", replaced)
    log.get_logger().info("after")

    assert json.loads(capsys.readouterr().err)["msg"] == "before"
    assert replaced.json[0]["msg"] == "after"


@pytest.mark.parametrize("control", ["\x1b[2J", "\x07", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u200f", "\u061c"])
def test_a_control_character_of_others_does_not_reach_the_console(lines, control):
    log.setup(log.Options(devel=True), stream=lines)
    text = f"a{control}b"
    try:
        raise ValueError(text)
    except ValueError:
        log.get_logger(text).exception(text, word=text, words=f"a {text}", tree={"a": [text]})

    assert "Traceback" in lines.getvalue()
    assert control not in lines.getvalue()
    assert control[0] not in lines.getvalue()
