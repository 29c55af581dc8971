"""The live page of runs that Python drives."""

import gc
import json
import os
import socket
import struct
import threading
import time
import unittest
import urllib.error
import urllib.request
import warnings

import numpy as np
import zellige
from test_run import HERE, Folder, plasma


def get(url, path=""):
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return answer.read()


def command(url, name):
    """Status of a command of the page."""
    request = urllib.request.Request(url + name, method="POST", headers={"X-Zellige-Token": url.rstrip("/").rsplit("/", 1)[1]})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def frame(body):
    """Description and numbers of the first frame of an answer."""
    (length,) = struct.unpack_from("<I", body)
    head = json.loads(body[4 : 4 + length])
    return head, np.frombuffer(body, "<f4", head["bytes"] // 4, 4 + length)


class Client(threading.Thread):
    """Somebody who watches: keeps all news."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.news = []
        self.stream = urllib.request.urlopen(url + "events", timeout=60)
        self.start()

    def run(self):
        for line in self.stream:
            if line.startswith(b"data: "):
                self.news.append(json.loads(line[6:]))

    def told(self, key):
        return [news[key] for news in list(self.news) if news.get(key)]

    def until(self, key):
        end = time.monotonic() + 30
        while not self.told(key):
            if time.monotonic() > end:
                raise AssertionError(f"no {key} in 30 s: {self.news!r:.500}")
            time.sleep(0.02)
        return self.told(key)


class Live(Folder):
    def run_of(self, steps=10**9):
        return zellige.Run(plasma(steps), **HERE, output=self.folder / "out")

    def test_the_page_tells_that_the_run_rests_between_two_calls(self):
        run = self.run_of()
        client = Client(run.live())
        client.until("rests")
        end = time.monotonic() + 30
        while not any(news.get("rests") is False for news in list(client.news)):
            run.step(20)
            self.assertLess(time.monotonic(), end, "it is never at work")
        while not client.news[-1]["rests"]:
            time.sleep(0.02)
            self.assertLess(time.monotonic(), end, "it does not rest")
        # At the step that it stands at.
        self.assertEqual(client.told("progress")[-1]["step"], run.clock.step)

    def test_who_watches_sees_rows_and_pictures_and_changes_no_bit(self):
        alone, watched = self.run_of(), self.run_of()
        watched.step(5)
        url = watched.live()
        self.assertIn(b'id="pictures"', get(url))
        # As it stands, and rows of steps before the page.
        told = json.loads(get(url, "all"))
        self.assertEqual((told["run"]["solver"], told["run"]["commands"], told["frames"][0][2]), ("pic", [], 5))
        self.assertEqual([row[0] for row in told["rows"]["rows"]], [1, 2, 3, 4, 5])
        client = Client(url)
        steps = 5
        while len(client.told("frames")) < 3 or steps < 500:
            steps += watched.step(100)
            self.assertLess(steps, 10**6)
        alone.step(steps)
        self.assertEqual(list(alone.fields), list(watched.fields))
        for name in alone.fields:
            self.assertTrue(np.array_equal(alone.fields[name], watched.fields[name]), name)
        names = [head["name"] for head in client.told("pictures")[-1]]
        head, values = frame(get(url, f"frames?of={names.index('E_x')}:0"))
        self.assertEqual((head["name"], values.size), ("E_x", 64 * 8))
        # A field that swings between 0 and its amplitude, and is no wave at rest.
        self.assertTrue(0 < np.abs(values).max() < 2e-3 and len(set(values.tolist())) > 32)
        self.assertGreaterEqual(head["step"], 100)
        self.assertIn("electric", json.dumps(client.told("rows")))

    def test_the_page_saves_as_save_does(self):
        run = self.run_of()
        url = run.live(steer=True)
        self.assertEqual(command(url, "save"), 202)
        run.step(20)
        # Before the first of the steps.
        self.assertIn("a checkpoint is being saved", get(url, "all").decode())
        resumed = zellige.Run(plasma(10**9), **HERE, resume=self.folder / "out")
        self.assertEqual(resumed.clock.step, 0)
        resumed.step(20)
        self.assertTrue(np.array_equal(run.fields["E_x"], resumed.fields["E_x"]))

    def test_a_folder_that_cannot_be_had_is_told_on_the_page_alone(self):
        (self.folder / "out").write_text("a file")
        run = self.run_of()
        url = run.live(steer=True)
        self.assertEqual(command(url, "save"), 202)
        self.assertEqual(run.step(2), 2)
        self.assertIn("no checkpoint could be saved", get(url, "all").decode())

    def test_stop_ends_the_call_between_two_steps_and_the_run_can_go_on(self):
        run = self.run_of()
        url = run.live(steer=True)
        client = Client(url)

        def press():
            time.sleep(0.3)
            command(url, "stop")

        threading.Thread(target=press).start()
        with self.assertRaisesRegex(zellige.Interrupted, "(?s)the live page.*--resume"):
            run.step(10**9)
        step = run.clock.step
        self.assertGreater(step, 0)
        # Who watches sees what it stands at.
        self.assertEqual([json.loads(get(url, "all"))["frames"][-1][2], client.until("frames")[0][0][2]], [step, 0])
        self.assertEqual(zellige.Run(plasma(10**9), **HERE, resume=self.folder / "out").clock.step, step)
        self.assertEqual(run.step(3), 3)
        # Pressed while Python has the run, it ends the next call, once.
        self.assertEqual(command(url, "stop"), 202)
        with self.assertRaises(zellige.Interrupted):
            for _ in run.frames(every=10):
                self.fail("no step was to be made")
        self.assertEqual((run.step(), run.clock.step), (1, step + 4))
        # It goes on: no end was told.
        told = json.loads(get(url, "all"))
        self.assertIsNone(told["end"])
        self.assertIn("the live page", json.dumps(told["notices"]))

    def test_a_second_press_while_the_state_is_saved_stops_no_further_call(self):
        first = self.run_of()
        first.step(5)
        first.save()
        rows = self.folder / "out" / "rows.csv"
        text = rows.read_text()
        run = zellige.Run(plasma(10**9), **HERE, output=self.folder / "on", resume=self.folder / "out")
        url = run.live(steer=True)
        # Whoever saves reads the rows of before, and waits at this end of a pipe for them.
        rows.unlink()
        os.mkfifo(rows)

        def press():
            command(url, "stop")
            with rows.open("w") as pipe:
                command(url, "stop")
                pipe.write(text)
            rows.unlink()
            rows.write_text(text)

        pressing = threading.Thread(target=press, daemon=True)
        pressing.start()
        with self.assertRaises(zellige.Interrupted):
            run.step(10**9)
        pressing.join()
        self.assertEqual(run.step(3), 3)

    def test_stop_saves_a_run_to_its_end(self):
        run = self.run_of()
        url = run.live(steer=True)
        client = Client(url)

        def press():
            client.until("frames")
            command(url, "stop")

        threading.Thread(target=press).start()
        with self.assertRaisesRegex(zellige.Interrupted, "the live page"):
            run.to_end()
        self.assertTrue((self.folder / "out" / "checkpoint" / "latest.zck").exists())
        self.assertIn("the live page", json.dumps(client.until("notices")))

    def test_the_end_is_told(self):
        run = self.run_of(300)
        url = run.live()
        client = Client(url)
        run.to_end()
        self.assertEqual(client.until("end")[-1][0], "finished")
        self.assertIn("check: ", get(url, "all").decode())
        by_hand = self.run_of(30)
        url = by_hand.live()
        # So many as there are: no call finds out that there are no more.
        self.assertEqual(by_hand.step(30), 30)
        self.assertEqual(json.loads(get(url, "all"))["end"][0], "finished")
        with self.assertRaisesRegex(zellige.InputError, "zellige view"):
            run.live()

    def test_a_call_that_fails_is_told(self):
        (self.folder / "out").write_text("a file")
        run = self.run_of()
        url = run.live(steer=True)
        self.assertEqual(command(url, "stop"), 202)
        with self.assertRaises(zellige.FileError) as raised:
            run.step(100)
        told = json.loads(get(url, "all"))
        self.assertIn(str(raised.exception).splitlines()[0], json.dumps(told, ensure_ascii=False))
        # The run can go on, and so does its page.
        self.assertIsNone(told.get("end"))
        self.assertEqual(run.step(2), 2)

    def test_an_end_that_was_told_stays(self):
        run = self.run_of(30)
        url = run.live()
        run.to_end()
        told = json.loads(get(url, "all"))["end"]
        with self.assertRaisesRegex(zellige.InputError, "the run has ended"):
            run.step()
        self.assertEqual(json.loads(get(url, "all"))["end"], told)

    def test_only_a_page_that_may_steer_does(self):
        run = self.run_of()
        url = run.live()
        self.assertEqual([command(url, name) for name in ("save", "stop", "next")], [403] * 3)
        self.assertEqual(run.step(2), 2)

    def test_it_ends_with_the_run_and_a_new_one_takes_its_place(self):
        run = self.run_of()
        first = run.live()
        port = int(first.split(":")[2].split("/")[0])
        second = run.live(port=port)
        self.assertIn(f":{port}/", second)
        with self.assertRaises(urllib.error.HTTPError):
            get(first)
        self.assertIn("zellige", get(second).decode())
        del run
        gc.collect()
        with self.assertRaises(urllib.error.URLError):
            get(second)

    def test_a_page_that_cannot_be_had_ends_not_the_one_at_work(self):
        run = self.run_of()
        page = run.live()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with self.assertRaisesRegex(zellige.InputError, "cannot listen"):
                run.live(port=taken.getsockname()[1])
        run.step(2)
        self.assertEqual([row[0] for row in json.loads(get(page, "all"))["rows"]["rows"]], [1, 2])

    def test_addresses(self):
        run = self.run_of()
        page = run.live()
        self.assertIn(f'<a href="{page}"', page._repr_html_())
        self.assertIn("ssh -L ", page.tunnel)
        with self.assertRaisesRegex(zellige.InputError, "address.*`nowhere` is no address"):
            run.live(address="nowhere")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with self.assertRaisesRegex(zellige.InputError, f"(?s)cannot listen at 127.0.0.1:{port}.*name another port"):
                run.live(port=port)
        with self.assertWarnsRegex(UserWarning, "open to the network"):
            page = run.live(address="0.0.0.0")
        self.assertIsNone(page.tunnel)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run.live(address="127.0.0.1")


if __name__ == "__main__":
    unittest.main()
