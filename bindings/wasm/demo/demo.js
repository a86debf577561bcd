// The page around the reader. It has no library and makes no request: `fibula-wasm.js` holds the module as text, so that
// the page also works from a file, where browsers refuse to load a module.
"use strict";

const find = (id) => document.getElementById(id);
const LARGEST = 512 * 1024 * 1024;
const SHOWN = 20;

/** The module, and a call of it: text and data in, text and data out. An error is a sentence. */
class Reader {
  static async load() {
    const packed = Uint8Array.from(atob(FIBULA_WASM), (letter) => letter.charCodeAt(0));
    const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const reader = new Reader();
    reader.module = await WebAssembly.compile(await new Response(plain).arrayBuffer());
    await reader.start();
    return reader;
  }

  /** A new instance; the second argument is empty because the module imports nothing. */
  async start() {
    this.wasm = (await WebAssembly.instantiate(this.module, {})).exports;
  }

  async call(name, text, data = new Uint8Array()) {
    try {
      this.put("page_text", new TextEncoder().encode(text));
      this.put("page_data", data);
      const failed = this.wasm[`page_${name}`]();
      const answer = new TextDecoder().decode(this.bytes("page_answer"));
      if (failed) throw new Error(answer);
      return { answer: JSON.parse(answer), rows: this.bytes("page_rows").slice() };
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      // The instance is not usable any more, and its table is gone.
      await this.start();
      throw new Error("the reader failed (most likely for lack of memory) and was started again: " +
        "open the table again, or a smaller one");
    }
  }

  put(room, bytes) {
    const at = this.wasm[room](bytes.length);
    if (at === 0) throw new Error(`${bytes.length.toLocaleString("en")} bytes are too many`);
    new Uint8Array(this.wasm.memory.buffer, at >>> 0, bytes.length).set(bytes);
  }

  bytes(what) {
    return new Uint8Array(this.wasm.memory.buffer, this.wasm[what]() >>> 0, this.wasm[`${what}_len`]() >>> 0);
  }
}

/** An element with texts and elements inside; texts are never read as HTML. */
function element(tag, inside = [], attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...[inside].flat());
  return made;
}

function table(head, rows) {
  return element("table", [
    element("thead", element("tr", head.map((name) => element("th", name, { scope: "col" })))),
    element("tbody", rows.map((row) => element("tr", row.map((cell) => element("td", cell))))),
  ]);
}

