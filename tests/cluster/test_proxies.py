"""Through which proxy: the rules of Go."""

from __future__ import annotations

import pytest

from podqos.cluster.proxies import Address, proxy_for
from podqos.errors import InputError

ENVIRONMENT = {"HTTPS_PROXY": "http://proxy:3128", "HTTP_PROXY": "plain:8080"}


def proxy(host, no_proxy="", port=6443, scheme="https"):
    found = proxy_for(Address(scheme, host, port), "", {**ENVIRONMENT, "NO_PROXY": no_proxy})
    return found and str(found)


def test_https_and_http_have_proxies_of_their_own():
    assert proxy("api.example.com") == "http://proxy:3128"
    assert proxy("api.example.com", scheme="http") == "http://plain:8080"


def test_lower_case_variables_count_where_upper_case_ones_are_missing():
    server = Address("https", "api", 443)
    assert proxy_for(server, "", {"https_proxy": "a:1"}) == Address("http", "a", 1)
    assert proxy_for(server, "", {"https_proxy": "a:1", "no_proxy": "api"}) is None
    assert proxy_for(server, "", {}) is None


@pytest.mark.parametrize(
    ("host", "no_proxy", "is_direct"),
    [
        ("api.example.com", "*", True),
        ("api.example.com", "example.com", True),
        ("api.example.com", ".example.com", True),
        ("api.example.com", "*.example.com", True),
        ("API.Example.com", "other, example.COM", True),
        ("example.com", ".example.com", False),
        ("example.com", "example.com", True),
        ("notexample.com", "example.com", False),
        ("api.example.com", "example.com:6443", True),
        ("api.example.com", "example.com:443", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:443", False),
        ("11.1.2.3", "10.0.0.0/8,nonsense/99", False),
        ("fd00::1", "fd00::/8", True),
        ("fd00::1", "[fd00::1]:6443", True),
        ("fd00::1", "[fd00::1]:443", False),
        ("localhost", "", True),
        ("127.0.0.1", "", True),
        ("::1", "", True),
        ("10.1.2.3", "example.com", False),
        ("10.0.0.1", "10.0.0.2,10.0.0.1", True),
        ("10.0.0.1", "example.com,10.0.0.1", True),
        ("10.0.0.1", "x/y,10.0.0.0/8", True),
        ("10.0.0.1", "11.0.0.0/8,10.0.0.0/8", True),
        ("api", ",api", True),
        ("api", "api:1,api:6443", True),
    ],
)
def test_exceptions(host, no_proxy, is_direct):
    assert (proxy(host, no_proxy) is None) == is_direct


def test_a_stated_proxy_counts_before_the_environment_and_its_exceptions():
    found = proxy_for(Address("https", "localhost", 443), "socks5://me:a%40b@hop", {**ENVIRONMENT, "NO_PROXY": "*"})
    assert found == Address("socks5", "hop", 1080, "me", "a@b")


@pytest.mark.parametrize("stated", ["ftp://x", "http://", "http://x:0", "http://x:99999", "http://[::1"])
def test_what_is_no_proxy_is_refused(stated):
    with pytest.raises(InputError, match=r"proxy-url: .* is not a valid proxy address"):
        proxy_for(Address("https", "api", 443), stated, {})
