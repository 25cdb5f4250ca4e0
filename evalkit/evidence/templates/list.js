"use strict";
(() => {
  const input = document.getElementById("find"), count = document.getElementById("found");
  const rows = [...document.querySelectorAll("tbody tr")];
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach(row => { row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word)); });
    count.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} runs`;
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || event.target === input || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
})();
