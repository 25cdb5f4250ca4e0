"""What tests ask of a page, by looking at it in a browser."""

import time

from axe_playwright_python.sync_playwright import Axe

# Texts that would act if they became markup
HOSTILE = [
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    '"><svg onload=window.ran=1>',
    "</pre></details></td></style></title><script>window.ran = 1</script>",
    "[link](javascript:window.ran=1)",
    "{{ 7 * 7 }}{% raw %}",
    "<iframe srcdoc='<script>parent.ran = 1</script>'></iframe>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "\x1b[31m<b>red</b>\x1b]8;;https://example.org\x07",
    "\u202egnp.exe\u2066",
]

# Elements that stand out of the page to the right, but for those within a box that scrolls or hides them
RUNS_OFF = """() => {
  const width = document.documentElement.clientWidth;
  const boxed = element => {
    for (let box = element.parentElement; box; box = box.parentElement)
      if (![document.documentElement, document.body].includes(box)
          && getComputedStyle(box).overflowX !== 'visible'
          && box.getBoundingClientRect().right <= width + 1) return true;
    return false;
  };
  return [...document.body.querySelectorAll('*')]
    .filter(e => e.getBoundingClientRect().right > width + 1 && !boxed(e))
    .map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 40));
}"""

# Tables that are wider than their boxes
CUT = """[...document.querySelectorAll('.evalkit-table')]
  .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.getAttribute('aria-label'))"""

# What would run a script, if the page held it
ACTIVE = """() => [...document.querySelectorAll('*')].filter(e =>
  ['SCRIPT', 'OBJECT', 'EMBED', 'BASE', 'FORM'].includes(e.tagName)
  || e.getAttributeNames().some(name => name.startsWith('on'))
  || (e.tagName === 'META' && e.httpEquiv.toLowerCase() === 'refresh')
  || (e.tagName === 'IFRAME' && (!e.hasAttribute('sandbox') || e.sandbox.contains('allow-scripts')))
  || (e.href || e.src || '').toString().trim().toLowerCase().startsWith('javascript:')
).map(e => e.outerHTML.slice(0, 200))"""


class Visit:
    """A page opened in a browser, with what it asked for and complained of; one tab shows all, one after the other."""

    def __init__(self, browser, path, *, width=1280, scheme="light"):
        self.address = path.as_uri()
        if not browser.contexts:
            browser.new_page()  # which takes longer than all that a visit does
        self.page = browser.contexts[0].pages[0]
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="null", color_scheme=scheme)
        self.complaints, self.requests = [], []
        self.noted = {
            "console": lambda message: self.complaints.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "request": self._note,
        }
        for event, note in self.noted.items():
            self.page.on(event, note)
        self.page.goto(self.address)

    def _note(self, request):
        if not request.url.startswith("data:") and request.url != self.address:
            self.requests.append(request.url)

    def until(self, expression):
        """Wait for a state; what Playwright has for it is evaluated in the page, whose policy forbids that."""
        deadline = time.monotonic() + 60
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, expression
            time.sleep(0.05)

    def unfold(self):
        """Open all that is folded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")

    def assert_fits(self):
        """Assert that the page, unfolded, fits a screen and a phone, asks for nothing and complains of nothing."""
        self.unfold()
        for width in (1280, 390):
            self.page.set_viewport_size({"width": width, "height": 900})
            self.until(f"{CUT}.length === 0")
            assert not self.page.evaluate(RUNS_OFF), (self.address, width, self.page.evaluate(RUNS_OFF))
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, (self.address, width)
        assert not self.complaints + self.requests, (self.address, self.complaints, self.requests)

    def assert_accessible(self, scheme, **options):
        """Assert that axe finds no fault."""
        self.page.emulate_media(color_scheme=scheme)
        found = Axe().run(self.page, options={"resultTypes": ["violations"], **options}).response["violations"]
        faults = [(fault["id"], [node["html"][:200] for node in fault["nodes"]][:3]) for fault in found]
        assert not faults, (self.address, scheme, faults)

    def assert_inactive(self):
        """Assert that no text from logs has acted, and that the page's own script is all that can act."""
        assert self.page.evaluate("window.ran") is None
        assert self.page.url.partition("#")[0] == self.address
        (own,) = self.page.evaluate(ACTIVE)
        assert own.startswith("<script"), (self.address, own)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for event, note in self.noted.items():
            self.page.remove_listener(event, note)
        self.page.goto("about:blank")
