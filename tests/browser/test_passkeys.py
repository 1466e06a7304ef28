"""Passkeys as a real browser makes them: Chromium's client data, attestation and signatures, of its own authenticators,
against the vault. The pages only run a ceremony; the login is made at the address, as decision 0104 describes it."""
import json
import os
import signal
import types

import pytest

from harness.clients.chromium import Chromium, Pages, Refused
from harness.clients.rest import Rest
from harness.patience import until
from harness.played.authenticator import AT, BE, BS, ES256, UP, UV, unb64
from integration.admin.test_passkeys import begun, events, options, person, problem  # noqa: F401 fixtures

#: Bit of the flags: extensions follow (WebAuthn Level 3, section 6.1).
ED = 0x80
#: An algorithm that Chromium's authenticators have and the vault does not offer.
RS256 = -257
#: At most, until client data of two forms came.
CEREMONIES = 60


@pytest.fixture(scope="module")
def site(instance):
    """Origins: `page` is admind-http's, `other` is another that the vault takes, `strange` one that it does not."""
    pages = Pages(), Pages()
    port = instance.address("admind-http")[1]
    origins = types.SimpleNamespace(page=f"http://localhost:{port}", other=pages[0].origin, strange=pages[1].origin,
                                    address=f"http://127.0.0.1:{port}")
    try:
        # The port is known only now.
        with open(os.path.join(instance.state, "conf", "admind-vault.conf"), "a", encoding="ascii") as f:
            f.write(f"passkey_rp_id localhost\npasskey_origins {origins.page},{origins.other}\n"
                    "passkey_localhost yes\n")
        pid = instance.service_pid("admind-vault")
        os.kill(pid, signal.SIGTERM)
        until(lambda: instance.service_pid("admind-vault") not in (None, pid))
        instance.tool("wait")
        # admind-http has the new one, too
        until(lambda: Rest(lambda: instance.address("admind-http")).login("admin", instance.password)[0] == 200)
        yield origins
    finally:
        for p in pages:
            p.close()


@pytest.fixture(scope="module")
def chromium(instance):
    c = Chromium(instance.uid("stranger"))
    yield c
    c.close()


@pytest.fixture
def browser(chromium, site):
    """With no authenticator, and the page of admind-http open."""
    chromium.open(site.page + "/health")
    yield chromium
    chromium.unplug()


def registered(rest, browser, **more):
    """Makes a passkey and registers it; what the browser said."""
    created = browser.create(options(rest, "register"), **more)
    answer = rest.request("POST", "/api/passkeys", {"label": "of Chromium", "credential": created})
    assert answer[0] == 204, answer
    return created


def flags(credential):
    """Of the authenticator data, as the standard numbers the bits."""
    return unb64(credential["response"]["authenticatorData"])[32]


def only(alg):
    """For the options of a registration."""
    return {"pubKeyCredParams": [{"type": "public-key", "alg": alg}]}


def refused(name, ceremony, *args, **more):
    with pytest.raises(Refused) as e:
        ceremony(*args, **more)
    assert e.value.name == name, e.value


def begins(instance, name):
    rest, value = begun(instance, name)
    assert value["passkey_required"] is False
    return rest


def half(instance, name):
    rest, value = begun(instance, name)
    assert value["passkey_required"] is True
    return rest


def finish(rest, assertion):
    return rest.request("POST", "/api/login/passkey", {"assertion": assertion})


@pytest.mark.parametrize("alg", [None, ES256])
def test_register_log_in_prove(instance, browser, person, alg):  # noqa: F811
    """None: Chromium takes the first algorithm that the vault offers, EdDSA."""
    browser.device()
    first = begins(instance, person)
    created = registered(first, browser, **(only(alg) if alg else {}))
    item, = first.get("/api/passkeys")[2]["items"]
    assert (item["id"], item["copied"]) == (created["id"], False)
    listed, = instance.ctl_json("passkeys", person)["items"]
    assert listed["algorithm"] == ("ES256" if alg == ES256 else "EdDSA")
    rest = half(instance, person)
    problem(rest.get("/api/me"), 401, "unauthenticated")
    assertion = browser.get(options(rest, "login"))
    assert assertion["response"]["userHandle"]      # which the vault compares
    status, _, value = finish(rest, assertion)
    assert (status, value["username"], value["role"]) == (200, person, "reviewer"), value
    status, _, value = rest.get("/api/me")
    assert (status, value["username"]) == (200, person), value
    proof = browser.get(options(rest, "proof"))
    assert rest.request("POST", "/api/proof", {"assertion": proof})[0] == 204
    problem(rest.request("POST", "/api/proof", {"assertion": proof}), 403, "passkey_refused")


def test_client_data_with_a_member_more(instance, browser, person):  # noqa: F811
    """Chromium adds a member to the client data of one ceremony in five, so that nobody takes them for constant. The
    vault has to take them with it and without it."""
    browser.device()
    rest = begins(instance, person)
    registered(rest, browser)
    forms = set()
    for _ in range(CEREMONIES):
        proof = browser.get(options(rest, "proof"))
        said = unb64(proof["response"]["clientDataJSON"])
        answer = rest.request("POST", "/api/proof", {"assertion": proof})
        assert answer[0] == 204, (answer, said)
        forms.add(tuple(json.loads(said)))
        if len(forms) > 1:
            break


def test_attestation_of_the_maker(instance, browser, person):  # noqa: F811
    """A page may ask for it. The vault passes it over."""
    browser.device()
    created = registered(begins(instance, person), browser, attestation="direct", **only(ES256))
    assert b"x5c" in unb64(created["response"]["attestationObject"])
    rest = half(instance, person)
    assert finish(rest, browser.get(options(rest, "login")))[0] == 200


