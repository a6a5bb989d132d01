"use strict";
// Lights one lane of a warp in all pictures of the page, and shows one step of a table at a time. Which lane is an attribute of the
// body; that and the steps stand in the address (#lane=3&F1=2) once they have been chosen rather than pointed at. Without this
// script the page says the same.
(() => {
  const body = document.body;
  const range = document.getElementById("lane");
  const shown = document.querySelector("output[for=lane]");
  // What belongs to each lane, by attributes: the lanes of a cell of a picture are bits, an outline of a tile has one.
  const marks = Array.from({ length: 32 }, () => []);
  const lanesOf = (cell) => Number.parseInt(cell.dataset.lanes, 16);
  for (const cell of document.querySelectorAll("[data-lanes]")) {
    for (let lane = 0; lane < 32; lane++) if ((lanesOf(cell) >>> lane) & 1) marks[lane].push(cell);
  }
  for (const outline of document.querySelectorAll("[data-lane]")) marks[outline.dataset.lane].push(outline);

  // What the address says by name; a number of a name that is not in a range is as none.
  const said = (name, least, most) => {
    const text = new URLSearchParams(location.hash.slice(1)).get(name);
    return /^\d{1,4}$/.test(text ?? "") && text >= least && text <= most ? Number(text) : null;
  };
  const say = (name, value) => {
    const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    if (value === null) state.delete(name);
    else state.set(name, value);
    history.replaceState(null, "", `${state}` ? `#${state}` : location.pathname + location.search);
  };

  let lit = null;
  let chosen = null;
  const light = (lane) => {
    if (lane === lit) return;
    if (lit !== null) for (const mark of marks[lit]) mark.classList.remove("on");
    lit = lane;
    if (lane === null) {
      body.removeAttribute("data-lit");
      shown.textContent = "none";
      return;
    }
    for (const mark of marks[lane]) mark.classList.add("on");
    body.dataset.lit = lane;
    range.value = lane;
    shown.textContent = lane;
  };
  const choose = (lane) => {
    chosen = lane;
    light(lane);
    say("lane", lane);
  };

  // The lane that a place of the page belongs to.
  const laneAt = (event) => {
    const cell = event.target.closest?.("[data-lanes]");
    if (cell) return 31 - Math.clz32(lanesOf(cell) & -lanesOf(cell)); // The first of them.
    const svg = event.target.closest?.(".owners svg");
    if (!svg) return null;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const own = [...svg.querySelectorAll(".own")].find((outline) => outline.isPointInFill(point));
    return own ? Number(own.dataset.lane) : null;
  };
  document.addEventListener("pointerover", (event) => light(laneAt(event) ?? chosen));
  for (const svg of document.querySelectorAll(".owners svg")) {
    svg.addEventListener("pointermove", (event) => light(laneAt(event) ?? chosen));
  }
  document.addEventListener("click", (event) => {
    const lane = laneAt(event);
    if (lane !== null) choose(lane);
  });
  range.addEventListener("input", () => choose(range.valueAsNumber));
  range.addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(null);
  });
  document.getElementById("unlit").addEventListener("click", () => choose(null));

  // Beside a table of steps a range, and the step that it is at: a row, or a column.
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
    // Of each step what it is called, and its cells, each with what stands at the other side.
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
})();
