// IPv4 on a Hilbert curve: 256 x 256 cells of a /16 each; addresses that are near each other lie near each other.

import { getBytes, pause, visible } from "./api.js";
import { h, link, section } from "./dom.js";

const SIDE = 256;

/** Where the cell of a number lies. The first cell is at the top left, the last at the top right. */
export function place(number) {
    let [x, y] = [0, 0];
    for (let s = 1, rest = number; s < SIDE; s *= 2, rest >>= 2) {
        const right = 1 & (rest >> 1);
        const down = 1 & (rest ^ right);
        [x, y] = turn(s, x, y, right, down);
        x += s * right;
        y += s * down;
    }
    return [x, y];
}

/** The number of the cell at a place. */
export function number(x, y) {
    let found = 0;
    for (let s = SIDE / 2; s >= 1; s /= 2) {
        const right = x & s ? 1 : 0;
        const down = y & s ? 1 : 0;
        found += s * s * ((3 * right) ^ down);
        [x, y] = turn(SIDE, x, y, right, down);
    }
    return found;
}

function turn(side, x, y, right, down) {
    if (down) return [x, y];
    return right ? [side - 1 - y, side - 1 - x] : [y, x];
}

const slash16 = (cell) => `${cell >> 8}.${cell & 255}.0.0/16`;
const slash8 = (cell) => `${cell >> 8}.0.0.0/8`;

/** The first and last cell of an address or prefix. */
function cells(text) {
    const [address, length = "32"] = text.split("/");
    const [a, b] = address.split(".").map(Number);
    const first = (a << 8) | b;
    const many = length < 16 ? 2 ** (16 - length) : 1;
    return [first, first + many - 1];
}

/** The square or pair of squares that a range of cells fills. */
function outline([first, last]) {
    let [left, top, right, bottom] = [SIDE, SIDE, 0, 0];
    for (let cell = first; cell <= last; cell++) {
        const [x, y] = place(cell);
        [left, top] = [Math.min(left, x), Math.min(top, y)];
        [right, bottom] = [Math.max(right, x + 1), Math.max(bottom, y + 1)];
    }
    return [left, top, right - left, bottom - top];
}

