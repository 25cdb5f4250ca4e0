// Names and keys for what the theme's script makes without: boxes that scroll, and the buttons of code blocks.
document$.subscribe(() => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((box, i) => {
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `Table ${i + 1}`);
  });
  document.querySelectorAll(".md-code__nav").forEach((bar, i) => bar.setAttribute("aria-label", `Code block ${i + 1}`));
});
