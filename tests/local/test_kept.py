"""What programs outside act on: hooks, configurations, tasks of editors."""
import os
import subprocess

import pytest

from local.person import UID


@pytest.fixture
def repository(person):
    for argv in (["git", "init", "-q"], ["git", "config", "user.name", "P"], ["git", "config", "user.email", "p@example.org"]):
        assert person.outside(*argv).status == 0
    return person


def test_git_works(repository):
    r = repository.sh("echo text > file && git add file && git commit -qm first && git status --short && git log --format=%s"
                      " && git checkout -qb other && git branch --show-current")
    assert r.out.split() == ["first", "other"], r
    assert repository.outside("git", "log", "--format=%an").out == "P\n"


@pytest.mark.parametrize("attempt", [
    "echo 'touch ~/owned' > .git/hooks/pre-commit", "git config core.fsmonitor 'touch owned'", "rm -rf .git/hooks",
    "mv .git/hooks .git/h", "mv .git/config .git/c", "mv .git .gone", "cp -r .git g && mv .git .x && mv g .git",
    "rm .git/config && echo '[core]' > .git/config", "ln -sf /tmp .git/hooks", "mkdir .git/hooks/x",
    "python3 -c \"import os; os.rename('.git', 'g')\"", "chmod -R 777 .git/hooks"])
def test_hooks_and_configuration_stay(repository, attempt):
    hooks = {p.name: p.read_bytes() for p in (repository.project / ".git/hooks").iterdir()}
    config = (repository.project / ".git/config").read_bytes()
    r = repository.sh(attempt)
    assert r.status != 0, r
    assert {p.name: p.read_bytes() for p in (repository.project / ".git/hooks").iterdir()} == hooks
    assert (repository.project / ".git/config").read_bytes() == config
    assert repository.outside("git", "status", "--short").status == 0


@pytest.mark.parametrize("name", [".git/commondir", ".git/config.worktree", ".envrc", ".vscode/tasks.json", ".husky/pre-commit",
                                  ".idea/run.xml", ".mcp.json", ".devcontainer/devcontainer.json", ".git/modules/m/config"])
def test_a_new_one_is_set_aside(repository, name):
    r = repository.sh(f"mkdir -p $(dirname {name}); echo planted > {name}; cat {name}")
    assert "planted" in r.out and r.status == 0, r
    top = name if name.startswith(".git/c") else "/".join(name.split("/")[:2 if name.startswith(".git/") else 1])
    assert not os.path.lexists(repository.project / top), r
    aside = repository.project / f"{top}.from-mcpbox-run"
    assert os.path.lexists(aside) and top in r.err and aside.name in r.err, r
    # Again: no earlier one is lost.
    repository.sh(f"mkdir -p $(dirname {name}); echo planted > {name}")
    assert os.path.lexists(f"{aside}.1") and os.path.lexists(aside)


def test_one_that_was_there_can_be_read(person):
    person.write("project/.envrc", "export A=1\n")
    r = person.sh("cat .envrc; echo x >> .envrc; rm -f .envrc")
    assert r.out == "export A=1\n" and (person.project / ".envrc").read_text() == "export A=1\n", r


def test_allow_hooks(repository):
    r = repository.sh("echo x > .git/hooks/post-commit; git config a.b c; mkdir .vscode", ["--allow-hooks"])
    assert r.status == 0 and (repository.project / ".git/hooks/post-commit").exists(), r
    assert (repository.project / ".vscode").is_dir()


def test_a_new_repository_is_set_aside(person):
    r = person.sh("git init -q .")
    assert r.status == 0 and not (person.project / ".git").exists(), r
    assert (person.project / ".git.from-mcpbox-run").is_dir()
    assert person.sh("git init -q .", ["--allow-hooks"]).status == 0
    assert (person.project / ".git").is_dir()


def test_a_link_can_not_be_guarded(repository):
    os.symlink("/tmp", repository.project / ".vscode")
    r = repository.sh("true")
    assert r.status == 125 and ".vscode is a link" in r.err and "--allow-hooks" in r.err, r
    assert repository.sh("true", ["--allow-hooks"]).status == 0


def test_a_worktree(repository):
    assert repository.sh("git commit -q --allow-empty -m x").status == 0
    assert repository.outside("git", "worktree", "add", "-q", "../tree").status == 0
    tree = repository.home / "tree"
    before = (tree / ".git").read_text()
    r = repository.sh("echo 'gitdir: /tmp/evil' > .git || echo kept; mv .git x || echo kept", cwd=tree)
    assert r.out.split() == ["kept", "kept"] and (tree / ".git").read_text() == before, r
    git = repository.project / ".git"
    r = repository.sh("touch f && git add f && git commit -qm tree && echo x > " f"{git}/hooks/post-commit", ["--rw", git], cwd=tree)
    assert "Read-only" in r.err and not (git / "hooks/post-commit").exists(), r
    assert repository.outside("git", "log", "-1", "--format=%s", "tree").out == "tree\n"


def test_a_link_in_the_way_of_the_end_is_not_followed(person):
    """The program exchanges a folder above a kept path for a link to elsewhere."""
    person.write("project/a/b/file", "x")
    person.write("other/b/.envrc", "mine")
    r = person.sh(f"mv a old; ln -s {person.home}/other a; ls", ["--rw", "a/b"])
    assert r.status == 0 and os.path.islink(person.project / "a"), r
    assert (person.home / "other/b/.envrc").read_text() == "mine"


def test_what_a_person_makes_by_hand_is_not_lost(person):
    """A dangling link, an unreadable folder: renamed like all else."""
    r = person.sh("ln -s nowhere .envrc; mkdir -m 0 .vscode")
    assert r.err.count("from-mcpbox-run") == 2, r
    assert os.readlink(person.project / ".envrc.from-mcpbox-run") == "nowhere"
    subprocess.run(["rmdir", person.project / ".vscode.from-mcpbox-run"], check=True)
    assert os.stat(person.project).st_uid == UID
