
// Tables that sort, filter and search; without it they are whole, and as long as they are
(() => {
  "use strict";
  const FIRST = 10;
  const collator = new Intl.Collator(undefined, { numeric: true });
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const textOf = cell => (cell ? cell.textContent.trim() : "");
  const isMissing = text => text === "" || text === "–";
  const numberOf = text => parseFloat(text.replace(/^<\s*/, "").replace("−", "-").replace(/(\d),(?=\d{3})/g, "$1"));

  const fileName = title => (title || "table").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60).replace(/^-|-$/g, "") || "table";

  // as in evalkit's own CSV files: no spreadsheet takes a text for a formula
  const csvCell = text => {
    const safe = /^[=+\-@\t\r\n]/.test(text) && !/^[+-]?[\d.,]+$/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const csvOf = rows => rows.map(row => row.map(csvCell).join(",")).join("\r\n") + "\r\n";

  const LATEX = {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$", "±": "$\\pm$",
    "≤": "$\\le$", "≥": "$\\ge$", "<": "$<$", ">": "$>$", "\u00a0": "~", "…": "\\dots{}",
  };
  const latexText = text => text.replace(/[\\~^–−±≤≥<>\u00a0…]|[&%$#_{}]/g, sign => LATEX[sign] || `\\${sign}`);
  const latexOf = ([head, ...rows], isNumber, title) => [
    "% \\usepackage{booktabs}", "\\begin{table}", "\\centering", `\\caption{${latexText(title || "")}}`,
    `\\begin{tabular}{${isNumber.map(yes => (yes ? "r" : "l")).join("")}}`, "\\toprule",
    `${head.map(latexText).join(" & ")} \\\\`, "\\midrule",
    ...rows.map(row => `${row.map(latexText).join(" & ")} \\\\`),
    "\\bottomrule", "\\end{tabular}", "\\end{table}", "",
  ].join("\n");

  const copy = text => {  // the clipboard of a page from the disk may be closed; a selected text can be copied there
    const area = make("textarea", { value: text, readOnly: true, className: "clipboard" });
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied ? Promise.resolve() : navigator.clipboard.writeText(text);
  };
  const copyButton = (title, textToCopy) => {
    const button = make("button", { type: "button", className: "copy", textContent: title });
    button.addEventListener("click", () => copy(textToCopy()).then(
      () => { button.textContent = "Copied"; }, () => { button.textContent = "Not copied"; },
    ).then(() => setTimeout(() => { button.textContent = title; }, 2000)));
    return button;
  };
  document.querySelectorAll(".evalkit-abstract").forEach(abstract => {
    if (abstract.dataset.copies) return;  // in Lab every output brings this script
    abstract.dataset.copies = "yes";
    const paragraph = abstract.querySelector("p");
    abstract.append(copyButton("Copy", () => textOf(paragraph)));
  });

  const marks = new ResizeObserver(entries => entries.forEach(({ target }) => {
    target.classList.toggle("scrolls", target.scrollWidth > target.clientWidth + 1);
  }));
  document.querySelectorAll(".drawing").forEach(drawing => marks.observe(drawing));

  const tables = new Map();  // what shows the rows with given values, by table

  function enhance(box) {
    if (box.dataset.sorts) return;  // in Lab every output brings this script
    box.dataset.sorts = "yes";
    const table = box.querySelector("table");
    const body = table && table.tBodies[0];
    if (!body || !table.tHead) return;
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...body.rows];
    const names = heads.map(textOf), columns = heads.map(head => head.dataset.column);
    // per column with links to its values: their codes and texts, and the numbers of the values of each row
    const values = heads.map(head => (head.dataset.values || "").split("\n").map(line => line.split(/ (.*)/)));
    const valuesOf = heads.map(head => new Map((head.dataset.rows || "").split(" ").map((row, n) => [rows[n], row.split(",")])));
    rows.forEach(row => [...row.cells].forEach((cell, i) => {
      cell.dataset.label = names[i] || "";
      cell.classList.toggle("short", /^(\S{0,30}|.{1,13})$/.test(textOf(cell)));  // not to be broken
    }));
    const state = { all: false, query: "", picks: new Map(), wanted: [] };
    const fits = (row, i) => textOf(row.cells[i]);
    let more = null, count = null, chosen = null;
    let matches = () => true;  // whether the search and the filters keep a row

    const update = () => {
      const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
      matches = row => {
        const text = row.textContent.toLowerCase();
        return words.every(word => text.includes(word))
          && [...state.picks].every(([i, value]) => !value || fits(row, i) === value)
          && state.wanted.every(([i, number]) => valuesOf[i].get(row).includes(String(number)));
      };
      const found = [...body.rows].filter(matches);
      const shown = new Set(state.all ? found : found.slice(0, FIRST));
      rows.forEach(row => { row.hidden = !shown.has(row); });
      if (more) {
        more.hidden = found.length <= FIRST;
        more.textContent = state.all ? `Show the first ${FIRST} rows only` : `Show all ${found.length} rows`;
        more.setAttribute("aria-expanded", String(state.all));
        count.textContent = `${shown.size} of ${rows.length} rows`;
      }
      if (chosen) {
        chosen.hidden = !state.wanted.length;
        const said = state.wanted.map(([i, number]) => `${names[i]}: ${values[i][number][1]}`).join("; ");
        chosen.firstChild.textContent = `${found.length} of ${rows.length} rows have ${said} `;
      }
      fit();
    };

    const sort = i => {
      const head = heads[i], down = head.getAttribute("aria-sort") === "ascending";
      const texts = rows.map(row => fits(row, i)).filter(text => !isMissing(text));
      const numeric = texts.length > 0 && texts.every(text => /^[<−-]?\s*[\d.]/.test(text) && !isNaN(numberOf(text)));
      const order = (a, b) => {
        const [x, y] = [fits(a, i), fits(b, i)];
        if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y);
        return (down ? -1 : 1) * (numeric ? numberOf(x) - numberOf(y) || collator.compare(x, y) : collator.compare(x, y));
      };
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.slice().sort(order));
      update();
    };

    const show = query => {  // the rows with the values whose codes are in an address
      const wanted = [...query].map(([name, code]) => {
        const i = columns.indexOf(name);
        return [i, i < 0 ? -1 : values[i].findIndex(([own]) => own === code)];
      });
      if (!wanted.length || wanted.some(([, number]) => number < 0)) return;
      if (!chosen) {
        const clear = make("button", { type: "button", textContent: "Show all" });
        clear.addEventListener("click", () => { state.wanted = []; update(); box.focus(); });
        chosen = make("p", { className: "chosen" }, "", clear);
        chosen.setAttribute("aria-live", "polite");
        box.before(chosen);
      }
      state.wanted = wanted;
      for (let part = box; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
      update();
      const first = [...body.rows].find(row => !row.hidden);
      (chosen || box).scrollIntoView({ block: "center" });
      ((first && first.querySelector("a")) || box).focus({ preventScroll: true });
    };
    tables.set(box, show);

    if (rows.length > 1) {
      heads.forEach((head, i) => {
        const button = make("button", { type: "button", title: "Sort by this column" }, ...head.childNodes);
        button.addEventListener("click", () => sort(i));
        head.replaceChildren(button);
      });
    }
    if (rows.length > FIRST) {
      const search = make("input", { type: "search", spellcheck: false });
      search.addEventListener("input", () => { state.query = search.value; update(); });
      const tools = make("div", { className: "tools" }, make("label", {}, "Search ", search));
      names.map((name, i) => [i, [...new Set(rows.map(row => fits(row, i)))].sort(collator.compare)])
        .filter(([i, values]) => !heads[i].matches(".number") && values.length > 1 && values.length <= Math.max(12, Math.min(100, rows.length / 3))
          && values.every(value => value.length <= 100 && !/^[-−<]?\d/.test(value)))
        .slice(0, 3)
        .forEach(([i, values]) => {
          const select = make("select", {}, make("option", { value: "" }, "all"),
            ...values.map(value => make("option", { value }, value)));
          select.addEventListener("change", () => { state.picks.set(i, select.value); update(); });
          tools.append(make("label", {}, `${names[i]} `, select));
        });
      count = make("span", { className: "quiet" });
      count.setAttribute("aria-live", "polite");
      tools.append(count);
      more = make("button", { type: "button", className: "more" });
      more.addEventListener("click", () => { state.all = !state.all; update(); });
      box.before(tools);
      box.after(more);
    }
    const texts = cells => [...cells].map(cell => {
      const copy = cell.cloneNode(true);
      copy.querySelectorAll("summary, svg").forEach(part => part.remove());  // of a folded text its beginning
      return textOf(copy);
    });
    const content = () => [heads.map(textOf), ...[...body.rows].filter(matches).map(row => texts(row.cells))];
    const copying = make("p", { className: "copying" },
      copyButton("Copy as LaTeX", () => latexOf(content(), heads.map(head => head.matches(".number")), table.getAttribute("aria-label"))),
      copyButton("Copy as CSV", () => csvOf(content())));
    const link = make("a", { textContent: "Save as CSV", href: "#", download: `${fileName(table.getAttribute("aria-label"))}.csv` });
    link.addEventListener("click", () => { link.href = `data:text/csv;charset=utf-8,${encodeURIComponent("\ufeff" + csvOf(content()))}`; });
    copying.append(link);
    (box.nextElementSibling && box.nextElementSibling.matches(".more") ? box.nextElementSibling : box).after(copying);
    function fit() {
      box.classList.remove("cards");
      if (table.scrollWidth > box.clientWidth + 1) box.classList.add("cards");
    }
    update();
    let width = box.clientWidth;
    new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; fit(); } }).observe(box);
  }
  document.querySelectorAll(".evalkit-table").forEach(enhance);

  const follow = () => {
    const [anchor, query] = location.hash.slice(1).split("?");
    const fold = anchor && document.getElementById(anchor);
    const box = fold && fold.querySelector(".evalkit-table");
    if (!tables.has(box)) return;
    fold.open = true;
    if (query) tables.get(box)(new URLSearchParams(query));
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", event => {  // of an address that stands already
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  follow();
})();
