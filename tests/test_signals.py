"""SIGTERM and SIGINT are handled for a time, and what was there before is back afterwards."""

import asyncio
import os
import signal

import pytest

from ctrlruntime.signals import STOP, handled, handled_by_loop


def heard_before(number, frame):
    raise AssertionError("nothing is sent while this handler is there")


@pytest.fixture(
    params=[signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler, heard_before],
    ids=["ignored", "default", "of Python", "of a program"],
)
def found(request):
    """The handlers that a program may find: a shell starts background jobs with SIGINT ignored."""
    before = {number: signal.signal(number, request.param) for number in STOP}
    yield request.param
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers():
    return [signal.getsignal(number) for number in STOP]


@pytest.mark.parametrize("number", STOP)
def test_a_signal_is_handled_and_the_handler_from_before_is_back(found, number):
    heard = []
    with handled(lambda received, _frame: heard.append(received)):
        os.kill(os.getpid(), number)
    assert heard == [number]
    assert handlers() == [found, found]


@pytest.mark.parametrize("number", STOP)
def test_a_signal_is_handled_by_the_loop_and_the_handler_from_before_is_back(found, number):
    async def wait():
        heard = asyncio.Queue()
        with handled_by_loop(heard.put_nowait):
            os.kill(os.getpid(), number)
            received = await heard.get()
        return received, handlers()

    runner = asyncio.new_event_loop()  # asyncio.run handles SIGINT itself
    try:
        assert runner.run_until_complete(wait()) == (number, [found, found])
    finally:
        runner.close()
    assert handlers() == [found, found]


def test_the_handlers_from_before_are_back_after_an_error(found):
    with pytest.raises(ZeroDivisionError), handled(heard_before):
        raise ZeroDivisionError
    assert handlers() == [found, found]
