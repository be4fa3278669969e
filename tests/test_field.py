from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ctrlruntime.field import Duration, IntOrString, MicroTime, Quantity, Time


@pytest.mark.parametrize(
    ("text", "canonical", "amount"),
    [
        ("0", "0", "0"),
        ("100m", "100m", "0.1"),
        ("0.5", "500m", "0.5"),
        (".5", "500m", "0.5"),
        ("1.", "1", "1"),
        ("+5", "5", "5"),
        ("1000m", "1", "1"),
        ("1500m", "1500m", "1.5"),
        ("1024", "1024", "1024"),
        ("1000k", "1M", "1000000"),
        ("1e3", "1e3", "1000"),
        ("12E6", "12e6", "12000000"),
        ("1E", "1E", "1000000000000000000"),
        ("1.5Gi", "1536Mi", "1610612736"),
        ("1000Ki", "1000Ki", "1024000"),
        ("1024Ki", "1Mi", "1048576"),
        ("0.5Ki", "512", "512"),
        ("-1.5Gi", "-1536Mi", "-1610612736"),
        ("0.0000000001", "1n", "0.000000001"),
        ("9Ei", "9223372036854775807", "9223372036854775807"),
        ("1e19", "10e18", "1e19"),
        ("1e100", "10e99", "1e100"),
        ("99999999999999999999", "99999999999999999999", "99999999999999999999"),
        ("-1e19", "-10e18", "-1e19"),
        ("-100Ei", "-9223372036854775807", "-9223372036854775807"),
        ("0.0001Ki", "102400u", "0.1024"),
        ("1e99999", "1e9999", "1e9999"),
        ("5u", "5u", "0.000005"),
    ],
)
def test_quantity_is_read_and_made_canonical_as_kubernetes_does(text: str, canonical: str, amount: str) -> None:
    quantity = Quantity(text)

    assert quantity.amount == Decimal(amount)
    assert quantity.canonical() == canonical
    assert quantity.text == text


@pytest.mark.parametrize("text", ["", "1Kii", "abc", "1 Gi", "--1", "1mi", "0x10", "1e", "NaN", "\u0661"])
def test_quantity_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(text)


def test_quantity_compares_and_hashes_by_amount() -> None:
    assert Quantity("1") == Quantity("1000m") == 1
    assert Quantity("0.5") == Decimal("0.5")
    assert len({Quantity("1"), Quantity("1000m"), 1}) == 1
    assert Quantity("1Gi") > Quantity("1G") >= Quantity("1G")
    assert Quantity("100m") < 1 <= Quantity("1")
    assert Quantity("1") != "1"


def test_quantity_arithmetic_is_exact_and_keeps_the_suffixes() -> None:
    assert (Quantity("1Gi") + Quantity("512Mi")).text == "1536Mi"
    assert (Quantity("100m") * 3).text == "300m"
    assert (3 * Quantity("100m")).text == "300m"
    assert (Quantity(0) + Quantity("1Gi")).text == "1Gi"
    assert (Quantity("1k") - 1).text == "999"
    assert (1 - Quantity("100m")).text == "900m"
    assert (-Quantity("1Mi")).text == "-1Mi"
    assert abs(Quantity("-5")) == 5
    assert sum([Quantity("100m"), Quantity("200m")], Quantity(0)) == Quantity("300m")
    with pytest.raises(TypeError):
        Quantity("1") * Quantity("1")  # type: ignore[operator]


def test_quantity_converts_as_kubernetes_does() -> None:
    assert int(Quantity("1500m")) == 2
    assert Quantity("1.0001").milli == 1001
    assert float(Quantity("250m")) == 0.25
    assert not Quantity("0Gi")
    assert Quantity.of(2048, "BinarySI").text == "2Ki"


@given(st.integers(-(2**62), 2**62), st.sampled_from(["", "m", "k", "Ki", "n", "Mi", "e3"]))
def test_canonical_quantity_means_the_same_and_is_stable(number: int, suffix: str) -> None:
    quantity = Quantity(f"{number}{suffix}")
    canonical = Quantity(quantity.canonical())

    assert canonical == quantity
    assert canonical.canonical() == quantity.canonical()


def test_quantity_survives_copy_and_pickle_with_its_text() -> None:
    quantity = Quantity("0.50")

    assert copy.deepcopy(quantity).text == "0.50"
    assert pickle.loads(pickle.dumps(quantity)).text == "0.50"


def test_time_is_a_datetime_and_is_written_with_seconds() -> None:
    moment = Time.parse("2026-01-02T03:04:05Z")

    assert moment == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert moment.text == "2026-01-02T03:04:05Z"
    assert (moment + timedelta(hours=1)).text == "2026-01-02T04:04:05Z"
    assert moment - datetime(2026, 1, 2, 3, 4, tzinfo=UTC) == timedelta(seconds=5)


@pytest.mark.parametrize(
    "text", ["2026-01-02T03:04:05.123456789Z", "2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05.1Z"]
)
def test_time_keeps_the_text_it_was_read_from(text: str) -> None:
    moment = Time.parse(text)

    assert moment.text == text
    assert copy.deepcopy(moment).text == text
    assert pickle.loads(pickle.dumps(moment)).text == text
    assert moment.utcoffset() == timedelta(0)


def test_times_are_equal_by_value() -> None:
    assert Time.parse("2026-01-02T05:04:05+02:00") == Time.parse("2026-01-02T03:04:05Z")
    assert hash(Time.parse("2026-01-02T05:04:05+02:00")) == hash(Time.parse("2026-01-02T03:04:05Z"))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"])
def test_time_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not an RFC 3339 time"):
        Time.parse(text)


