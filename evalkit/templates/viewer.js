"use strict";
(() => {
  const turns = [...document.querySelectorAll("[data-events]")];
  const input = document.getElementById("find"), count = document.getElementById("found");
  const keys = document.getElementById("keys"), single = document.getElementById("single-keys");
  let at = turns.findIndex(turn => "#" + turn.id === location.hash);
  let list = new URLSearchParams(location.hash.slice(1)).get("list");
  let hits = [];

  const go = place => {
    const turn = turns[place];
    if (!turn) return;
    at = place;
    if (hits.includes(turn)) turn.querySelectorAll("details").forEach(part => { part.open = true; });
    location.replace("#" + turn.id);
    turn.focus({preventScroll: true});
  };
  const next = (wanted, step) => {
    for (let place = at + step; place >= 0 && place < turns.length; place += step)
      if (wanted(turns[place])) return go(place);
  };
  const jump = (event, step) => next(turn => turn.dataset.events.split(" ").includes(event), step);

  const paint = query => {
    if (!window.Highlight || !CSS.highlights) return;
    const ranges = [];
    for (const turn of query ? hits.slice(0, 500) : []) {
      const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode, text = node.data.toLowerCase();
        for (let i = text.indexOf(query); i >= 0 && ranges.length < 5000; i = text.indexOf(query, i + query.length)) {
          if (i + query.length > node.length) break;
          const range = new Range();
          range.setStart(node, i);
          range.setEnd(node, i + query.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };
  const search = () => {
    const query = input.value.toLowerCase();
    hits = query ? turns.filter(turn => turn.textContent.toLowerCase().includes(query)) : [];
    turns.forEach(turn => turn.classList.toggle("is-found", hits.includes(turn)));
    count.textContent = query ? `${hits.length} of ${turns.length} turns` : "";
    paint(query);
  };

  const turnPage = direction => {
    const chosen = list && document.querySelector(`[data-list="${CSS.escape(list)}"] a[rel=${direction}]`);
    const link = chosen || document.querySelector(`[data-list] a[rel=${direction}]`);
    if (link) link.click();
  };

  const actions = {
    j: () => go(at + 1), k: () => go(Math.max(at - 1, 0)),
    g: () => go(0), G: () => go(turns.length - 1),
    n: () => turnPage("next"), p: () => turnPage("prev"),
    f: () => go(turns.findIndex(turn => turn.classList.contains("first-difference"))),
    "/": () => { input.focus(); input.select(); },
    "?": () => { keys.open = !keys.open; },
  };
  for (const event of ["command", "error", "achievement", "decision"]) {
    actions[event[0]] = () => jump(event, 1);
    actions[event[0].toUpperCase()] = () => jump(event, -1);
  }

  document.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      keys.open = false;
      if (event.target === input) { input.value = ""; search(); input.blur(); }
      return;
    }
    if (event.target === input) {
      if (event.key === "Enter") { event.preventDefault(); next(turn => hits.includes(turn), event.shiftKey ? -1 : 1); input.focus({preventScroll: true}); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !single.checked || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
  input.addEventListener("input", search);
  document.querySelectorAll("[data-jump]").forEach(button =>
    button.addEventListener("click", () => jump(button.dataset.jump, 1)));
  if (/(^#|&)at=decision$/.test(location.hash)) jump("decision", 1);
  window.addEventListener("hashchange", () => {
    const place = turns.findIndex(turn => "#" + turn.id === location.hash);
    if (place >= 0) at = place;
  });
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll(".turns details:not([open])")];
    folded.forEach(part => { part.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach(part => { part.open = false; }));
})();
