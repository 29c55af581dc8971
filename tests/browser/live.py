#!/usr/bin/env python3
"""The live page in a real browser: pictures appear, rows grow, moments can be gone back to, commands and the saved page work.

    live.py ZELLIGE WORK [SHOTS [TEST..]]    the binary, a folder for results, one for a tour of screenshots, names of tests
"""
import math
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from devtools import Browser

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Colours of a canvas, as many as differ, and a sum that changes with its content.
COLOURS = """(card) => { const c = card.canvas, d = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
  let sum = 0; for (let i = 0; i < d.length; i++) sum = (sum * 31 + d[i]) | 0; return [new Set(d).size, sum]; }"""
CARDS = "state.pictures.filter((p) => p && p.kind !== 'outline')"


class Run:
    """A process of the program that serves a page."""

    started = []

    def __init__(self, *arguments):
        self.process = subprocess.Popen([str(a) for a in arguments], stderr=subprocess.PIPE, text=True)
        Run.started.append(self.process)
        self.told = []
        for line in self.process.stderr:
            self.told.append(line)
            if found := re.search(r"http://\S+", line):
                self.url = found[0]
                break
        else:
            raise AssertionError("no address was told:\n" + "".join(self.told))
        threading.Thread(target=lambda: self.told.extend(self.process.stderr), daemon=True).start()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def look(page):
    """All pictures come into view once, and have drawn something."""
    page.until(f"{CARDS}.length > 0")
    for k in range(page.js(f"{CARDS}.length")):
        card = f"{CARDS}[{k}]"
        page.js(f"{card}.box.scrollIntoView()")
        page.until(f"{card}.frame && {card}.drawn")
        count, _ = page.js(f"({COLOURS})({card})")
        kind, title = page.js(f"[{card}.kind, {card}.title.textContent]")
        assert count > 12, f"`{title}` ({kind}) has {count} colours: nothing is drawn"
    page.js("scrollTo(0, 0)")


