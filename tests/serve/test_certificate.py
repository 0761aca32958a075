"""The self-made certificate: good for its names, renewed in time, and trusted through a change of authority."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from podqos.errors import HostError, InputError
from podqos.serve.certificate import make, service_names
from podqos.serve.tls import Certificate

NAMES = ("podqos-webhook.podqos-system.svc", "127.0.0.1")
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def files(folder):
    return {name: (folder / name).read_bytes() for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")}


def trusts(authorities, certificate):
    """Whether a certificate comes of one of the authorities."""
    for authority in x509.load_pem_x509_certificates(authorities):
        try:
            x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - cryptography has several
            continue
        return True
    return False


def test_it_makes_an_authority_and_a_certificate_that_python_serves(tmp_path):
    made = make(str(tmp_path), NAMES)
    assert made.is_new
    assert made.is_new_authority
    loaded = Certificate(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    assert loaded.expires == pytest.approx(made.expires.timestamp(), abs=1)
    assert trusts(files(tmp_path)["ca.crt"], files(tmp_path)["tls.crt"])
    ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))


def test_keys_are_readable_to_their_owner_alone(tmp_path):
    make(str(tmp_path), NAMES)
    for name in ("ca.key", "tls.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]


def test_what_is_still_good_stays(tmp_path):
    make(str(tmp_path), NAMES, days=90, now=NOW)
    before = files(tmp_path)
    again = make(str(tmp_path), NAMES, days=90, now=NOW + timedelta(days=59))
    assert not again.is_new
    assert files(tmp_path) == before


def test_a_certificate_is_renewed_when_a_third_of_its_time_is_left(tmp_path):
    make(str(tmp_path), NAMES, days=90, now=NOW)
    before = files(tmp_path)
    again = make(str(tmp_path), NAMES, days=90, now=NOW + timedelta(days=61))
    assert again.is_new
    assert not again.is_new_authority
    after = files(tmp_path)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["tls.crt"] != before["tls.crt"]


def test_other_names_need_another_certificate(tmp_path):
    make(str(tmp_path), NAMES)
    assert make(str(tmp_path), (*NAMES, "localhost")).is_new
    assert not make(str(tmp_path), (*NAMES, "localhost")).is_new


def test_a_replaced_authority_is_trusted_until_it_expires(tmp_path):
    make(str(tmp_path), NAMES, days=365, now=NOW)
    old = files(tmp_path)
    again = make(str(tmp_path), NAMES, days=365, now=NOW + timedelta(days=3650 - 300))
    assert again.is_new_authority
    new = files(tmp_path)
    assert trusts(new["ca.crt"], old["tls.crt"])
    assert trusts(new["ca.crt"], new["tls.crt"])
    make(str(tmp_path), NAMES, days=365, now=NOW + timedelta(days=3651), force=True)
    assert trusts(files(tmp_path)["ca.crt"], new["tls.crt"])


def test_without_its_key_an_authority_is_replaced(tmp_path):
    make(str(tmp_path), NAMES)
    (tmp_path / "ca.key").unlink()
    assert make(str(tmp_path), NAMES).is_new_authority


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key"])
def test_a_broken_certificate_is_made_anew(tmp_path, broken):
    make(str(tmp_path), NAMES)
    (tmp_path / broken).write_text("nonsense")
    assert make(str(tmp_path), NAMES).is_new
    Certificate(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))


def test_a_file_that_is_no_authority_is_never_overwritten(tmp_path):
    (tmp_path / "ca.crt").write_text("my notes")
    with pytest.raises(InputError):
        make(str(tmp_path), NAMES)
    assert (tmp_path / "ca.crt").read_text() == "my notes"


def test_what_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="file"):
        make(str(tmp_path / "file"), NAMES)


def test_a_name_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a valid DNS name"):
        make(str(tmp_path), ("münchen",))


def test_an_api_server_asks_for_the_service_by_its_first_name():
    assert service_names("hook", "ns")[0] == "hook.ns.svc"


@pytest.mark.parametrize(("certificate", "what"), [("nonsense", "PEM"), (None, "No such file")])
def test_a_certificate_that_cannot_be_used_is_one_message(tmp_path, certificate, what):
    make(str(tmp_path), NAMES)
    if certificate is None:
        (tmp_path / "tls.crt").unlink()
    else:
        (tmp_path / "tls.crt").write_text(certificate)
    with pytest.raises(InputError, match=what):
        Certificate(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
