"""URLs and addresses as Go reads them; the messages are those of Go 1.26."""

from __future__ import annotations

import pytest

from ctrlruntime.addresses import go_quoted, why_no_address, why_no_prefix
from ctrlruntime.go_urls import URLError, parse_request_uri, parse_url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.3.04", "IPv4 field has octet with leading zero"),
        ("1..3.4", 'IPv4 field must have at least one digit (at ".3.4")'),
        ("1.2.3.4/8", 'unexpected character (at "/8")'),
        ("", "unable to parse IP"),
        ("%eth0", "missing IPv6 address"),
        ("fe80::1%", "zone must be a non-empty string"),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("a:b", "address string too short"),
        ("a:", 'colon must be followed by more characters (at ":")'),
        ("a:g", 'each colon-separated field must have at least one digit (at "g")'),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
        ("1:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
    ],
)  # fmt: skip
def test_why_no_address_is_said_as_in_go(text, why):
    assert why_no_address(text) == f'ParseAddr("{text}"): {why}'


@pytest.mark.parametrize("text", ["1.2.3.4", "::", "::1", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4"])
def test_addresses_have_no_fault(text):
    assert why_no_address(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.0", "no '/'"),
        ("10.0.0.0/08", 'bad bits after slash: "08"'),
        ("10.0.0.0/33", "prefix length out of range"),
        ("fe80::1%a/64", "IPv6 zones cannot be present in a prefix"),
        ("10/8", 'ParseAddr("10"): unable to parse IP'),
        ("10.0.0.0/8", None),
    ],
)
def test_why_no_prefix(text, why):
    assert why_no_prefix(text) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty url"),
        (":a", "missing protocol scheme"),
        ("a.b", "invalid URI for request"),
        ("\t", "net/url: invalid control character in URL"),
        ("http://[", "missing ']' in host"),
        ("http://a[", "invalid IP-literal"),
        ("http://[1.2.3.4]", "invalid IP-literal"),
        ("http://[x]", 'invalid host: ParseAddr("x"): unable to parse IP'),
        ("http://a:b", 'invalid port ":b" after host'),
        ("http://a:1:2", 'invalid port ":1:2" after host'),
        ("http://a b", 'invalid character " " in host name'),
        ("http://a%20b", 'invalid URL escape "%20"'),
        ("http://a/%zz", 'invalid URL escape "%zz"'),
        ('http://"@a', "net/url: invalid userinfo"),
    ],
)
def test_a_wrong_request_uri_is_refused_in_the_words_of_go(text, why):
    with pytest.raises(URLError) as caught:
        parse_request_uri(text)

    assert str(caught.value) == f"parse {go_quoted(text)}: {why}"


def test_the_parts_of_a_url():
    url = parse_url("HTTPS://u%20:p@[fe80::1%25en0]:80/a%2Fb/ c?x=1&x=a+b&;&%zz=1#f")

    assert (url.scheme, url.user, url.host) == ("https", "u%20:p", "[fe80::1%en0]:80")
    assert url.host_and_port() == ("fe80::1%en0", "80")
    assert url.escaped_path() == "/a/b/%20c"
    assert (url.parameters(), url.fragment) == ({"x": ["1", "a b"]}, "f")
    assert parse_url("/a%2Fb/c").escaped_path() == "/a%2Fb/c"
    assert parse_url("mailto:a@b").opaque == "a@b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [('a"\\', '"a\\"\\\\"'), ("\x00\x07\n\x7f", '"\\x00\\a\\n\\x7f"'), ("é\u200b", '"é\\u200b"')],
)
def test_texts_are_quoted_as_in_go(text, shown):
    assert go_quoted(text) == shown
