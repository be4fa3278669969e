from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ctrlruntime.apiserver.cron import parse


def at(text, zone=UTC):
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/5 * * * *", "2026-01-02T03:04:05", "2026-01-02T03:05"),
        ("*/5 * * * *", "2026-01-02T03:05:00", "2026-01-02T03:10"),
        ("0 12 * * *", "2026-01-02T12:00:00", "2026-01-03T12:00"),
        ("30 8-10/2 * * *", "2026-01-02T08:30:00", "2026-01-02T10:30"),
        ("0 0 31 * *", "2026-01-31T00:00:00", "2026-03-31T00:00"),
        ("0 0 29 feb *", "2026-01-01T00:00:00", "2028-02-29T00:00"),
        ("0 0 * * mon,FRI", "2026-01-02T00:00:00", "2026-01-05T00:00"),
        ("0 0 13 * 5", "2026-01-02T00:00:00", "2026-01-09T00:00"),  # either day will do
        ("0 0 */10 * 5", "2026-01-02T00:00:00", "2026-05-01T00:00"),  # a star asks for both
        ("@hourly", "2026-01-02T03:04:05", "2026-01-02T04:00"),
        ("@weekly", "2026-01-02T03:04:05", "2026-01-04T00:00"),
        ("@yearly", "2026-01-02T03:04:05", "2027-01-01T00:00"),
        ("5/20 * * * *", "2026-01-02T03:05:00", "2026-01-02T03:25"),
        ("@every 90m", "2026-01-02T03:04:05", "2026-01-02T04:34:05"),
    ],
)
def test_next_time_of_a_schedule(schedule, after, expected):
    assert parse(schedule).after(at(after)) == at(expected)


def test_schedule_that_names_no_day_has_no_next_time():
    assert parse("0 0 30 2 *").after(at("2026-01-02T00:00:00")) is None


def test_schedule_is_read_in_its_zone():
    berlin = ZoneInfo("Europe/Berlin")

    found = parse("0 9 * * *").after(at("2026-07-01T10:00:00", berlin))

    assert found.astimezone(UTC) == at("2026-07-02T07:00:00")


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("every day", "expected exactly 5 fields, found 2: [every day]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * * 0 *", "beginning of range (0) below minimum (1): 0"),
        ("30-10 * * * *", "beginning of range (30) beyond end of range (10): 30-10"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every day", 'failed to parse duration @every day: time: invalid duration "day"'),
    ],
)
def test_bad_schedules_are_refused_in_the_words_of_the_real_server(schedule, problem):
    with pytest.raises(ValueError) as raised:
        parse(schedule)

    assert str(raised.value) == problem
