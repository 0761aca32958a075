from __future__ import annotations

import pytest

from podqos.admission.names import label_complaints, qualified_name_complaints, subdomain_complaints


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        pytest.param("cpu", None, id="plain"),
        pytest.param("example.com/gpu_A.1", None, id="with-domain"),
        pytest.param("", "name part must be non-empty", id="empty"),
        pytest.param("/gpu", "prefix part must be non-empty", id="empty-domain"),
        pytest.param("example.com/", "name part must be non-empty", id="domain-alone"),
        pytest.param("a/b/c", "a valid label key must consist of alphanumeric characters", id="two-slashes"),
        pytest.param("-cpu", "name part must consist of alphanumeric characters", id="leading-dash"),
        pytest.param("UPPER/gpu", "prefix part a lowercase RFC 1123 subdomain must consist", id="upper-case-domain"),
        pytest.param("x" * 64, "name part must be no more than 63 bytes", id="long"),
        pytest.param(f"{'x' * 254}/gpu", "prefix part must be no more than 253 bytes", id="long-domain"),
    ],
)
def test_resource_names_are_qualified_names(name, complaint):
    """A name, or a domain and a name."""
    complaints = qualified_name_complaints(name)
    assert complaints == [] if complaint is None else complaints[0].startswith(complaint)


@pytest.mark.parametrize(
    ("name", "valid"), [("a-1", True), ("a.b", False), ("A", False), ("a-", False), ("x" * 64, False)]
)
def test_container_names_are_labels(name, valid):
    """No dots, no capitals, at most 63."""
    assert (label_complaints(name) == []) is valid


@pytest.mark.parametrize(("name", "valid"), [("a.b-1", True), ("a..b", False), ("A", False), ("x" * 254, False)])
def test_object_names_are_subdomains(name, valid):
    """Labels joined by dots, at most 253."""
    assert (subdomain_complaints(name) == []) is valid
