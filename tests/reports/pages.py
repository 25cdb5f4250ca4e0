"""What tests ask of a page, by looking at it in a browser."""

import time

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

# What would run a script, if the page held it
ACTIVE = """() => [...document.querySelectorAll('*')].filter(e =>
  ['SCRIPT', 'OBJECT', 'EMBED', 'BASE', 'FORM'].includes(e.tagName)
  || e.getAttributeNames().some(name => name.startsWith('on'))
  || (e.tagName === 'META' && e.httpEquiv.toLowerCase() === 'refresh')
  || (e.tagName === 'IFRAME' && (!e.hasAttribute('sandbox') || e.sandbox.contains('allow-scripts')))
  || (e.href || e.src || '').toString().trim().toLowerCase().startsWith('javascript:')
).map(e => e.outerHTML.slice(0, 200))"""


class Visit:
    """A page opened in a browser, with what it asked for and complained of."""

    def __init__(self, browser, path, *, width=1280, scheme="light"):
        self.address = path.as_uri()
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note)
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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.close()
