"use strict";
// Lights one lane of a warp in all pictures of the page. Which one is an attribute of the body, and stands in the
// address (#lane=3) once it has been chosen rather than pointed at. Without this script the page says the same.
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
    history.replaceState(null, "", lane === null ? location.pathname + location.search : `#lane=${lane}`);
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
  const fromAddress = () => {
    const said = /^#lane=([0-9]|[12][0-9]|3[01])$/.exec(location.hash);
    if (said) {
      chosen = Number(said[1]);
      light(chosen);
    }
  };
  window.addEventListener("hashchange", fromAddress);
  body.classList.add("js");
  fromAddress();
})();
