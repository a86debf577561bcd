// Two charts as SVG: changes a second, and how many prefixes of each length there are.

import { compact, count, h, many, svg } from "./dom.js";

/** A number at or above n with one leading digit of 1, 2 or 5. */
function ceiling(n) {
    const power = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
    return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= n);
}

/** Changes a second over the last minutes. `add` takes a rate and when it was; a pause is a gap. */
export function rateChart(seconds) {
    const height = 130;
    const [left, top, bottom] = [44, 8, 18];
    const element = svg("svg", { class: "chart", height, role: "img" });
    const points = [];
    let width = 600;
    let drawn = Date.now();

    function draw(now) {
        drawn = now;
        const most = ceiling(Math.max(10, ...points.map((p) => p.rate)));
        const x = (time) => left + (width - left) * (1 - (now - time) / 1000 / seconds);
        const y = (rate) => height - bottom - (height - top - bottom) * (rate / most);
        const parts = [];
        for (const share of [0, 0.5, 1]) {
            parts.push(svg("line", { class: "rule", x1: left, x2: width, y1: y(share * most), y2: y(share * most) }),
                svg("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, compact(share * most)));
        }
        parts.push(svg("text", { x: left, y: height - 3 }, `${seconds / 60} min ago`), svg("text", { x: width, y: height - 3, "text-anchor": "end" }, "now"));
        for (const run of runs(points)) {
            const line = run.map((p) => `${x(p.time).toFixed(1)},${y(p.rate).toFixed(1)}`);
            parts.push(svg("polygon", { class: "area", points: [`${x(run[0].time)},${y(0)}`, ...line, `${x(run.at(-1).time)},${y(0)}`].join(" ") }),
                svg("polyline", { class: "line", points: line.join(" ") }));
        }
        element.replaceChildren(...parts);
        const last = points.at(-1);
        element.setAttribute("aria-label", last ? `${count(Math.round(last.rate))} changes a second now, at most ${count(Math.round(Math.max(...points.map((p) => p.rate))))} since this page was opened` : "No rate is known yet");
    }

    draw(drawn);
    widths(element, (is) => ((width = is), draw(drawn)));
    return {
        element,
        add(rate, time) {
            points.push({ rate, time, after: points.at(-1)?.time ?? 0 });
            while (points.length && points[0].time < time - seconds * 1000) points.shift();
            draw(time);
        },
    };
}

/** Tells a chart its width in pixels, whenever that changes: text keeps its size. */
function widths(element, changed) {
    new ResizeObserver(([entry]) => {
        const width = Math.round(entry.contentRect.width);
        element.setAttribute("viewBox", `0 0 ${width} ${element.getAttribute("height")}`);
        if (width) changed(width);
    }).observe(element);
}

/** Points without a pause between them. */
function runs(points) {
    const out = [];
    for (const point of points) {
        if (out.length && point.time - point.after < 7000) out.at(-1).push(point);
        else out.push([point]);
    }
    return out;
}

/** How many prefixes there are of each length. Arrow keys and the pointer tell the numbers. */
export function histogram(name) {
    const height = 170;
    const [left, top, bottom] = [44, 8, 18];
    let width = 600;
    const out = h("output", { class: "readout" }, " ");
    const element = svg("svg", { class: "chart", height, tabindex: 0, role: "group", "aria-label": `Prefix lengths of ${name}` });
    let numbers = [];
    let chosen = null;
    const total = () => numbers.reduce((sum, n) => sum + n, 0);

    function draw() {
        const high = Math.max(1, ...numbers);
        const powers = Math.max(1, Math.ceil(Math.log10(high + 1)));
        const step = (width - left) / Math.max(1, numbers.length);
        // Lengths differ by factors of a hundred thousand, so heights are logarithms; one route is to be seen, too.
        const y = (n) => height - bottom - (height - top - bottom) * (n < 1 ? 0 : (Math.log10(n) + 0.3) / (powers + 0.3));
        const parts = [];
        for (let power = 0; power <= powers; power++) {
            parts.push(svg("line", { class: "rule", x1: left, x2: width, y1: y(10 ** power), y2: y(10 ** power) }),
                svg("text", { x: left - 6, y: y(10 ** power) + 4, "text-anchor": "end" }, compact(10 ** power)));
        }
        numbers.forEach((n, length) => {
            const x = left + length * step;
            if (n) parts.push(svg("rect", { class: length === chosen ? "bar chosen" : "bar", x: x + step * 0.1, width: step * 0.8, y: y(n), height: height - bottom - y(n) }));
            if (length % (numbers.length > 40 ? 16 : 4) === 0) parts.push(svg("text", { x: length === numbers.length - 1 ? width : x + step / 2, y: height - 3, "text-anchor": length === numbers.length - 1 ? "end" : "middle" }, `/${length}`));
        });
        element.replaceChildren(...parts);
    }

    function choose(length) {
        chosen = length;
        const n = numbers[length];
        out.textContent = length === null || n === undefined ? summary() : `/${length}: ${many(n, "route")}, ${((100 * n) / (total() || 1)).toFixed(2)} %`;
        draw();
    }
    widths(element, (is) => ((width = is), draw()));
    const summary = () => `${many(total(), "route")}; heights are logarithms`;

    element.addEventListener("pointermove", (event) => {
        const box = element.getBoundingClientRect();
        const x = event.clientX - box.left - left;
        const length = Math.floor((x / (width - left)) * numbers.length);
        choose(length >= 0 && length < numbers.length ? length : null);
    });
    element.addEventListener("pointerleave", () => choose(null));
    element.addEventListener("blur", () => choose(null));
    element.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step || !numbers.length) return;
        event.preventDefault();
        const from = chosen ?? numbers.indexOf(Math.max(...numbers)) - step;
        choose(Math.min(numbers.length - 1, Math.max(0, from + step)));
    });
    return {
        element: h("figure", null, h("figcaption", null, name), element, out),
        set(next) {
            numbers = next;
            choose(chosen);
        },
    };
}
