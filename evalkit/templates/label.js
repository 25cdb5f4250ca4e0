"use strict";
(() => {
  const root = document.getElementById("labelling"), progress = document.getElementById("progress");
  const who = document.getElementById("who"), note = document.getElementById("note");
  const units = [...root.querySelectorAll("section")];
  const store = "evalkit-labels-" + root.dataset.key;
  let labels = {}, at = 0, unsaved = false;
  try {
    const kept = JSON.parse(localStorage.getItem(store)) || {};
    labels = kept.labels || {};
    who.value = kept.who || who.value;
  } catch (error) { /* a browser that keeps nothing: labels last as long as the page is open */ }

  const keep = () => {
    try {
      localStorage.setItem(store, JSON.stringify({labels, who: who.value}));
    } catch (error) { /* as above */ }
  };
  const show = () => {
    units.forEach((unit, place) => { unit.hidden = place !== at; });
    const own = labels[at], done = Object.keys(labels).length;
    for (const button of root.querySelectorAll("[data-label]"))
      button.setAttribute("aria-pressed", String(Boolean(own) && own.label === button.dataset.label));
    note.value = own ? own.note : "";
    progress.textContent = `${done} of ${units.length} labelled`;
    scrollTo(0, 0);
  };
  const step = by => {
    at = Math.min(Math.max(at + by, 0), units.length - 1);
    show();
  };
  const give = label => {
    const when = new Date().toISOString().slice(0, 19) + "Z";
    labels[at] = {label, note: note.value, when, who: who.value};
    unsaved = true;
    keep();
    const open = units.findIndex((unit, place) => place > at && !labels[place]);
    step(open < 0 ? 0 : open - at);
    note.blur();
  };
  const cell = value => {
    let text = String(value).replace(/[\r\n]+/g, " ");
    if (/^[=+\-@\t＝＋－＠]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;  // a spreadsheet's formula
    return /[",]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const save = () => {
    const rows = [["run_id", "turn", "question", "label", "who", "when", "note"]];
    for (const [place, own] of Object.entries(labels)) {
      const {run, turn} = units[place].dataset;
      rows.push([run, turn, root.dataset.question, own.label, own.who, own.when, own.note]);
    }
    const text = rows.map(row => row.map(cell).join(",") + "\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
    link.download = "labels.csv";
    link.click();
    unsaved = false;
  };

  root.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "save") save();
    else if ("label" in button.dataset) give(button.dataset.label);
    else step(Number(button.dataset.step));
  });
  who.addEventListener("change", keep);
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
    const acts = {y: () => give("1"), n: () => give("0"), u: () => give(""), b: () => step(-1), s: () => step(1), d: save};
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  addEventListener("beforeunload", event => { if (unsaved) event.preventDefault(); });
  const first = units.findIndex((unit, place) => !labels[place]);
  at = Math.max(first, 0);
  show();
})();
