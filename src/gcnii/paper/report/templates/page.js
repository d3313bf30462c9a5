"use strict";

// A click on a column's name sorts by it, another reverses the order; cells without a number stay last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const other = { ascending: "descending", descending: "ascending" };
    const order = other[head.getAttribute("aria-sort")] ?? button.dataset.first;
    for (const th of head.parentElement.cells) th.setAttribute("aria-sort", th === head ? order : "none");
    for (const body of head.closest("table").tBodies) sort(body, head.cellIndex, order === "ascending" ? 1 : -1);
  });
}

function sort(body, column, sign) {
  const rows = [...body.rows].filter((row) => !row.matches(".part"));
  const value = (row) => parseFloat(row.cells[column].dataset.value);
  const key = (row) => (Number.isNaN(value(row)) ? Infinity : sign * value(row));
  rows.sort((a, b) => (key(a) === key(b) ? 0 : key(a) - key(b)));
  body.append(...rows);
}

// A link to a cell opens it, and the sections around it.
function reveal() {
  const cell = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = cell; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  cell?.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
