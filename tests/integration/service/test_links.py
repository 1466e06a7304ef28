"""contrib/links: an instance's mcpboxctl, manual pages and completions in the machine's paths,
and nothing else of these touched. By itself, in a directory of the test's."""
import os
import subprocess

import pytest

LINKS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "contrib", "links")
FILES = ("bin/mcpboxctl", "share/bash-completion/completions/mcpboxctl", "share/zsh/site-functions/_mcpboxctl",
         "share/man/man1/mcpboxctl.1", "share/man/man5/mcpbox.conf.5")


@pytest.fixture
def place(tmp_path):
    for state in ("one", "one-more"):
        for name in FILES:
            (tmp_path / state / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / state / name).write_text(state)
    return tmp_path


def links(place, action, state):
    return subprocess.run([LINKS, action, place / state, place / "prefix"], check=True, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL).stdout


def found(place):
    return {name: os.readlink(place / "prefix" / name) for name in FILES if os.path.islink(place / "prefix" / name)}


def test_added_once_and_removed(place):
    for _ in range(2):
        assert links(place, "add", "one") == ""
        assert found(place) == {name: str(place / "one" / name) for name in FILES}
    links(place, "remove", "one")
    assert found(place) == {} and (place / "one" / FILES[0]).exists()


def test_what_is_there_stays_and_is_told(place):
    """A file, a link that leads nowhere, and another instance's, whose name begins with ours."""
    for name in FILES[:2]:
        (place / "prefix" / name).parent.mkdir(parents=True)
    (place / "prefix" / FILES[0]).write_text("theirs")
    os.symlink("/nonexistent/mcpboxctl", place / "prefix" / FILES[1])
    said = links(place, "add", "one")
    assert said.count("is there already") == 2 and str(place / "one" / FILES[0]) in said
    links(place, "remove", "one")
    assert (place / "prefix" / FILES[0]).read_text() == "theirs"
    assert found(place) == {FILES[1]: "/nonexistent/mcpboxctl"}
    links(place, "add", "one-more")
    assert links(place, "add", "one").count("is there already") == len(FILES)
    links(place, "remove", "one")
    assert len(found(place)) == len(FILES) - 1


def test_links_to_files_that_are_gone_go_too(place):
    links(place, "add", "one")
    (place / "one" / FILES[3]).unlink()
    links(place, "remove", "one")
    assert found(place) == {}


def test_purge_after_the_state_is_gone(place):
    links(place, "add", "one")
    subprocess.run(["rm", "-r", place / "one"], check=True)
    links(place, "remove", "one")
    assert found(place) == {}