def test_time_of_a_datetime_is_in_utc_and_cut() -> None:
    moment = datetime(2026, 1, 2, 5, 4, 5, 999, tzinfo=timezone(timedelta(hours=2)))

    assert Time.of(moment).text == "2026-01-02T03:04:05Z"
    assert type(Time.of(MicroTime.of(moment))) is Time
    with pytest.raises(ValueError, match="no time zone"):
        Time.of(datetime(2026, 1, 2))  # noqa: DTZ001 - the case under test


def test_now_carries_no_more_than_is_written() -> None:
    assert Time.now().microsecond == 0
    micro = MicroTime.now()
    assert MicroTime.parse(micro.text) == micro


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z", "2026-01-02T05:04:05.0+02:00"])
def test_micro_time_always_has_six_digits(text: str) -> None:
    assert MicroTime.parse(text).text == "2026-01-02T03:04:05.000000Z"


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("0", 0.0, "0s"),
        ("0s", 0.0, "0s"),
        ("90s", 90.0, "1m30s"),
        ("1h15m", 4500.0, "1h15m0s"),
        ("-1.5h", -5400.0, "-1h30m0s"),
        ("250ms", 0.25, "250ms"),
        ("1.5us", 0.000001, "1µs"),
        ("1m0.5s", 60.5, "1m0.5s"),
        ("100h", 360000.0, "100h0m0s"),
    ],
)
def test_duration_reads_and_writes_go_text(text: str, seconds: float, canonical: str) -> None:
    duration = Duration.parse(text)

    assert duration.total_seconds() == seconds
    assert duration.text == str(duration) == text
    assert Duration.of(duration.total_seconds()).text == canonical
    assert pickle.loads(pickle.dumps(duration)).text == text


@pytest.mark.parametrize("text", ["", "5", "1d", "s", "1h 5m", "-", "1.2.3s"])
def test_duration_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Duration.parse(text)


@given(st.integers(-(10**15), 10**15))
def test_duration_text_means_the_same(micros: int) -> None:
    duration = Duration(microseconds=micros)

    assert Duration.parse(duration.text) == duration


def test_int_or_string_keeps_what_it_is_given() -> None:
    adapter: TypeAdapter[int | str] = TypeAdapter(IntOrString)

    assert adapter.validate_json("8080") == 8080
    assert adapter.validate_json('"8080"') == "8080"
    for wrong in ("true", "1.5", "null"):
        with pytest.raises(ValidationError):
            adapter.validate_json(wrong)


def test_fields_take_their_plain_relatives() -> None:
    assert TypeAdapter(Quantity).validate_json("1.5") == Quantity("1500m")
    assert TypeAdapter(Duration).validate_python(timedelta(minutes=1)).text == "1m0s"
    assert TypeAdapter(Time).validate_python(datetime(2026, 1, 2, tzinfo=UTC)).text == "2026-01-02T00:00:00Z"
    for kind, wrong in ((Quantity, "[]"), (Quantity, "true"), (Duration, "true"), (Time, "5")):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_json(wrong)


@pytest.mark.parametrize("text", ["2026-01-02 03:04:05Z", "2026-W01-5T03:04:05Z", "2026-01-02T030405.0Z"])
def test_a_time_in_a_form_no_server_takes_is_written_in_the_common_one(text: str) -> None:
    assert Time.parse(text).text == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("kind", "text"),
    [(Time, "2026-01-02T03:04:05Z"), (MicroTime, "2026-01-02T03:04:05.000001Z"), (Quantity, "100m"), (Duration, "90s")],
)
def test_a_text_that_was_read_before_is_the_same_value(kind: type, text: str) -> None:
    adapter: TypeAdapter[object] = TypeAdapter(kind)

    assert adapter.validate_json(f'"{text}"') is adapter.validate_json(f'"{text}"')


def test_values_are_remembered_by_their_text_and_not_by_what_they_mean() -> None:
    adapter = TypeAdapter(Quantity)

    assert [adapter.validate_json(text).text for text in ('"1"', '"1000m"', "1", "1.0")] == ["1", "1000m", "1", "1.0"]
    assert TypeAdapter(MicroTime).validate_json('"2026-01-02T03:04:05Z"').text == "2026-01-02T03:04:05.000000Z"
    assert TypeAdapter(Time).validate_json('"2026-01-02T03:04:05Z"').text == "2026-01-02T03:04:05Z"


def test_text_without_end_is_not_remembered() -> None:
    adapter, text = TypeAdapter(Quantity), "1" * 100

    assert adapter.validate_json(f'"{text}"') is not adapter.validate_json(f'"{text}"')


def test_the_refusal_of_a_text_is_not_remembered_as_a_value() -> None:
    adapter = TypeAdapter(Time)

    for _ in range(2):
        with pytest.raises(ValidationError, match="'soon' is not an RFC 3339 time"):
            adapter.validate_json('"soon"')


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_a_duration_beyond_all_bounds_is_the_longest_and_keeps_its_text(sign: str) -> None:
    text = f"{sign}{'9' * 1000}h"

    assert Duration.parse(text).text == text
    assert abs(Duration.parse(text)) == timedelta(days=999_999_999)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-23:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:00"])
def test_a_time_outside_of_the_calendar_is_its_end_and_keeps_its_text(text: str) -> None:
    moment = Time.parse(text)

    assert moment.text == pickle.loads(pickle.dumps(moment)).text == text
    assert moment in {datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)}
    assert Time.parse("2026-01-02T03:04:05Z") != moment


def test_a_time_of_the_year_zero_may_lie_in_the_year_one() -> None:
    assert Time.parse("0000-12-31T23:59:59-23:00") == datetime(1, 1, 1, 22, 59, 59, tzinfo=UTC)


def test_a_number_of_seconds_that_is_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match="more than a timedelta holds"):
        Duration.of(1e300)
