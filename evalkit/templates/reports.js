
// A search over the reports; without it all of them stand in the page
(() => {
  "use strict";
  const reports = [...document.querySelectorAll(".report")];
  if (reports.length < 2) return;
  const search = Object.assign(document.createElement("input"), { type: "search", spellcheck: false });
  const label = Object.assign(document.createElement("label"), { textContent: "Search " });
  const count = Object.assign(document.createElement("span"), { className: "quiet" });
  count.setAttribute("aria-live", "polite");
  label.append(search);
  const tools = Object.assign(document.createElement("div"), { className: "tools" });
  tools.append(label, count);
  document.getElementById("count").after(tools);
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const report of reports) {
      const text = (report.textContent + report.closest(".group").querySelector("h2").textContent).toLowerCase();
      report.hidden = !words.every(word => text.includes(word));
    }
    for (const group of document.querySelectorAll(".group, .question")) group.hidden = !group.querySelector(".report:not([hidden])");
    const left = reports.filter(report => !report.hidden).length;
    count.textContent = words.length ? `${left} of ${reports.length} reports` : "";
  });
})();
