"use strict";
// Highlights one lane of a warp in all pictures of the page, and shows one step of a table at a time. The highlighted lane is an
// attribute of the body. A click or an input also stores the lane or the step in the address (#lane=3&F1=2); pointing does not.
// Without this script the page has the same content.
const lanes = (() => {
  const body = document.body;
  const range = document.getElementById("lane");
  const shown = document.querySelector("output[for=lane]");
  // Cells of each lane. The text of a cell lists its lanes: 0-7,12.
  const marks = Array.from({ length: 32 }, () => []);
  for (const cell of document.querySelectorAll(".grid td:not(:empty)")) {
    for (const run of cell.textContent.split(",")) {
      const [first, last = first] = run.split("-").map(Number);
      for (let lane = first; lane <= last; lane++) marks[lane].push(cell);
    }
  }

  // Decodes one number per element of a tile, row by row. The text is a list, or a sum or XOR over
  // the bits of row and column.
  const numbers = (text, { width, height }) => {
    if (!text) return null;
    if (text[0] === "l") {
      const run = ([number, count = 1]) => Array(Number(count)).fill(number === "" ? null : Number(number));
      return text.slice(1).split(",").flatMap((part) => run(part.split("*")));
    }
    const list = (part) => part.split(",").filter((number) => number !== "").map(Number);
    const [[base], ofRow, ofColumn] = text.slice(1).split(";").map(list);
    const more = text[0] === "s" ? (a, b) => a + b : (a, b) => a ^ b;
    const of = (strides, at, from) => strides.reduce((all, stride, bit) => ((at >> bit) & 1 ? more(all, stride) : all), from);
    const row = (_, y) => {
      const from = of(ofRow, y, base);
      return Array.from({ length: width }, (_, x) => of(ofColumn, x, from));
    };
    return Array.from({ length: height }, row).flat();
  };
  // Decodes sets of threads, each as the bit masks of warps and of lanes.
  const threads = (text) => text.split(",").filter(Boolean).map((part) => part.split(":").map((bits) => Number.parseInt(bits, 16)));
  const has = (some, thread) => some.some(([warps, lanes]) => ((warps >>> (thread >> 5)) & (lanes >>> (thread & 31)) & 1) === 1);

  // Grids of the pictures: tiles of the matrices, and tiles in shared memory. A cell of a grid is
  // an element or null.
  const grids = [...document.querySelectorAll("[data-at]")].map((group) => {
    const [left, top, width, height, row, column] = group.dataset.at.split(",").map(Number);
    return { group, left, top, width, height, row, column, name: group.dataset.tile, element: (cell) => cell };
  });
  const tiles = grids.filter(({ name }) => name !== undefined);
  for (const tile of tiles) {
    const { owner, group, lies, readers } = tile.group.dataset;
    tile.owner = numbers(owner, tile);
    tile.of = numbers(group, tile);
    tile.lies = numbers(lies, tile);
    tile.readers = readers?.split("|").map(threads);
    tile.tile = tile;
  }
  for (const grid of grids) {
    if (grid.name !== undefined) continue;
    grid.tile = tiles.find(({ name }) => name === grid.group.dataset.holds);
    grid.tile.held = grid;
    const elements = [];
    grid.tile.lies.forEach((cell, element) => (elements[cell] = element));
    grid.element = (cell) => elements[cell] ?? null;
  }
  // SVG path around the cells of a grid whose element passes the test, merged into few rectangles.
  const outline = ({ left, top, width, height, element }, passes) => {
    const is = (x, y) => {
      const of = x < width && y < height ? element(y * width + x) : null;
      return of !== null && passes(of);
    };
    let path = "";
    let above = new Map();
    for (let y = 0; y <= height; y++) {
      const here = new Map();
      for (let x = 0; x < width; x++) {
        if (!is(x, y)) continue;
        const from = x;
        while (is(x + 1, y)) x++;
        const run = `${from} ${x + 1 - from}`;
        here.set(run, above.get(run) ?? y);
        above.delete(run);
      }
      for (const [run, first] of above) {
        const [x, count] = run.split(" ").map(Number);
        path += `M${left + x} ${top + first}h${count}v${y - first}h-${count}z`;
      }
      above = here;
    }
    return path;
  };
  const draw = (grid, classes, passes) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("class", classes);
    path.setAttribute("d", outline(grid, passes));
    if (path.getAttribute("d") !== "") grid.group.append(path);
    return path;
  };
  const clear = (classes) => {
    for (const path of document.querySelectorAll(classes)) path.remove();
  };

  // State of the address by name. `said` returns null for a number that is missing or out of range.
  const state = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const said = (name, least, most) => {
    const text = state().get(name);
    return /^\d{1,4}$/.test(text ?? "") && text >= least && text <= most ? Number(text) : null;
  };
  const say = (name, value) => {
    const all = state();
    if (value === null) all.delete(name);
    else all.set(name, value);
    const text = [...all].map((part) => part.join("=")).join("&");
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  let lit = null;
  let chosen = null;
  const light = (lane) => {
    if (lane === lit) return;
    if (lit !== null) for (const mark of marks[lit]) mark.classList.remove("on");
    clear("path.on");
    lit = lane;
    if (lane === null) {
      body.removeAttribute("data-lit");
      shown.textContent = "none";
      return;
    }
    for (const mark of marks[lane]) mark.classList.add("on");
    for (const grid of grids) {
      const { owner, of, readers } = grid.tile;
      const paths = [];
      if (readers) paths.push(draw(grid, "reads on", (element) => of[element] !== null && has(readers[of[element]], lane)));
      if (owner) paths.push(draw(grid, "own on", (element) => owner[element] === lane));
      for (const path of paths) path.dataset.lane = lane;
    }
    body.dataset.lit = lane;
    range.value = lane;
    shown.textContent = lane;
  };
  const choose = (lane) => {
    chosen = lane;
    light(lane);
    say("lane", lane);
  };

  // Lane or element under the pointer. An element is a tile and an index in it.
  const cellAt = (event) => event.target.closest?.(".grid td:not(:empty)");
  const elementAt = (event) => {
    const svg = event.target.closest?.(".owners svg");
    if (!svg) return null;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    for (const { group, left, top, width, height, element, tile } of grids) {
      const [x, y] = [Math.floor(point.x) - left, Math.floor(point.y) - top];
      if (!svg.contains(group) || x < 0 || y < 0 || x >= width || y >= height) continue;
      const at = element(y * width + x);
      return at === null ? null : { tile, at };
    }
    return null;
  };
  const laneOf = (element) => {
    const owner = element?.tile.owner?.[element.at] ?? null;
    return owner !== null && owner < 32 ? owner : null;
  };
  const laneAt = (event) => {
    const cell = cellAt(event);
    return cell ? Number.parseInt(cell.textContent, 10) : laneOf(elementAt(event)); // The first lane of the cell.
  };
  const pointed = (event) => light(laneAt(event) ?? chosen);
  document.addEventListener("pointerover", pointed);
  for (const svg of document.querySelectorAll(".owners svg")) svg.addEventListener("pointermove", pointed);
  document.addEventListener("click", (event) => {
    const lane = laneAt(event);
    if (lane !== null) choose(lane);
  });
  range.addEventListener("input", () => choose(range.valueAsNumber));
  range.addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(null);
  });
  document.getElementById("unlit").addEventListener("click", () => choose(null));

  // Adds a slider to each table of steps, and shows the selected step, which is a row or a column
  // of the table.
  const make = (name, attributes, ...inner) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inner);
    return element;
  };
  const copy = (cell) => [...cell.cloneNode(true).childNodes];
  const follow = [];
  for (const table of document.querySelectorAll("[data-step]")) {
    const name = table.dataset.step;
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows];
    const isAcross = table.dataset.along === "columns";
    const count = isAcross ? heads.length - 1 : rows.length;
    if (count < 2) continue;
    // Cells of each step, each with its heading.
    const first = isAcross ? 1 : 0;
    const steps = Array.from({ length: count }, (_, at) =>
      isAcross
        ? rows.map((row) => [row.cells[0], row.cells[at + first]])
        : heads.map((head, column) => [head, rows[at].cells[column]]),
    );
    const title = (at) => (isAcross ? heads[at + 1].childNodes[0].textContent : (rows[at].querySelector("th")?.textContent ?? ""));
    const id = `step-${name}`;
    const input = make("input", { type: "range", id, min: 1, max: count, value: 1 });
    const output = make("output", { for: id });
    const view = make("div", { class: "step", role: "group", "aria-label": "The step" });
    const control = make("p", { class: "stepper" }, make("label", { for: id }, "Step"), " ", input, " ", output);
    table.closest(".wide").before(control, view);
    const go = (step) => {
      for (const cells of steps) for (const [, cell] of cells) cell?.classList.remove("at");
      input.value = step;
      output.textContent = `${step} of ${count}${title(step - 1) ? `: ${title(step - 1)}` : ""}`;
      const parts = steps[step - 1].filter(([head, cell]) => cell && (isAcross || cell.tagName === "TD"));
      view.replaceChildren(
        ...parts.map(([head, cell]) => make("div", { class: cell.className.replace(/\bn\b/, "") }, make("small", {}, ...copy(head)), make("span", {}, ...copy(cell)))),
      );
      for (const [, cell] of steps[step - 1]) cell?.classList.add("at");
    };
    input.addEventListener("input", () => {
      go(input.valueAsNumber);
      say(name, input.valueAsNumber);
    });
    go(1);
    follow.push(() => {
      const step = said(name, 1, count);
      if (step !== null) go(step);
    });
  }

  const fromAddress = () => {
    const lane = said("lane", 0, 31);
    if (lane !== null) {
      chosen = lane;
      light(chosen);
    }
    for (const table of follow) table();
  };
  window.addEventListener("hashchange", fromAddress);
  body.classList.add("js");
  fromAddress();
  return { grids, tiles, has, draw, clear, choose, elementAt, laneOf, state, say };
})();
