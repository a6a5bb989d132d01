// Marks one element in all pictures of tiles, and names the threads that copy and read it. The marked element is an attribute of the
// body. A click or an input also stores it in the address (#element=A,5,2); pointing at it does not.
(() => {
  const { grids, tiles, has, draw, clear, choose, elementAt, laneOf, state, say } = lanes;
  const said = document.getElementById("element");
  const [ofTile, ofRow, ofColumn] = ["tile", "row", "column"].map((part) => document.getElementById(`element-${part}`));
  let marked = null;
  let chosen = null;
  const place = ({ tile, at }) => [tile.row + Math.floor(at / tile.width), tile.column + (at % tile.width)];
  const text = (element) => `${element.tile.name},${place(element).join()}`;
  const find = (name, row, column) => {
    const tile = tiles.find((tile) => tile.name === name);
    const [y, x] = tile ? [row - tile.row, column - tile.column] : [-1, -1];
    const is = x >= 0 && y >= 0 && x < tile.width && y < tile.height;
    return is ? { tile, at: y * tile.width + x } : null;
  };

  const count = (bits) => bits.toString(2).replaceAll("0", "").length;
  const named = (word, bits) => {
    const is = (n) => n < 32 && (bits >>> n) & 1;
    const runs = [];
    for (let n = 0; n < 32; n++) {
      if (!is(n)) continue;
      const first = n;
      while (is(n + 1)) n++;
      runs.push(n === first ? n : `${first}–${n}`);
    }
    return `${word}${count(bits) === 1 ? "" : "s"} ${runs.join(", ")}`;
  };
  const who = (some) => {
    const part = ([warps, lanes]) => (count(lanes) === 32 ? "" : `${named("lane", lanes)} of `) + named("warp", warps);
    return some.map(part).join("; ");
  };
  const words = ({ tile, at }) => {
    const [row, column] = place({ tile, at });
    const parts = [];
    const owner = tile.owner?.[at] ?? null;
    const { verb, owned, reads = "" } = tile.group.dataset;
    if (owned) parts.push(owned);
    else if (owner !== null) parts.push(`${verb} by lane ${owner & 31} of warp ${owner >> 5}`);
    if (tile.held) {
      const { width, group } = tile.held;
      parts.push(`in row ${Math.floor(tile.lies[at] / width)}, column ${tile.lies[at] % width} of ${group.dataset.array}`);
    }
    if (tile.of) {
      const each = reads.split(",").map(Number);
      const times = each[tile.of[at]] ?? each[0];
      const readers = tile.readers?.[tile.of[at]];
      const by = readers && times > 0 ? `, by ${who(readers)}` : "";
      parts.push(times === 0 ? "not read" : times === 1 ? `read once${by}` : `read ${times} times${by}`);
    }
    if (tile.name === "C") parts.push(`from row ${row} of A and column ${column} of B`);
    return `${tile.name} (${row}, ${column}): ${parts.join("; ")}.`;
  };
  const mark = (element) => {
    if (marked === element || (marked && element && text(marked) === text(element))) return;
    clear(".mark,.uses");
    marked = element;
    if (element === null) {
      document.body.removeAttribute("data-element");
      said.textContent = "none";
      return;
    }
    const { tile, at } = element;
    const line = place(element);
    const onLine = (other, side) => (cell) => place({ tile: other, at: cell })[side] === line[side];
    for (const grid of grids) {
      const other = grid.tile;
      if (other === tile) draw(grid, "mark", (cell) => cell === at);
      else if (tile.name === "C") draw(grid, "uses", onLine(other, other.name === "A" ? 0 : 1));
      else if (other.name === "C" && tile.readers) draw(grid, "uses", (cell) => has(tile.readers[tile.of[at]], other.owner[cell]));
    }
    document.body.dataset.element = text(element);
    [ofTile.value, ofRow.value, ofColumn.value] = [tile.name, ...line];
    said.textContent = words(element);
  };
  const pick = (element) => {
    chosen = element;
    mark(element);
    say("element", element && text(element));
  };

  const pointed = (event) => mark(elementAt(event) ?? chosen);
  document.addEventListener("pointerover", pointed);
  for (const svg of document.querySelectorAll(".owners svg")) svg.addEventListener("pointermove", pointed);
  document.addEventListener("click", (event) => {
    const element = elementAt(event);
    if (element !== null) pick(element);
  });
  for (const control of [ofTile, ofRow, ofColumn]) {
    control.addEventListener("input", () => {
      const element = find(ofTile.value, ofRow.valueAsNumber, ofColumn.valueAsNumber);
      if (element === null) {
        said.textContent = "none: the tile has no such element";
        return;
      }
      pick(element);
      if (laneOf(element) !== null) choose(laneOf(element));
    });
    control.addEventListener("keydown", (event) => {
      if (event.key === "Escape") pick(null);
    });
  }
  document.getElementById("unlit").addEventListener("click", () => pick(null));
  const fromAddress = () => {
    const [, name, row, column] = /^(\w+),(\d+),(\d+)$/.exec(state().get("element") ?? "") ?? [];
    const element = name === undefined ? null : find(name, Number(row), Number(column));
    if (element) mark((chosen = element));
  };
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
})();
