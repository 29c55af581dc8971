"""Headless Chromium, driven over its DevTools protocol with the standard library alone."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-port=0"
).split()


class Socket:
    """A WebSocket client, as much of it as DevTools needs."""

    def __init__(self, url):
        host, port, path = url.removeprefix("ws://").replace("/", ":", 1).split(":", 2)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(4096)
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def take(self, count):
        while len(self.rest) < count:
            part = self.socket.recv(1 << 16)
            assert part, "the browser closed the connection"
            self.rest += part
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | length) if length < 126 else struct.pack("!BBH", 0x81, 0xFE, length) if length < 65536 else struct.pack("!BBQ", 0x81, 0xFF, length)
        whole = int.from_bytes((mask * (length // 4 + 1))[:length], "big") ^ int.from_bytes(data, "big")
        self.socket.sendall(head + mask + whole.to_bytes(length, "big"))

    def receive(self):
        data = b""
        while True:
            first, second = self.take(2)
            length = second & 127
            length = struct.unpack("!H", self.take(2))[0] if length == 126 else struct.unpack("!Q", self.take(8))[0] if length == 127 else length
            data += self.take(length)
            if first & 0x80:
                return data.decode()


class Page:
    """A page of the browser."""

    def __init__(self, browser, url):
        self.socket, self.number, self.errors = Socket(url), 0, []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"].get("exception", {}).get("description") or str(message["params"]))
            elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error" and message["params"]["entry"]["source"] != "network":
                self.errors.append(message["params"]["entry"]["text"])
            elif message.get("method") == "Page.javascriptDialogOpening":
                self.number += 1
                self.socket.send(json.dumps({"id": self.number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}))
            if message.get("id") is not None and message["id"] <= self.number and ("result" in message or "error" in message):
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                if method != "Page.handleJavaScriptDialog" and message["result"] == {} and method == "Runtime.evaluate":
                    continue
                return message["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def js(self, text):
        """Value of an expression on the page."""
        result = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{text}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, text, patience=40):
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found = self.js(f"(() => {{ try {{ return {text} }} catch (e) {{ return false }} }})()")
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"not within {patience} s: {text}; errors: {self.errors}")

    def size(self, width, height, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path, whole=False):
        time.sleep(0.4)
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]))


class Browser:
    """Chromium with a folder of its own."""

    def __init__(self):
        program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
        assert program, "no Chromium is installed"
        self.folder = tempfile.mkdtemp(prefix="chromium")
        self.downloads = Path(self.folder) / "downloads"
        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = Path(self.folder) / "DevToolsActivePort"
        end = time.monotonic() + 60
        while not port.exists() or len(port.read_text().splitlines()) < 2:
            assert time.monotonic() < end and self.process.poll() is None, "Chromium does not start"
            time.sleep(0.1)
        self.port = int(port.read_text().splitlines()[0])

    def page(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        page = Page(self, json.load(urllib.request.urlopen(request))["webSocketDebuggerUrl"])
        page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        return page

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
