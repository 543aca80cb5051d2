#!/usr/bin/env python3
"""docs/terminal.svg: a terminal in which `forerun try`, `mount` and `top` were run on an emulated disk.

    sudo packaging/terminal.py PROGRAMS [OUT.svg]

PROGRAMS is the folder of the built `forerun` and `forerun-bed`. The disk is that of crates/bed/beds/disk.toml, 8 ms a switch and
80 MB/s, with 16 files; it is shown as /data in a mount namespace of its own. Texts are the output of the programs as it is; blank
lines at the ends are cut. Needs root, FUSE, loop devices and two minutes.
"""

import html
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = 16
READERS = 6
COLUMNS = 92
# Of a character, and of a line.
WIDTH, HEIGHT = 8.05, 18

STYLE = """
  .back { fill: #1f2430; } .text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d8dee9; white-space: pre; }
  .typed { fill: #a3d9a5; font-weight: bold; }
"""


def bed(folder):
    """The description of the disk, with fewer files."""
    text = (ROOT / "crates/bed/beds/disk.toml").read_text()
    text = text.replace("count = 64", f"count = {FILES}").replace("7_000_000_000", "2_200_000_000")
    path = folder / "disk.toml"
    path.write_text(text)
    return path


def output(command, env):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.rstrip("\n").split("\n")


def recorded(programs, folder):
    """Lines of the terminal: whether typed, and the text."""
    env = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", FORERUN_RUNTIME_DIR=str(folder / "run"))
    state = folder / "bed"
    made = [Path(name) for name in ("/data", "/fast") if not Path(name).exists()]
    for path in made:
        path.mkdir()
    lines = []

    def run(line):
        lines.append((True, line))
        lines.extend((False, text) for text in output(line.split(), env))
        lines.append((False, ""))

    readers = []
    try:
        subprocess.run(["forerun-bed", "up", "--state", state, bed(folder)], env=env, check=True)
        subprocess.run(["mount", "--bind", state / "files", "/data"], check=True)
        run("forerun try --seconds 60 /data")
        subprocess.run(["forerun-bed", "cold", "--state", state], env=env, check=True)
        run("forerun mount /data /fast")
        lines.pop()
        files = sorted(path for path in Path("/fast").rglob("*") if path.is_file())[:READERS]
        readers = [subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL) for path in files]
        # Windows have grown by then.
        time.sleep(3)
        run("forerun top --once /fast")
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
        for command in (["forerun", "umount", "/fast"], ["umount", "-l", "/data"], ["forerun-bed", "down", "--state", state]):
            subprocess.run(command, env=env, check=False)
        for path in made:
            subprocess.run(["rmdir", path], check=False)
    return lines[:-1]


def drawn(lines):
    columns = max(COLUMNS, max(len(text) + 2 * typed for typed, text in lines))
    width, height = round(columns * WIDTH + 32), len(lines) * HEIGHT + 32
    rows = []
    for at, (typed, text) in enumerate(lines):
        kind = "text typed" if typed else "text"
        shown = html.escape(f"$ {text}" if typed else text, quote=False)
        rows.append(f'<text class="{kind}" x="16" y="{16 + (at + 0.75) * HEIGHT:g}" xml:space="preserve">{shown}</text>')
    title = "forerun try, mount and top in a terminal, on an emulated disk of 8 ms and 80 MB/s"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="back" width="{width}" height="{height}" rx="8"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def main():
    programs = Path(sys.argv[1]).resolve()
    out = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/terminal.svg").resolve()
    if os.environ.get("FORERUN_TERMINAL_APART") is None:
        # Nothing of what is mounted is seen outside, nor stays.
        os.environ["FORERUN_TERMINAL_APART"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "run").mkdir(mode=0o700)
        lines = recorded(programs, folder)
    out.write_text(drawn(lines))
    print("\n".join(("$ " if typed else "") + text for typed, text in lines))


if __name__ == "__main__":
    main()
