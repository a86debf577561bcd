// The values with most bytes among the flows of the last minutes.

import { get } from "./api.js";
import { ask, bytes, compact, count, grid, h, local, many, section, time } from "./dom.js";
import { withName } from "./names.js";
import { every } from "./pulse.js";

const MINUTES = [1, 5, 30];

/** What a value asks the looking glass: an AS, a prefix or an address, by the name of its column. */
export function questionOf(column, value) {
    if (/_(origin_as|as)$/.test(column)) return `AS${value}`;
    if (/_(prefix|next_hop)$/.test(column)) return value;
    return null;
}

/** The section; it is asked for again every ten seconds, and when something else is chosen. */
export function topFlows(signal) {
    // What went wrong is said beside the choice.
    const chosen = () => load().catch(() => {});
    const by = h("select", { "aria-label": "Flows by", onchange: chosen });
    const minutes = h("select", { "aria-label": "Time", onchange: chosen }, MINUTES.map((n) => new Option(`last ${many(n, "minute")}`, n)));
    minutes.value = "5";
    const note = h("p", { class: "dim" }, "Asking ...");
    const table = grid("Top flows", [
        { name: "Value" }, { name: "Bits/s", number: true }, { name: "Share", number: true },
        { name: "Packets/s", number: true }, { name: "Flows", number: true }]);
    let asked = 0;

    function offer({ columns, column }) {
        if (columns.length !== by.length || columns.some((name, i) => by.options[i].value !== name)) {
            by.replaceChildren(...columns.map((name) => new Option(name, name)));
        }
        by.value = column ?? "";
        by.hidden = minutes.hidden = columns.length === 0;
    }

    async function load() {
        const mine = ++asked;
        try {
            const answer = await get("v1/flows/top", { by: by.value, minutes: minutes.value }, signal);
            // What was chosen since has an answer of its own.
            if (mine !== asked) return;
            offer(answer);
            const seconds = (new Date(answer.until) - new Date(answer.from)) / 1000;
            table.element.hidden = answer.top.length === 0;
            table.update(answer.top.map((flow) => row(answer, flow, seconds)));
            const sums = [`${many(answer.flows, "flow")}, ${bytes(answer.bytes)} since `, time(answer.from)];
            note.replaceChildren(...(answer.column ? sums : ["No flows yet."]));
        } catch (problem) {
            if (signal.aborted || mine !== asked) return;
            note.textContent = problem.message;
            throw problem;
        }
    }

    table.element.hidden = true;
    every(10_000, signal, load, () => {});
    return section("Top flows", { class: "flows" }, h("p", null, by, " ", minutes), note, table.element);
}

/** The link to a value's answer; behind an AS, its name. */
function named(q, value) {
    if (q === value) return ask({ q }, q);
    const name = h("span", { class: "dim" });
    withName(value, (text) => (name.textContent = ` ${text}`));
    return [ask({ q }, q), name];
}

function row(answer, flow, seconds) {
    const { value } = flow;
    const q = value === null ? null : questionOf(answer.column, value);
    const rate = (n) => (seconds > 0 ? compact(n / seconds) : "");
    const missed = flow.missed_bytes ? `, and up to ${bytes(flow.missed_bytes)} more` : "";
    return {
        key: `${answer.column} ${value === null ? "" : `=${value}`}`,
        cells: [
            { text: value ?? "none", class: value === null ? "dim" : null, ...(q ? { node: () => named(q, value) } : {}) },
            { text: rate(flow.bytes * 8), title: `${bytes(flow.bytes)}${missed}, until ${local(new Date(answer.until))}` },
            answer.bytes ? `${((flow.bytes / answer.bytes) * 100).toFixed(1)} %` : "",
            rate(flow.packets), count(flow.flows),
        ],
    };
}
