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
  const open = body.querySelector(".beside");
  const rows = [...body.rows].filter((row) => !row.matches(".part, .beside"));
  const value = (row) => parseFloat(row.cells[column].dataset.value);
  const key = (row) => (Number.isNaN(value(row)) ? Infinity : sign * value(row));
  rows.sort((a, b) => (key(a) === key(b) ? 0 : key(a) - key(b)));
  body.append(...rows);
  if (open) numberOf(open.querySelector(".cell")).closest("tr").after(open);
}

// A number opens its details in a row below its own, and they go back to the list when they close.
const places = new Map();
const numberOf = (part) => document.getElementById(`at-${part.id}`)?.querySelector("a");

function unfold(part) {
  const number = numberOf(part);
  part.open = true;
  if (!number || places.has(part)) return;
  const row = number.closest("tr");
  for (const other of row.closest("table").querySelectorAll(".beside .cell")) fold(other);
  const beside = document.createElement("tr");
  const cell = beside.insertCell();
  beside.className = "beside";
  cell.colSpan = row.cells.length;
  places.set(part, new Comment());
  part.before(places.get(part));
  cell.append(part);
  row.after(beside);
  number.setAttribute("aria-expanded", "true");
}

function fold(part) {
  if (!places.has(part)) return;
  const beside = part.closest(".beside");
  part.open = false;
  places.get(part).replaceWith(part);
  places.delete(part);
  beside.remove();
  numberOf(part).setAttribute("aria-expanded", "false");
}

// The way back: closing the details, their last link, or Escape.
function goBack(part) {
  fold(part);
  numberOf(part).focus();
}

for (const part of document.querySelectorAll(".cell")) {
  const number = numberOf(part);
  if (!number) continue;
  number.setAttribute("aria-expanded", "false");
  number.addEventListener("click", (event) => {
    event.preventDefault();
    if (places.has(part)) return fold(part);
    history.replaceState(null, "", number.hash);
    show(part);
  });
  part.addEventListener("toggle", () => part.open || !places.has(part) || goBack(part));
  part.querySelector(".back").addEventListener("click", (event) => {
    event.preventDefault();
    goBack(part);
  });
}
addEventListener("keydown", (event) => {
  const within = document.activeElement.closest(".beside")?.querySelector(".cell");
  const part = within ?? [...places.keys()].at(-1);
  if (event.key === "Escape" && part) goBack(part);
});

// A link to a cell opens it, and the sections around it.
function show(part) {
  unfold(part);
  for (let outer = part; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
  if (!places.has(part)) return part.scrollIntoView();
  part.closest(".beside").scrollIntoView({ block: "nearest" });
  numberOf(part).closest("tr").scrollIntoView({ block: "nearest" });  // the number stays in sight
}
function reveal() {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part?.matches(".cell")) show(part);
}
addEventListener("hashchange", reveal);
reveal();
