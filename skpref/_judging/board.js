// Sorts tables by a click on a head, and fetches the board again while votes come in.

const EVERY = 5000; // milliseconds
const order = {}; // of each table: the column and the direction

function key(cell) {
  const number = parseFloat(cell.replace(/[<>\s]/g, "").replace("−", "-"));
  return Number.isNaN(number) ? cell.toLowerCase() : number;
}

function sort(table, column, down) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [key(row.cells[column].textContent), row]);
  rows.sort(([a], [b]) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a < typeof b ? -1 : 1));
  if (down) rows.reverse();
  body.append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((head, k) =>
    head.setAttribute("aria-sort", k !== column ? "none" : down ? "descending" : "ascending")
  );
}

function prepare() {
  document.querySelectorAll("table.sortable").forEach((table, number) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => {
        const [before, down] = order[number] ?? [-1, true];
        order[number] = [column, before === column && !down];
        sort(table, ...order[number]);
      });
      head.append(button);
    });
    if (order[number]) sort(table, ...order[number]);
  });
}

async function refresh() {
  const response = await fetch(location.href).catch(() => null);
  if (!response?.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const board = document.getElementById("board");
  const content = fresh.getElementById("board").innerHTML;
  if (board.dataset.content === content || board.contains(document.activeElement)) return;
  board.dataset.content = content;
  board.replaceChildren(...fresh.getElementById("board").childNodes);
  prepare();
}

prepare();
if (document.getElementById("board")) setInterval(refresh, EVERY);
