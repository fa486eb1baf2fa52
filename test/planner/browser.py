"""A real Chromium, without a screen, for tests of the page."""

import shutil
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S = 60
KEYS_S = 10


class Browser:
    """Use as a context: `with Browser(width) as browser`."""

    def __init__(self, width=1400, height=1000, dark=False):
        self.folder = tempfile.mkdtemp(prefix="shoal-browser-")
        options = Options()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-first-run", "--disable-background-networking", "--disable-sync",
                     "--disable-component-update", "--disable-extensions",
                     f"--user-data-dir={self.folder}", f"--window-size={width},{height}"):
            options.add_argument(word)
        if dark:
            options.add_argument("--force-dark-mode")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Only the driver that Debian packages, so that none is looked for elsewhere.
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")),
                                       options=options)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.driver.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open(self, address):
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait("return document.body.dataset.ready === 'yes'")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, script):
        return WebDriverWait(self.driver, WAIT_S, 0.05).until(
            lambda driver: driver.execute_script(script))

    def type(self, field, text):
        """Replaces a field's text as keys do. A browser that has much to do may lose keys."""
        end = time.monotonic() + WAIT_S
        while not self.typed(field, text):
            if time.monotonic() > end:
                raise TimeoutError(f"{field} did not take the keys of {text!r}")

    def typed(self, field, text):
        self.run("""
            const control = document.getElementById(arguments[0]);
            for (let at = control; at; at = at.parentElement) {
                if (at.tagName === 'DETAILS') { at.open = true; }
            }
            control.focus(); control.select && control.select();""", field)
        self.driver.switch_to.active_element.send_keys(text if text else "\ue003")
        try:
            WebDriverWait(self.driver, KEYS_S, 0.05).until(lambda driver: driver.execute_script(
                "const control = document.getElementById(arguments[0]);"
                "return control.tagName === 'SELECT' || control.value === arguments[1];",
                field, text))
        except TimeoutException:
            return False
        return True

    def errors(self):
        """What the console complained of since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, path):
        self.driver.save_screenshot(path)
