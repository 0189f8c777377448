"""A page in headless Chromium: what its scripts found, what the console said, what it asked of the network.

Chromium is driven by its command line alone. A copy of the page carries the test's script, which clicks and reads as a
reader would and leaves what it found in the document; Chromium prints the document when all is quiet.
"""

import base64
import contextlib
import hashlib
import html
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import threading
from typing import Any, NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
WAIT = "--virtual-time-budget=10000"  # the page's clock runs ahead while it waits, and not while it works
# `click`, `choose` and `settled` are what a test's script does; its value is what the test sees.
SCRIPT = """
<script type="text/plain" id="probe"></script>
<script>
const settled = () => new Promise(done => setTimeout(done, 300));
const click = async target => { document.querySelector(target).click(); await settled(); };
const choose = async (target, text) => {
  const select = document.querySelector(target);
  select.value = [...select.options].find(option => option.text === text).value;
  select.dispatchEvent(new Event("change"));
  await settled();
};
const leave = found => { document.getElementById("probe").textContent = JSON.stringify(found); };
(async () => { %s })().then(leave).catch(error => { console.error("probe: " + error); });
</script>
"""


class Visit(NamedTuple):
    """What came of opening a page."""

    found: Any
    console: list[str]
    requests: list[str]
    seconds: float  # of processor time that the page's own thread took; NaN where the system does not tell


def chromium() -> str:
    """The browser's path, or a skipped test."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs one of {', '.join(NAMES)} on PATH")
    return found


def visit(page: pathlib.Path, folder: pathlib.Path, script: str, *flags: str) -> Visit:
    """Opens a copy of ``page`` with ``script`` at its end."""
    text = page.read_text(encoding="utf-8")
    end = text.rindex("</body>")
    copy, log = folder / "visited.html", folder / "net.json"
    added = SCRIPT % script
    copy.write_text(_permitted(text[:end], added) + added + text[end:], encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [chromium(), *FLAGS, *flags, profile, f"--log-net-log={log}", "--dump-dom", copy.as_uri()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as browser:
        taken: dict[str, float] = {}
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(browser.pid, taken, over))
        watch.start()
        try:
            document, said_aloud = browser.communicate(timeout=300)
        finally:
            browser.kill()
            over.set()
            watch.join()
    left = re.search(r'id="probe">(.*?)</script>', document, re.DOTALL)
    found = json.loads(html.unescape(left[1])) if left and left[1] else None
    events = [event.get("params", {}) for event in json.loads(log.read_text(encoding="utf-8"))["events"]]
    # Chromium's own errands (updates, the time) have no origin; what a page asks for has one.
    requests = [
        said["url"]
        for said in events
        if said.get("initiator", "not an origin") != "not an origin" and not said.get("url", "").startswith("file:")
    ]
    console = [line for line in said_aloud.splitlines() if "CONSOLE" in line]
    return Visit(found, console, requests, max(taken.values(), default=math.nan))


def _permitted(text: str, added: str) -> str:
    """Adds the hash of the test's script to the content policy of a page, which permits the page's own scripts only."""
    inside = re.findall(r"<script>(.*?)</script>", added, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
    return text.replace("; script-src ", f"; script-src 'sha256-{digest}' ", 1)


def _watch(session: int, taken: dict[str, float], over: threading.Event) -> None:
    """Books the processor time of the main thread of every renderer of a session, as Linux tells it."""
    while not over.wait(0.03):
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended
                fields = (process / "task" / process.name / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and b"--type=renderer" in (process / "cmdline").read_bytes():
                    taken[process.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
