"use strict";
// Sorts the tables of stages by a column, and compares two marked rows. The address stores the sorted column and the marked rows
// (#sort=sgemm.5.descending&compare=sgemm_16_split_fragment.html,sgemm_22_fastest.html). Without this script the page shows the
// same rows in the order of the ladders.
(() => {
  let state;
  const read = () => {
    // A fragment without `=` is no state: it links to a part of the page.
    state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  };
  const follow = []; // For each table, the function that applies a changed state of the address.
  const keep = () => {
    const said = state.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", said ? `#${said}` : location.pathname + location.search);
  };
  const make = (name, text = "", attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  // Text of a cell, without the text of its bar, which repeats the value for screen readers.
  const said = (cell) => {
    const bar = cell.querySelector("meter");
    return cell.textContent.slice(bar ? bar.textContent.length : 0).trim();
  };
  const number = (text) => {
    const found = /^[\d,]+(\.\d+)?(e-?\d+)?/.exec(text);
    return found ? Number(found[0].replaceAll(",", "")) : NaN;
  };

  for (const table of document.querySelectorAll(".ladder")) {
    const ladder = table.closest("section").id;
    const heads = [...table.tHead.rows[0].cells];
    const names = heads.map((head) => head.textContent);
    const body = table.tBodies[0];
    const all = [...body.rows]; // In the order of the ladder.
    const fileOf = (row) => row.cells[0].querySelector("a").getAttribute("href");
    const titleOf = (row) => row.cells[0].querySelector("a").textContent;

    // Cells without a number are last. Equal cells stay in the order of the ladder.
    const sort = (column, order) => {
      const sign = order === "descending" ? -1 : 1;
      const texts = new Map(all.map((row) => [row, said(row.cells[column])]));
      const isNumber = [...texts.values()].some((text) => !Number.isNaN(number(text)));
      const compare = (a, b) => {
        const [one, other] = [texts.get(a), texts.get(b)];
        if (!isNumber) return sign * (one < other ? -1 : Number(one > other));
        const [x, y] = [number(one), number(other)];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return sign * (x - y);
      };
      body.append(...(order ? [...all].sort(compare) : all));
      for (const head of heads) head.removeAttribute("aria-sort");
      if (order) heads[column].setAttribute("aria-sort", order);
    };
    heads.forEach((head, column) => {
      const button = make("button", names[column], { type: "button", title: "Sort by this column" });
      button.addEventListener("click", () => {
        // A click changes the order: ascending, descending, order of the ladder.
        const order = { null: "ascending", ascending: "descending" }[head.getAttribute("aria-sort")];
        sort(column, order);
        if (order) state.set("sort", `${ladder}.${column}.${order}`);
        else state.delete("sort");
        keep();
      });
      head.replaceChildren(button);
    });

    const shown = make("div", "", { class: "compare", role: "status" });
    table.parentElement.after(shown);
    let marked = [];
    const box = (row) => row.querySelector("input");
    const compare = () => {
      for (const row of all) box(row).checked = marked.includes(row);
      if (marked.length < 2) {
        const what = marked.length ? `${titleOf(marked[0])} is marked. Mark another stage` : "Mark two stages";
        shown.replaceChildren(make("p", `${what} to compare them.`));
        return;
      }
      const result = make("table");
      const head = result.createTHead().insertRow();
      head.append(make("th", "Quantity", { scope: "col" }));
      for (const row of marked) head.append(make("th", titleOf(row), { scope: "col", class: "n" }));
      head.append(make("th", "Factor", { scope: "col", class: "n" }));
      const rows = result.createTBody();
      const same = [];
      names.forEach((name, column) => {
        // The first two columns, name and changes, always differ. The keys below show the
        // difference.
        if (column < 2) return;
        const [one, other] = marked.map((row) => said(row.cells[column]));
        if (one === other) {
          same.push(name);
          return;
        }
        const factor = number(other) / number(one);
        const row = rows.insertRow();
        row.append(make("th", name, { scope: "row" }));
        for (const text of [one, other]) row.append(make("td", text || "nothing", { class: "n" }));
        row.append(make("td", Number.isFinite(factor) && factor > 0 ? `× ${factor.toPrecision(3)}` : "", { class: "n" }));
      });
      const keys = marked.map((row) => JSON.parse(row.dataset.keys));
      const own = keys.map((list, at) => list.filter((key) => !keys[1 - at].includes(key)));
      const row = rows.insertRow();
      row.append(make("th", "Keys that the other lacks", { scope: "row" }));
      for (const list of own) {
        const cell = row.insertCell();
        list.forEach((key, at) => cell.append(at ? ", " : "", make("code", key)));
        if (!list.length) cell.append("none");
      }
      row.insertCell();
      const title = make("h3", `${titleOf(marked[0])} beside ${titleOf(marked[1])}`, { id: `${ladder}-compared` });
      const wide = make("div", "", { class: "wide", tabindex: "0", role: "region", "aria-labelledby": title.id });
      wide.append(result);
      shown.replaceChildren(title, wide);
      if (same.length) shown.append(make("p", `The same in both: ${same.join(", ")}.`));
    };
    const mark = (rows) => {
      marked = rows.slice(-2); // A third row replaces the first.
      compare();
    };
    for (const row of all) {
      const input = make("input", "", { type: "checkbox", "aria-label": `Compare ${titleOf(row)}` });
      input.addEventListener("change", () => {
        mark(input.checked ? [...marked, row] : marked.filter((other) => other !== row));
        const others = (state.get("compare") ?? "").split(",").filter((file) => file && !file.startsWith(`${ladder}_`));
        const files = [...others, ...marked.map(fileOf)];
        if (files.length) state.set("compare", files.join(","));
        else state.delete("compare");
        keep();
      });
      row.cells[0].prepend(input, " ");
    }

    follow.push(() => {
      const [sorted, column, order] = (state.get("sort") ?? "").split(".");
      const isSorted = sorted === ladder && heads[column] && ["ascending", "descending"].includes(order);
      sort(isSorted ? Number(column) : 0, isSorted ? order : undefined);
      const files = (state.get("compare") ?? "").split(",");
      mark(files.map((file) => all.find((row) => fileOf(row) === file)).filter(Boolean));
    });
  }
  const start = () => {
    read();
    for (const table of follow) table();
  };
  window.addEventListener("hashchange", start);
  start();
})();