/** The map of a table. `mark`: an IPv4 address or prefix to be found on it. */
export function hilbert({ table, mark }, signal) {
    const canvas = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": "map", "aria-label": `Map of IPv4${table ? ` in ${table}` : ""}`, "aria-describedby": "map-help" });
    const out = h("output", { class: "readout" }, " ");
    const help = h("p", { class: "dim", id: "map-help" },
        "A cell is a /16, a square of the grid a /8. The stronger its colour, the more of it has a route other than the default one. Arrow keys move, with Shift by a /8; Enter or a click asks.");
    let shares = null;
    let cursor = mark ? cells(mark)[0] : 0;
    let pointed = false;

    function draw() {
        const width = Math.round(canvas.clientWidth * devicePixelRatio);
        if (!width) return;
        const scale = Math.max(1, Math.ceil(width / SIDE));
        canvas.width = canvas.height = SIDE * scale;
        const context = canvas.getContext("2d");
        // Colours are the style sheet's: it says them as properties that a script can read.
        const style = getComputedStyle(canvas);
        const [none, all, line, sign] = [style.backgroundColor, style.color, style.outlineColor, style.caretColor];
        context.fillStyle = none;
        context.fillRect(0, 0, canvas.width, canvas.height);
        if (shares) {
            context.fillStyle = all;
            for (let cell = 0; cell < shares.length; cell++) {
                if (!shares[cell]) continue;
                const [x, y] = place(cell);
                // A single /24 of a /16 is to be seen, too.
                context.globalAlpha = 0.3 + 0.7 * (shares[cell] / 255);
                context.fillRect(x * scale, y * scale, scale, scale);
            }
            context.globalAlpha = 1;
        }
        grid(context, scale, line, none);
        if (mark) sighted(context, scale, sign);
        if (pointed) {
            const [x, y] = place(cursor);
            context.strokeStyle = sign;
            context.lineWidth = Math.max(2, scale / 2);
            context.strokeRect(x * scale - 1, y * scale - 1, scale + 2, scale + 2);
        }
    }

    function grid(context, scale, line, none) {
        context.strokeStyle = line;
        context.lineWidth = 1;
        context.font = `${Math.max(8, 4.2 * scale)}px system-ui, sans-serif`;
        context.textBaseline = "top";
        context.beginPath();
        for (let i = 16; i < SIDE; i += 16) {
            context.moveTo(i * scale + 0.5, 0);
            context.lineTo(i * scale + 0.5, canvas.height);
            context.moveTo(0, i * scale + 0.5);
            context.lineTo(canvas.width, i * scale + 0.5);
        }
        context.stroke();
        for (let octet = 0; octet < 256; octet++) {
            const [x, y] = outline([octet << 8, (octet << 8) | 255]);
            context.fillStyle = filled(octet) > 0.4 ? none : line;
            context.fillText(octet, (x + 1) * scale, (y + 1) * scale);
        }
    }

    /** How much of a /8 is painted. */
    const filled = (octet) => (shares ? shares.subarray(octet << 8, (octet + 1) << 8).reduce((sum, share) => sum + share, 0) / 255 / 256 : 0);

    function sighted(context, scale, sign) {
        const [x, y, width, height] = outline(cells(mark)).map((n) => n * scale);
        context.strokeStyle = sign;
        context.lineWidth = Math.max(2, scale * 0.75);
        context.strokeRect(x - 1, y - 1, width + 2, height + 2);
        const [cx, cy, ring] = [x + width / 2, y + height / 2, Math.max(width, height) / 2 + 5 * scale];
        if (width > 16 * scale) return;
        context.beginPath();
        context.arc(cx, cy, ring, 0, 2 * Math.PI);
        for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
            context.moveTo(cx + dx * ring, cy + dy * ring);
            context.lineTo(cx + dx * (ring + 4 * scale), cy + dy * (ring + 4 * scale));
        }
        context.stroke();
    }

    function read() {
        const share = shares ? `${Math.round((shares[cursor] / 255) * 100)} % of it routed` : "not known yet";
        out.textContent = `${slash16(cursor)} in ${slash8(cursor)}: ${share}`;
    }

    function point(cell) {
        cursor = cell;
        pointed = true;
        read();
        draw();
    }

    const under = (event) => {
        const box = canvas.getBoundingClientRect();
        const at = (offset, size) => Math.min(SIDE - 1, Math.max(0, Math.floor((offset / size) * SIDE)));
        return number(at(event.clientX - box.left, box.width), at(event.clientY - box.top, box.height));
    };
    const leave = () => {
        pointed = false;
        out.textContent = mark ? `${mark} is marked.` : " ";
        draw();
    };
    const question = h("a", { hidden: true });
    const go = () => {
        question.setAttribute("href", link({ q: slash16(cursor), table }));
        question.click();
    };
    canvas.addEventListener("pointermove", (event) => point(under(event)));
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && point(cursor));
    canvas.addEventListener("blur", leave);
    canvas.addEventListener("click", (event) => (point(under(event)), go()));
    canvas.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (event.key === "Enter") go();
        if (!step) return;
        event.preventDefault();
        const far = event.shiftKey ? 16 : 1;
        const [x, y] = place(cursor).map((n, i) => Math.min(SIDE - 1, Math.max(0, n + far * step[i])));
        point(number(x, y));
    });

    async function load() {
        while (!signal.aborted) {
            try {
                const got = await getBytes("v1/hilbert", { table }, signal);
                if (got.length !== SIDE * SIDE) throw new Error(`The server's map has ${got.length} cells instead of ${SIDE * SIDE}.`);
                shares = got;
                canvas.dataset.ready = "true";
                leave();
            } catch (problem) {
                if (signal.aborted) return;
                if (!problem.lost) out.textContent = problem.message;
            }
            await pause(shares ? 60_000 : 3000, signal);
            await visible();
        }
    }
    load();
    const resized = new ResizeObserver(draw);
    resized.observe(canvas);
    addEventListener("theme", draw, { signal });
    signal.addEventListener("abort", () => resized.disconnect());
    return section("Map of IPv4", { class: "map" }, canvas, out, question, help);
}
