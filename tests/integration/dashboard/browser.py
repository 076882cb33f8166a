"""A Chromium without a window, driven through its debugging pipe: messages of JSON, each ended by a zero byte."""
import base64
import json
import os
import select
import subprocess
import time

PROGRAM = "/usr/bin/chromium"
PATIENCE = 30  # seconds for anything to happen; it ends what hangs


class Browser:
    def __init__(self, folder):
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()

        def pipes_as_three_and_four():
            os.dup2(read_commands, 13)
            os.dup2(write_answers, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--window-size=1280,1600", f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=pipes_as_three_and_four, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_answers)
        self.text, self.number, self.session, self.complaints = b"", 0, None, []
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in pages if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def next_message(self):
        while b"\0" not in self.text:
            if not select.select([self.answers], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser says nothing")
            got = os.read(self.answers, 1 << 16)
            if not got:
                raise RuntimeError("the browser has ended")
            self.text += got
        one, self.text = self.text.split(b"\0", 1)
        message = json.loads(one)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("warning", "error"):
            self.complaints.append(json.dumps(parameters["entry"]))
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(parameters["args"]))
        return message

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression[:200]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, patience=PATIENCE):
        end = time.monotonic() + patience
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}; on the page: {self.evaluate('document.body.innerText')}")
            time.sleep(0.05)

    def open(self, address):
        self.call("Page.navigate", url="about:blank")  # else a change of the part after # loads nothing
        self.wait_for("location.href === 'about:blank'")
        self.call("Page.navigate", url=address)
        self.wait_for("document.body && document.body.dataset.ready === 'yes'")

    def look_like(self, width=1280, height=1600, dark=False):
        """From the next page on, as on a screen of this size, in this colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def press(self, key):
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32}[key]
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=" " if key == "Space" else key, code=key, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=" " if key == "Space" else key, code=key, windowsVirtualKeyCode=code)

    def picture(self, file):
        taken = self.call("Page.captureScreenshot", format="png")
        with open(file, "wb") as out:
            out.write(base64.b64decode(taken["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
