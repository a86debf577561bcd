// What a prefix was at a time, and its changes since the history began, if the server keeps a history in files.

import { get, segment } from "./api.js";
import { h, section, time } from "./dom.js";
import { onPulse } from "./pulse.js";
import { brief, peerLink } from "./routes.js";

/** The changes of an answer. */
const LIMIT = 100;

/** The section; it has nothing in it until the server has said that it keeps a history. */
export function past(prefix, table, signal) {
    const element = h("div");
    onPulse((answer) => {
        if (answer.history && !element.firstChild) element.append(parts(prefix, table, signal));
    }, signal);
    return element;
}

function parts(prefix, table, signal) {
    const found = h("div", { class: "then", role: "status" });
    const at = h("input", { type: "datetime-local", step: "1", "aria-label": "Date and time", onchange: look });
    const list = h("ol", { class: "changes", "data-arrows": true });
    const note = h("p", { class: "dim" });
    const more = h("button", { type: "button", onclick: older }, "List its changes");
    let next = null;
    let asked = 0;

    /** What it was at the time that is chosen, which is one of this browser's time zone. */
    async function look() {
        const mine = ++asked;
        const date = new Date(at.value);
        if (Number.isNaN(date.getTime())) return void found.replaceChildren();
        await said(found, async () => {
            const answer = await get(`v1/history/${segment(prefix)}`, { table, at: date.toISOString() }, signal);
            if (mine === asked) found.replaceChildren(...answer.tables.map((of) => state(of)), ...(answer.gaps ?? []).map(gap));
        });
    }

    async function older() {
        more.disabled = true;
        await said(note, async () => {
            const answer = await get(`v1/history/${segment(prefix)}`, { table, limit: LIMIT, after: next }, signal);
            list.append(...(answer.changes ?? []).map((change) => line(change, table)), ...(answer.gaps ?? []).map((of) => h("li", null, gap(of))));
            note.textContent = list.firstChild ? "" : "The history has no change of it.";
            next = answer.next ?? null;
            more.textContent = "Show more";
            more.hidden = next === null;
        });
        more.disabled = false;
    }

    async function said(place, work) {
        try {
            await work();
        } catch (problem) {
            if (!signal.aborted) place.replaceChildren(h("p", { class: "problem" }, problem.message));
        }
    }

    return section("At a time", { class: "past" }, h("p", null, at), found, list, note, more);
}

/** Between two times, or since the first one. */
function span({ since, until, or_before: before }) {
    return h("span", { class: "dim" }, since ? [" since ", time(since), before ? " or before" : null] : null, until ? [" until ", time(until)] : null);
}

/** What it was in a table. */
function state(of) {
    if (!of.match) return h("p", null, h("b", null, of.table), " no route", span(of));
    const from = of.match.peer ? h("span", { class: "dim" }, " from ", peerLink(of.match.peer)) : null;
    return h("p", null, h("b", null, of.table), " ", brief(of.match.attributes), from, span(of.match));
}

function gap(of) {
    return h("p", { class: "why" }, "Changes are missing from ", time(of.from), " to ", time(of.until), `: ${of.why}.`);
}

function line(change, table) {
    return h("li", null,
        time(change.time),
        h("span", { class: "dim" }, table ? null : `${change.table} `),
        h("span", null, brief(change.attributes)),
        change.peer ? h("span", { class: "dim" }, " from ", peerLink(change.peer)) : null);
}