const many = (count, word, end = "s") => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : end}`;

function say(text, bad = false) {
  find("status").textContent = text;
  find("status").className = bad ? "bad" : "dim";
}

/** Runs something that may take a while or fail, after the page has shown what it does. */
async function working(what, run) {
  say(`${what} ...`);
  document.body.setAttribute("aria-busy", "true");
  await new Promise((done) => setTimeout(done, 20));
  const start = performance.now();
  try {
    await run();
    say(`${what}: done in ${Math.round(performance.now() - start).toLocaleString("en")} ms.`);
  } catch (error) {
    say(error.message, true);
  }
  document.body.removeAttribute("aria-busy");
}

async function contents(file) {
  if (file.size > LARGEST) throw new Error(`${file.name}: more than 512 MiB: use the command, fibula annotate`);
  return new Uint8Array(await file.arrayBuffer());
}

let reader;
// What the link saves. It holds all rows until it is revoked.
let saved;

function clearResult() {
  find("result").replaceChildren();
  if (saved) URL.revokeObjectURL(saved);
  saved = undefined;
}

async function openTable(name, data) {
  const { answer } = await reader.call("open", name, data);
  const { v4, v6, columns, notes } = answer;
  find("table").textContent =
    `${answer.name}: ${many(v4.routes, "IPv4 route")} (${v4.engine}), ${many(v6.routes, "IPv6 route")} (${v6.engine})` +
    (columns.length ? `; columns ${columns.join(", ")}` : "");
  find("notes").replaceChildren(...notes.map((note) => element("li", note)));
  find("notes").hidden = notes.length === 0;
  find("answer").replaceChildren();
  clearResult();
}

async function lookUp() {
  const { answer } = await reader.call("lookup", find("address").value);
  const names = [...new Set([...answer.covering, ...answer.inside].flatMap((route) => route.values.map(([name]) => name)))];
  const row = (route) => {
    const values = new Map(route.values);
    return [route.prefix, ...names.map((name) => values.get(name) ?? "")];
  };
  const parts = [];
  if (answer.covering.length) parts.push(table(["prefix", ...names], answer.covering.map(row)));
  else parts.push(element("p", `No route covers ${answer.question}.`));
  if (answer.inside.length) {
    parts.push(element("p", `Routes inside ${answer.question}${answer.more ? ", the first 100" : ""}:`));
    parts.push(table(["prefix", ...names], answer.inside.map(row)));
  }
  find("answer").replaceChildren(...parts);
}

async function annotate(name, data) {
  clearResult();
  const columns = find("columns").value.split(",").map((column) => column.trim()).filter(Boolean);
  const { answer, rows } = await reader.call("annotate", JSON.stringify({ name, columns, add: [] }), data);
  const counts = `${many(answer.rows, "row")} (${answer.format}), ${many(answer.addresses, "address", "es")}: ` +
    `${answer.matched.toLocaleString("en")} matched, ${answer.unmatched.toLocaleString("en")} without a route, ` +
    `${answer.empty.toLocaleString("en")} empty, ${answer.unparsable.toLocaleString("en")} not an address.`;
  const head = new TextDecoder().decode(rows.subarray(0, 16 * 1024)).split("\n").slice(0, SHOWN);
  const suffix = answer.format === "jsonl" ? "jsonl" : answer.format === "list" ? "txt" : answer.format === "tsv" ? "tsv" : "csv";
  const file = `${name.replace(/\.(gz|bz2|xz|zst)$/, "").replace(/\.[^.]*$/, "")}-annotated.${suffix}`;
  const link = element("a", `Save all of it: ${file} (${many(rows.length, "byte")})`, { download: file });
  saved = URL.createObjectURL(new Blob([rows], { type: "text/plain" }));
  link.href = saved;
  find("result").replaceChildren(
    element("p", counts),
    element("p", `Columns with addresses: ${answer.columns.join(", ")}.`),
    ...answer.notes.map((note) => element("p", note, { class: "bad" })),
    element("pre", head.join("\n"), { tabindex: "0", "aria-label": "The first rows" }),
    element("p", link),
    ...answer.top.filter((top) => top.values.length).map((top) =>
      table([`${top.column}: ${many(top.distinct, "distinct value")}`, "addresses"],
        top.values.map(([value, count]) => [value, count.toLocaleString("en")]))),
  );
}

/** A file that is chosen or dropped. */
function takesFiles(part, input, take) {
  const given = (files) => files.length && working(files[0].name, async () => take(files[0].name, await contents(files[0])));
  input.addEventListener("change", () => given(input.files));
  for (const event of ["dragenter", "dragover"]) {
    part.addEventListener(event, (dragged) => { dragged.preventDefault(); part.classList.add("over"); });
  }
  part.addEventListener("dragleave", () => part.classList.remove("over"));
  part.addEventListener("drop", (dropped) => {
    dropped.preventDefault();
    part.classList.remove("over");
    given(dropped.dataTransfer.files);
  });
}

async function begin() {
  reader = await Reader.load();
  await openTable("special-purpose addresses.csv", new TextEncoder().encode(find("sample").textContent));
  await lookUp();
  takesFiles(find("table-part"), find("table-file"), openTable);
  takesFiles(find("rows-part"), find("rows-file"), annotate);
  // A file that misses both parts must not replace the page.
  for (const event of ["dragover", "drop"]) document.addEventListener(event, (dragged) => dragged.preventDefault());
  find("lookup").addEventListener("submit", (sent) => { sent.preventDefault(); working("Lookup", lookUp); });
  // Text that is typed after a file was chosen is what is meant.
  find("rows").addEventListener("input", () => { find("rows-file").value = ""; });
  find("annotate").addEventListener("submit", (sent) => {
    sent.preventDefault();
    const [file] = find("rows-file").files;
    working(file ? file.name : "Rows", async () =>
      file ? annotate(file.name, await contents(file)) : annotate("rows", new TextEncoder().encode(find("rows").value)));
  });
}

working("Loading the reader", begin);