def test_another_algorithm(instance, browser, person):  # noqa: F811
    browser.device()
    first = begins(instance, person)
    created = browser.create(options(first, "register"), **only(RS256))
    problem(first.request("POST", "/api/passkeys", {"label": "RSA", "credential": created}), 400, "invalid_params")
    registered(first, browser)


def test_the_authenticator_chooses(instance, browser, person):  # noqa: F811
    """Without a list it finds the passkey by the RP id. It makes no second one beside one that is excluded."""
    browser.device()
    registered(begins(instance, person), browser, authenticatorSelection={
        "residentKey": "required", "userVerification": "required"})
    rest = half(instance, person)
    assert finish(rest, browser.get(options(rest, "login"), allowCredentials=[]))[0] == 200
    refused("InvalidStateError", browser.create, options(rest, "register"))


def test_extensions(instance, browser, person):  # noqa: F811
    """What an authenticator says of extensions is signed after the credential, and passed over."""
    browser.device(protocol="ctap2_1", extensions=["prf", "credBlob", "minPinLength", "largeBlob"])
    created = registered(begins(instance, person), browser, extensions={
        "credProps": True, "prf": {}, "credBlob": "AAAA", "minPinLength": True})
    assert flags(created) == UP | UV | AT | ED
    rest = half(instance, person)
    assertion = browser.get(options(rest, "login"), extensions={"prf": {"eval": {"first": "AAAA"}}, "getCredBlob": True})
    assert flags(assertion) == UP | UV | ED
    assert finish(rest, assertion)[0] == 200


def test_backed_up(instance, browser, person):  # noqa: F811
    """A passkey that moves between devices says so from its registration on."""
    browser.device(defaultBackupEligibility=True, defaultBackupState=True)
    assert flags(registered(begins(instance, person), browser)) == UP | UV | BE | BS | AT
    rest = half(instance, person)
    assert finish(rest, browser.get(options(rest, "login")))[0] == 200


def test_a_copied_device(instance, browser, person):  # noqa: F811
    """Its counter is behind that of the first device."""
    first = browser.device()
    registered(begins(instance, person), browser)
    copy, = browser.credentials(first)
    rest = half(instance, person)
    assert finish(rest, browser.get(options(rest, "login")))[0] == 200
    browser.unplug()
    browser.put(browser.device(), copy)
    thief = half(instance, person)
    problem(finish(thief, browser.get(options(thief, "login"))), 403, "passkey_refused")
    problem(thief.get("/api/me"), 401, "unauthenticated")
    assert "passkey_cloned" in [action for action, _ in events(instance, person)]
    # The copy counts on, past the first device. It opens nothing any more.
    for _ in range(3):
        problem(finish(thief, browser.get(options(thief, "login"))), 403, "passkey_refused")


def test_the_owner_is_not_verified(instance, browser, person):  # noqa: F811
    """Chromium hands out nothing, unless the page asks for less than the vault does; then the vault refuses."""
    first = begins(instance, person)
    less = {"userVerification": "discouraged"}
    browser.device(hasUserVerification=False, isUserVerified=False)
    asked = options(first, "register")
    refused("NotAllowedError", browser.create, asked)
    created = browser.create(asked, authenticatorSelection=less)
    assert flags(created) == UP | AT
    problem(first.request("POST", "/api/passkeys", {"label": "no owner", "credential": created}), 403, "passkey_refused")
    browser.unplug()
    device = browser.device()
    registered(first, browser)
    browser.verifies(device, False)
    rest = half(instance, person)
    asked = options(rest, "login")
    refused("NotAllowedError", browser.get, asked)
    assertion = browser.get(asked, **less)
    assert flags(assertion) == UP
    problem(finish(rest, assertion), 403, "passkey_refused")
    browser.verifies(device, True)
    assert finish(rest, browser.get(options(rest, "login")))[0] == 200


def test_pages(instance, site, browser, person):  # noqa: F811
    """The RP id fits every port of localhost, so Chromium gives a passkey to all pages there. The vault takes the
    answers of those that it was told, and none of a frame in another page."""
    browser.device()
    first = begins(instance, person)
    browser.open(site.strange)
    created = browser.create(options(first, "register"))
    problem(first.request("POST", "/api/passkeys", {"label": "strange", "credential": created}), 403, "passkey_refused")
    browser.open(site.other)
    registered(first, browser)
    rest = half(instance, person)
    browser.open(site.strange)
    problem(finish(rest, browser.get(options(rest, "login"))), 403, "passkey_refused")
    browser.open(site.strange + "/frame?" + site.other)
    browser.frame(0)
    assertion = browser.get(options(rest, "login"))
    said = json.loads(unb64(assertion["response"]["clientDataJSON"]))
    assert (said["origin"], said["crossOrigin"]) == (site.other, True)
    problem(finish(rest, assertion), 403, "passkey_refused")
    # the same page, not framed, with the same passkey
    browser.frame(None)
    browser.open(site.other)
    assert finish(rest, browser.get(options(rest, "login")))[0] == 200


def test_the_address_is_no_place_for_passkeys(instance, site, browser, person):  # noqa: F811
    """There a login is made, but Chromium makes and uses no passkey at an address."""
    browser.device()
    rest = begins(instance, person)
    registered(rest, browser)
    browser.open(site.address + "/health")
    refused("SecurityError", browser.get, options(rest, "proof"))
    refused("SecurityError", browser.create, options(rest, "register"))
    refused("SecurityError", browser.get, options(rest, "proof"), rpId="127.0.0.1")
    browser.open(site.page + "/health")
    assert rest.request("POST", "/api/proof", {"assertion": browser.get(options(rest, "proof"))})[0] == 204
