"use strict";

// Which edges of a box can still be scrolled to; a box with nothing to scroll is none.
function mark(box) {
  const beyond = box.scrollWidth - box.clientWidth;
  const edge = box.parentElement.classList;
  edge.toggle("fits", beyond <= 1);
  edge.toggle("more-left", beyond > 1 && box.scrollLeft > 1);
  edge.toggle("more-right", beyond - box.scrollLeft > 1);
  box.tabIndex = beyond > 1 ? 0 : -1;
}
const resized = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
for (const box of document.querySelectorAll(".scroll")) {
  box.addEventListener("scroll", () => mark(box), { passive: true });
  resized.observe(box);
}