def fits(page, where):
    """Nothing is wider than the screen."""
    wide, screen = page.js("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen, f"{where}: {wide} pixels on a screen of {screen}"


def shot(page, shots, name, width=1280, height=900, dark=False, phone=False):
    page.size(width, height, dark, phone)
    time.sleep(0.5)
    fits(page, name)
    if shots:
        page.screenshot(shots / f"{name}.png")


def plasma(browser, zellige, work, shots):
    """Rows grow, moments, commands, the page as a file."""
    out = work / "plasma"
    shutil.rmtree(out, ignore_errors=True)
    run = Run(zellige, "run", EXAMPLES / "pic/two_stream.toml", "-o", out, "--live", "--steer", "--device", "cpu", "--set", "pic.t_end=1e5")
    page = browser.page()
    page.size(1280, 900)
    page.open(run.url)
    look(page)
    # Of many rows every second one is kept: steps grow, their number may not.
    first = page.until("rows.steps.length > 3 && rows.steps.at(-1)")
    page.until(f"rows.steps.at(-1) > {first}")
    page.until("state.moments.length > 5")
    # The rate stands beside that of theory, which the plan knows.
    page.until("rows.columns.some(([name]) => name === 'growth_rate')")
    assert page.js("theoryOf('growth_rate').map((line) => [line.name, line.values.length === rows.steps.length])") == [["theory 0.3509", True]]
    # Pictures follow the run.
    step = page.js(f"{CARDS}[0].frame.head.step")
    page.until(f"{CARDS}[0].frame.head.step > {step}")
    assert page.js("!document.getElementById('figures').textContent.includes('NaN')")
    # Back to the first moment, by the keyboard: the picture is another, and stays while the run goes on.
    page.js("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}))")
    page.until(f"state.shown === state.moments[0][0] && {CARDS}[0].frame.head.step <= state.shown")
    time.sleep(0.5)
    _, then = page.js(f"({COLOURS})({CARDS}[0])")
    time.sleep(0.6)
    assert page.js(f"({COLOURS})({CARDS}[0])")[1] == then, "the picture of a moment changes"
    page.js("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'End'}))")
    page.until(f"state.shown === null && {CARDS}[0].frame.head.step > state.moments[0][0]")
    time.sleep(0.5)
    assert page.js(f"({COLOURS})({CARDS}[0])")[1] != then, "the newest picture is the first one"
    # The pointer reads values.
    page.js(f"{CARDS}[0].point({CARDS}[0].drawn.room.left + 40, {CARDS}[0].drawn.room.top + 40)")
    assert re.search(r"x = .*: .* = ", page.js(f"{CARDS}[0].read.textContent"))
    # Another map and a range change the picture of a moment that is held, and their defaults bring it back.
    image = f"{CARDS}.find((p) => p.kind === 'image')"
    page.js(f"go(0); {image}.box.scrollIntoView()")
    page.until(f"{image}.frame.head.step <= state.shown && {image}.seen")
    time.sleep(0.7)
    before = page.js(f"({COLOURS})({image})")[1]
    for changed, default in (("map = 'magma'", "map = ''"), ("log = false", "log = true"), ("high = 1e6", "high = null")):
        page.js(f"{image}.look.{changed}; {image}.draw()")
        assert page.js(f"({COLOURS})({image})")[1] != before, changed
        page.js(f"{image}.look.{default}; {image}.draw()")
        assert page.js(f"({COLOURS})({image})")[1] == before, default
    page.js("go(Infinity); scrollTo(0, 0)")
    shot(page, shots, "plasma")
    shot(page, shots, "plasma-dark", dark=True)
    shot(page, shots, "plasma-phone", 390, 844, phone=True)
    page.size(1280, 900)
    # A checkpoint on request, while the run goes on.
    checkpoint = out / "checkpoint/latest.zck"
    assert not checkpoint.exists()
    page.js("document.getElementById('command-save').click()")
    page.until("state.notices.some((n) => n.includes('checkpoint is being saved'))")
    end = time.monotonic() + 20
    while not checkpoint.exists():
        assert time.monotonic() < end, "no checkpoint"
        time.sleep(0.1)
    assert run.process.poll() is None
    # The page as one file: the same rows and pictures without the program.
    page.js("document.getElementById('keep').click()")
    end = time.monotonic() + 20
    while not (saved := [p for p in browser.downloads.glob("*.html")]):
        assert time.monotonic() < end, "no page was downloaded"
        time.sleep(0.2)
    # Save and stop.
    page.js("window.confirm = () => true")
    page.js("document.getElementById('command-stop').click()")
    assert run.process.wait(timeout=60) == 75, "".join(run.told)
    page.until("document.getElementById('status').textContent === 'stopped'")
    # It shows what it stopped at, and nobody answers any more.
    page.until("state.moments.at(-1)?.[0] === state.progress.step")
    assert page.js("[...document.querySelectorAll('#commands button')].every((b) => b.disabled)")
    # Moments that were not fetched are gone with it.
    page.until("state.lost")
    assert page.js("state.pictures.every((p) => !p || p.kind === 'outline' || p.frames.every(([id]) => cache.has(id)))")
    assert "the live page" in "".join(run.told)
    assert not page.errors, page.errors
    other = browser.page()
    other.size(1280, 900)
    other.open(saved[0].as_uri())
    look(other)
    assert other.js("rows.steps.at(-1)") > first and other.js("document.getElementById('status').textContent") == "saved"
    assert other.js("document.getElementById('keep').hidden && !document.getElementById('commands').children.length")
    assert not other.errors, other.errors


def others(browser, zellige, work, shots):
    """The other solvers."""
    inputs = {
        "poisson": ["poisson/dipole.toml", "poisson.grid.nodes=[1025, 1025]", "poisson.method=\"sor\"", "poisson.tolerance=1e-14"],
        "gas": ["dsmc/cylinder.toml", "dsmc.sampling.start=20", "dsmc.sampling.window=20", "dsmc.sampling.batches=4"],
        "ptycho": ["ptycho/simulated.toml", "ptycho.engine.0.iterations=100000"],
    }
    for name, (example, *overrides) in inputs.items():
        run = Run(zellige, "run", EXAMPLES / example, "-o", work / name, "--live", "--steer", "--device", "cpu", *(f"--set={o}" for o in overrides))
        page = browser.page()
        page.size(1280, 900)
        page.open(run.url)
        look(page)
        page.until("rows.steps.length > 1")
        if name == "poisson":
            assert page.js("theoryOf('relative_residual').map((line) => line.name)") == ["goal 1\u00b710\u207b\u00b9\u2074"]
        shot(page, shots, name)
        shot(page, shots, f"{name}-dark", dark=True)
        shot(page, shots, f"{name}-phone", 390, 844, phone=True)
        if name == "ptycho":
            page.js("window.confirm = () => true")
            page.js("document.getElementById('command-next').click()")
            page.until("state.notices.some((n) => n.includes('was the last of its section'))")
        assert not page.errors, page.errors
        run.stop()


def finished(browser, zellige, work, shots):
    """A folder of a run that has ended."""
    out = work / "finished"
    subprocess.run([zellige, "run", EXAMPLES / "pic/two_stream.toml", "-o", out, "--device", "cpu"], check=True, stderr=subprocess.DEVNULL)
    run = Run(zellige, "view", out, "--live")
    page = browser.page()
    page.size(1280, 900)
    page.open(run.url)
    look(page)
    page.until("document.getElementById('status').textContent === 'finished' && rows.steps.length > 1 && state.stages.length > 1")
    assert page.js("theoryOf('growth_rate').length") == 1
    shot(page, shots, "finished")
    assert not page.errors, page.errors
    assert run.stop() == 0


def queue(browser, zellige, work, shots):
    """The list of a queue, with the page of a run that has ended, from its folder, and of one under way."""
    out = work / "queue"
    shutil.rmtree(out, ignore_errors=True)
    few = ["--set", "pic.t_end=30,1e5,1e4", "--device", "cpu", "--threads", "1"]
    run = Run(zellige, "run", EXAMPLES / "pic/two_stream.toml", "-o", out, "--live", *few)
    page = browser.page()
    page.size(1280, 900)
    page.open(run.url)
    states = "[...document.querySelectorAll('#runs .pill')].map((p) => p.textContent)"
    page.until(f"{states}.join() === 'finished,running,waiting' && document.querySelectorAll('#runs a').length === 2")
    assert page.js("document.getElementById('counts').textContent") == "1 finished, 1 running, 1 waiting"
    shot(page, shots, "queue", height=420)
    shot(page, None, "queue on a phone", 390, 800, phone=True)
    links = page.js("[...document.querySelectorAll('#runs a')].map((a) => a.href)")
    assert not page.errors, page.errors
    for number, link in enumerate(links):
        assert link == f"{run.url}{number}/"
        one = browser.page()
        one.size(1280, 900)
        one.open(link)
        look(one)
        assert one.js("document.getElementById('status').textContent") == ("finished" if number == 0 else "running")
        assert not one.errors, one.errors
    run.stop()


def anything(browser, zellige, work, shots):
    """A folder with no run in it: a volume with all its planes, an array of four axes, complex numbers, and what cannot be shown."""
    folder = work / "anything"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def array(name, kind, shape, values):
        head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
        head += " " * ((53 - len(head)) % 64) + "\n"
        (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)

    wave = [math.sin(0.3 * k) * k for k in range(2 * 6 * 10 * 14)]
    array("volume_000010.npy", "<f4", (12, 10, 14), struct.pack("<1680f", *wave))
    array("volume_000020.npy", "<f4", (12, 10, 14), struct.pack("<1680f", *(2 * v for v in wave)))
    array("four.npy", "<f4", (2, 6, 10, 14), struct.pack("<1680f", *wave))
    array("waves.npy", "<c8", (2, 20, 21), struct.pack("<1680f", *wave))
    (folder / "cut.npy").write_bytes(b"\x93NUM")
    run = Run(zellige, "view", folder, "--live")
    page = browser.page()
    page.size(1280, 900)
    page.open(run.url)
    look(page)
    names = page.js(f"{CARDS}.map((p) => [p.file, p.frames.length])")
    planes = [f"{name}_{plane}" for name in ("four", "volume") for plane in ("xy", "xz", "yz")]
    assert sorted(names) == sorted([[p, 2 if p.startswith("volume") else 1] for p in planes] + [["waves", 1]]), names
    assert page.js("state.notices.some((n) => n.includes('cut.npy') && n.includes('ends within the magic bytes'))")
    assert page.js("document.getElementById('status').textContent") == "files"
    # Those without a step in their names are of the last moment.
    assert page.js(f"{CARDS}.every((p) => p.frames.at(-1)[1] === 20)")
    shot(page, shots, "anything")
    assert not page.errors, page.errors
    assert run.stop() == 0


def main():
    zellige, work = (Path(p).resolve() for p in sys.argv[1:3])
    shots = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    try:
        wanted = sys.argv[4:]
        for test in (t for t in (plasma, others, finished, queue, anything) if not wanted or t.__name__ in wanted):
            began = time.monotonic()
            test(browser, zellige, work, shots)
            print(f"{test.__name__}: passed in {time.monotonic() - began:.0f} s", flush=True)
    finally:
        for process in Run.started:
            process.kill()
        browser.close()


if __name__ == "__main__":
    main()
