"use strict";
// The module contains the compiler and the simulator, and creates the reports that the page shows.
// The address stores the spec.
const at = (id) => document.getElementById(id);
const [family, line, marked, said, took, seen] = ["family", "line", "marked", "said", "took", "seen"].map(at);
const PAUSE = 300; // Milliseconds between the last key press and the run of the spec.
let compiled, instance, timer;

async function load() {
  const packed = Uint8Array.from(atob(at("module").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  compiled = await WebAssembly.compile(await new Response(stream).arrayBuffer());
}

// Returns the report of a spec. After a trap the module cannot continue, so the next spec gets a
// new instance.
async function ask(macro, text) {
  instance ??= (await WebAssembly.instantiate(compiled)).exports;
  const { memory, room, run, result, length } = instance;
  const bytes = new TextEncoder().encode(`${macro}\n${text}`);
  const given = room(bytes.length); // May grow the memory, which replaces `memory.buffer`.
  new Uint8Array(memory.buffer, given, bytes.length).set(bytes);
  const answer = () => new TextDecoder().decode(new Uint8Array(memory.buffer, result(), length()));
  try {
    run();
  } catch (trap) {
    instance = undefined;
    throw new Error(`The module stopped. ${trap.message}. ${answer()}`);
  }
  return JSON.parse(answer());
}

// Repeats the typed text behind the input, with the faults underlined.
function mark(marks) {
  const parts = [];
  let end = 0;
  for (const [from, to] of marks.sort((a, b) => a[0] - b[0])) {
    if (from < end) continue;
    const token = document.createElement("mark");
    token.textContent = line.value.slice(from, to);
    parts.push(line.value.slice(end, from), token);
    end = to;
  }
  // The space gives height to an empty last line.
  marked.replaceChildren(...parts, line.value.slice(end) + " ");
}

async function update() {
  const start = performance.now();
  document.body.dataset.state = "busy";
  try {
    const report = await ask(family.value, line.value);
    mark(report.marks);
    said.innerHTML = report.said;
    seen.innerHTML = report.seen;
    const ms = Math.round(performance.now() - start);
    took.textContent = `Answered in ${ms} ms.`;
    Object.assign(document.body.dataset, { state: "done", ms });
  } catch (error) {
    mark([]);
    said.textContent = error.message;
    seen.textContent = took.textContent = "";
    document.body.dataset.state = "failed";
  }
}

function write() {
  history.replaceState(null, "", `#${new URLSearchParams({ family: family.value, line: line.value })}`);
}

// A link to a part of the page does not change the spec. The browser has followed it, so the
// address gets the spec back.
function read() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (!state.has("line") && line.value) return write();
  const asked = [...family.options].find((option) => option.value === state.get("family"));
  family.value = (asked ?? family.options[0]).value;
  line.value = state.get("line") ?? line.dataset.first;
  mark([]);
  update();
}

function changed() {
  mark([]);
  clearTimeout(timer);
  timer = setTimeout(() => {
    write();
    update();
  }, PAUSE);
}

line.addEventListener("input", changed);
family.addEventListener("change", changed);
at("asked").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", read);
said.textContent = "Unpacking the compiler …";
load().then(read, (error) => {
  said.textContent = `This browser cannot run the compiler: ${error.message}`;
  document.body.dataset.state = "failed";
});
