"""The page at / of greta-llm serve in headless Chromium, driven through its debugging pipe: a streamed answer, settings, stop, errors, a key, dark and
light, labels. Needs chromium (scripts/setup --llm).
"""

import json
import os
import re
import select
import shutil
import subprocess
import time

import pytest

import models
import texts
from conftest import ROOT
from models import ARCHITECTURES, NO_END
from test_llm import llm
from test_llm_serve import Server

pytestmark = pytest.mark.xdist_group("llm-page")  # one worker makes what these share
CHROMIUM = shutil.which("chromium")
PAGE = ROOT / "tools" / "greta-llm" / "server" / "chat.html"
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed; scripts/setup --llm")


class Browser:
    """A tab; messages of the DevTools protocol end with a zero byte."""

    def __init__(self, profile):
        down, self.write_end = os.pipe()
        self.read_end, up = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}"]

        def as_3_and_4():
            a, b = os.dup(down), os.dup(up)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = [CHROMIUM, *flags, "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=as_3_and_4, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        self.held, self.number, self.session, self.problems = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        deadline = time.monotonic() + 120
        while b"\0" not in self.held:
            assert select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0], "chromium says nothing"
            data = os.read(self.read_end, 1 << 16)
            assert data, "chromium ended"
            self.held += data
        message, self.held = self.held.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("method") == "Runtime.exceptionThrown" or answer.get("params", {}).get("entry", {}).get("source") in ("security", "javascript"):
                self.problems.append(answer)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression):
        deadline = time.monotonic() + 100
        while not (value := self.js(expression)):
            assert time.monotonic() < deadline, expression + "\n" + self.js("document.body.innerText")
            time.sleep(0.02)
        return value

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until(f"location.href.startsWith('{url}') && document.readyState === 'complete' && (document.querySelector('#model').textContent || document.querySelector('#problem').textContent)")

    def set(self, name, value):
        self.js(f"s = document.querySelector('[name={name}]'); s.value = {json.dumps(str(value))}; s.dispatchEvent(new Event('change'))")

    def ask(self, text):
        """As a keyboard does."""
        self.js("document.querySelector('#text').focus()")
        self.call("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")

    def answers(self):
        return self.js("[...document.querySelectorAll('article.assistant > p')].map(p => p.textContent)")

    def wait(self):
        self.until("document.querySelector('#log').getAttribute('aria-busy') === 'false'")

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("chromium"))
    yield one
    one.end()
    assert one.problems == []


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    """(package, model) with a chat template"""
    folder = tmp_path_factory.mktemp("page")
    a = ARCHITECTURES["llama2"]
    models.write_safetensors(folder / "m", a, models.random_weights(a), "f16")
    (folder / "m" / "config.json").write_text(json.dumps(models.config(a) | {"max_position_embeddings": 1024}))
    (folder / "m" / "tokenizer.json").write_text(json.dumps(texts.naive_tokenizer(30)))
    (folder / "m" / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"}))
    made = llm("compile", folder / "m", "--targets=gfx942", "-o", folder / "m.greta")
    assert made.returncode == 0, made.stderr
    return folder / "m.greta", folder / "m"


@pytest.fixture(scope="module")
def server(chat):
    one = Server(chat[0], [chat[1]])
    yield one
    one.end()


def test_page_is_whole():
    """Nothing from elsewhere; every field has a label."""
    page = PAGE.read_text()
    assert not re.search(r"https?:|//[a-z]|<link|<img|@import|url\(|src=", page.replace("// ", ""))
    for field in re.findall(r"<(?:input|textarea)[^>]*>", page):
        name = re.search(r'id="(\w+)"', field)
        assert re.search(r"<label[^>]*>[^<]+" + re.escape(field), page) or f'for="{name[1]}"' in page


def test_page_is_served(server):
    connection = server.request("/")
    assert connection == (200, PAGE.read_text())


@needs_chromium
def test_conversation(browser, server, chat):
    browser.open(f"http://127.0.0.1:{server.port}/")
    assert browser.js("document.querySelector('#model').textContent") == str(chat[1])
    browser.set("temperature", 0)
    browser.set("max_tokens", 9)
    browser.set("system", "be")
    body = dict(temperature=0, max_tokens=9, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1)
    messages = [{"role": "system", "content": "be"}]
    for i, text in enumerate(("hi", "and?")):
        browser.ask(text)
        browser.until(f"document.querySelectorAll('article').length === {2 * i + 2}")
        browser.wait()
        messages.append({"role": "user", "content": text})
        answer = json.loads(server.request("/v1/chat/completions", body | {"messages": messages})[1])
        want = answer["choices"][0]["message"]["content"]
        messages.append({"role": "assistant", "content": want})
        assert browser.answers()[i] == want.replace("\r", "\n")
        count = answer["usage"]["completion_tokens"]
        assert re.match(rf"{count} tokens in \S+ s, \S+ a second", browser.js("document.querySelector('#status').textContent"))
    assert browser.js("document.querySelector('#text').value + document.querySelector('#problem').textContent") == ""
    # Settings stay, a conversation does not.
    browser.open(f"http://127.0.0.1:{server.port}/?again")
    assert browser.js("document.querySelector('[name=max_tokens]').value") == "9" and browser.answers() == []


@needs_chromium
def test_thoughts(browser, server):
    """Above the answer, closed when that begins; the next message takes them along."""
    browser.open(f"http://127.0.0.1:{server.port}/?thoughts")
    browser.set("system", "")
    pieces = [{"reasoning_content": "I se"}, {"reasoning_content": "e"}, {"content": "Hal"}, {"content": "lo"}]
    events = "".join(f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in pieces) + "data: [DONE]\n\n"
    browser.js(f"asked = []; window.fetch = async (_, how) => (asked.push(JSON.parse(how.body).messages), new Response({json.dumps(events)})), 0")
    for text in ("hi", "and?"):
        browser.ask(text)
        browser.until(f"asked.length === {1 if text == 'hi' else 2}")
        browser.wait()
    assert browser.answers() == ["Hallo", "Hallo"]
    assert browser.js("[...document.querySelectorAll('article.assistant details')].map(d => [d.open, d.innerText.trim() && d.querySelector('p').textContent])") == [[False, "I see"]] * 2
    first = [{"role": "user", "content": "hi"}]
    assert browser.js("asked") == [first, [*first, {"role": "assistant", "content": "Hallo", "reasoning_content": "I see"}, {"role": "user", "content": "and?"}]]


@needs_chromium
def test_stop(browser, server):
    browser.open(f"http://127.0.0.1:{server.port}/?stop")
    browser.set("max_tokens", 900)
    # The page has no field for biases.
    browser.js(f"fetched = window.fetch, window.fetch = (url, how) => fetched(url, {{...how, body: JSON.stringify({{...JSON.parse(how.body), logit_bias: {json.dumps(NO_END)}}})}}), 0")
    before = server.metric("requests_cancelled_total")
    browser.ask("go on")
    browser.until("document.querySelector('article.assistant p')?.textContent")
    assert browser.js("[document.querySelector('#send').disabled, document.querySelector('#stop').disabled]") == [True, False]
    browser.js("document.querySelector('#stop').click()")
    browser.wait()
    assert browser.js("document.querySelector('#status').textContent") == "Stopped." and browser.answers()[0]
    deadline = time.monotonic() + 60
    while server.metric("requests_cancelled_total") == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.metric("requests_cancelled_total") == before + 1
    browser.js("document.querySelector('#new').click()")
    assert browser.answers() == []


@needs_chromium
def test_errors_are_shown(browser, server):
    browser.open(f"http://127.0.0.1:{server.port}/?errors")
    browser.set("top_p", 7)
    browser.ask("hi")
    browser.until("document.querySelector('#problem').textContent")
    assert browser.js("document.querySelector('#problem').textContent") == "'top_p' has to be a number from 0 to 1"
    # A message that was not answered can be sent again.
    assert browser.js("document.querySelector('#text').value") == "hi" and browser.answers() == []
    browser.set("top_p", 0.9)
    browser.js("document.querySelector('#text').value = ''")


@needs_chromium
def test_without_a_template_and_with_a_key(browser, chat, tmp_path):
    """A server with a key: the page asks for it. Its model has no template: the page says so, and continues texts."""
    package, model = chat
    plain = shutil.copytree(model, tmp_path / "m")
    (plain / "tokenizer_config.json").unlink()
    (tmp_path / "key").write_text("secret\n")
    server = Server(package, [plain], "-c", "512", f"--api-key-file={tmp_path / 'key'}")
    browser.open(f"http://127.0.0.1:{server.port}/")
    assert browser.js("document.querySelector('#problem').textContent") == "the API key is missing or wrong"
    browser.set("key", "secret")
    browser.until("document.querySelector('#model').textContent")
    assert "has no chat template" in browser.js("document.querySelector('#note').textContent") and browser.js("document.querySelector('#problem').textContent") == ""
    browser.set("temperature", 0)
    browser.set("max_tokens", 4)
    browser.ask("Once upon")
    browser.until("document.querySelector('#status').textContent.startsWith('4 tokens')")
    assert browser.answers()[0]
    server.end()


@needs_chromium
def test_dark_and_light(browser, server):
    """Text has a contrast of at least 7 with what is behind it, either way."""
    browser.open(f"http://127.0.0.1:{server.port}/?colours")
    backs = []
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        style = browser.js("s = getComputedStyle(document.body); [s.color, s.backgroundColor]")

        def luminance(colour):
            parts = [int(c) / 255 for c in re.findall(r"\d+", colour)]
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
            return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))

        text, back = map(luminance, style)
        assert (max(text, back) + 0.05) / (min(text, back) + 0.05) > 7
        backs.append(back)
    assert backs[0] > 0.9 and backs[1] < 0.1
