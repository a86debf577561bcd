// Elements, and how numbers and times are written. Text only ever becomes text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
}

/** An HTML element; attributes named on... are listeners. */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

const counts = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 1,150,000 */
export const count = (n) => (typeof n === "number" ? counts.format(n) : "");

/** 1.2M */
export const compact = (n) => short.format(n);

/** One route, 2 routes */
export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

/** 36.4 MiB */
export function bytes(n) {
    if (typeof n !== "number") return "";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (n >= 1024 && unit < units.length - 1) [n, unit] = [n / 1024, unit + 1];
    return `${n.toFixed(unit === 0 || n >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** 3 s, 5 min, 2 h, 4 d: how long ago something was. */
export function age(milliseconds) {
    const seconds = Math.max(0, Math.round(milliseconds / 1000));
    if (seconds < 100) return `${seconds} s`;
    if (seconds < 100 * 60) return `${Math.round(seconds / 60)} min`;
    if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
    return `${Math.round(seconds / 86400)} d`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

/** Local time; with the date unless that is today. */
export function local(date) {
    return day.format(date) === day.format(new Date()) ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** 2026-11-22 15:20:31.123 UTC */
export const utc = (date) => `${date.toISOString().replace("T", " ").replace("Z", "")} UTC`;

/** A time of the server: local, with UTC in the tooltip. */
export function time(text) {
    const date = new Date(text);
    if (Number.isNaN(date.getTime())) return String(text ?? "");
    return h("time", { datetime: text, title: utc(date) }, local(date));
}

/** A link to a question that this page answers. */
export const ask = (question, text, attributes) => h("a", { href: link(question), ...attributes }, text);

/** The address of a question: q, table and prefix, as far as they are there. */
export function link(question) {
    const query = new URLSearchParams();
    for (const name of ["q", "table", "prefix"]) if (question[name]) query.set(name, question[name]);
    const text = query.toString();
    return text ? `?${text}` : "./";
}

/**
 * A table whose rows are kept while their values change, so that focus and selection stay where they are.
 * Columns: { name, number?, wide? }. Rows: { key, cells: [text | { text, title, class, node }] }; `node` makes an element.
 */
export function grid(caption, columns) {
    const body = h("tbody");
    const head = h("thead", null, h("tr", null, columns.map((c) => h("th", { scope: "col", class: c.number && "number" }, c.name))));
    const element = h("div", { class: "scroll" }, h("table", { "data-arrows": true }, h("caption", { class: "unseen" }, caption), head, body));
    const known = new Map();

    function update(rows) {
        const keys = new Set(rows.map((row) => row.key));
        for (const [key, row] of known) if (!keys.has(key)) row.element.remove(), known.delete(key);
        rows.forEach((row, place) => {
            let old = known.get(row.key);
            if (!old) {
                const cells = columns.map((c) => h("td", { "data-name": c.name, class: c.number && "number" }));
                old = { element: h("tr", null, cells), cells, shown: [] };
                known.set(row.key, old);
            }
            if (row.class !== undefined) old.element.className = row.class;
            row.cells.forEach((value, i) => {
                const cell = typeof value === "object" && value !== null ? value : { text: value ?? "" };
                const shown = `${cell.text}\n${cell.title ?? ""}\n${cell.class ?? ""}`;
                if (old.shown[i] === shown) return;
                old.shown[i] = shown;
                const content = cell.node ? cell.node() : String(cell.text);
                old.cells[i].replaceChildren();
                fill(old.cells[i], null, [cell.class ? h("span", { class: cell.class }, content) : content]);
                old.cells[i].classList.toggle("empty", cell.text === "");
                if (cell.title) old.cells[i].title = cell.title;
                else old.cells[i].removeAttribute("title");
            });
            if (body.children[place] !== old.element) body.insertBefore(old.element, body.children[place] ?? null);
        });
    }

    return { element, update };
}

/** A section with a heading. */
export const section = (title, attributes, ...children) => h("section", attributes, h("h2", null, title), ...children);

/** Says a sentence to those who listen instead of look. */
export function say(sentence) {
    byId("said").textContent = sentence;
}
