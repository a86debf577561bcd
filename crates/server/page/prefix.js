// One prefix: each peer's path in each table, why the best one is best, and what changed, while it changes.

import { follow, get, pause, segment } from "./api.js";
import { ask, h, many, section, time } from "./dom.js";
import { past } from "./past.js";
import { onPulse, changesIn } from "./pulse.js";
import { brief, pathTable, peerLink, size } from "./routes.js";

const SHOWN = 100;

/**
 * Recent changes, the newest first, and each further one as it comes. `on` is called after a change that came live;
 * changes that `keep` does not want are passed over.
 */
export function changes(query, signal, on = () => {}, keep = () => true) {
    const state = h("span", { class: "live", role: "status" });
    const list = h("ol", { class: "changes", "data-arrows": true });
    const note = h("p", { class: "dim" }, "Asking ...");
    const known = new Map();
    const fresh = new Set();
    let first = true;
    let due = false;

    const set = (text, live) => {
        if (state.textContent !== text) state.textContent = text;
        state.classList.toggle("on", live);
    };

    /** Changes may come faster than a screen shows them: one picture has all that came since the last. */
    function soon() {
        if (due) return;
        due = true;
        setTimeout(() => ((due = false), draw(), fresh.clear()), 100);
    }

    function draw() {
        const all = [...known.values()].sort((a, b) => b.id - a.id);
        all.splice(SHOWN);
        refill(list, all.map((change) => h("li", { class: fresh.has(change.id) ? "fresh" : null },
            time(change.time),
            h("span", { class: "dim" }, query.table ? null : `${change.table} `),
            query.prefix === change.prefix ? null : [ask({ q: change.prefix, table: query.table }, change.prefix, { class: "mono" }), " "],
            h("span", null, brief(change.attributes)),
            change.peer ? h("span", { class: "dim" }, " from ", peerLink(change.peer)) : null)));
        note.hidden = all.length > 0;
        note.textContent = "No change since the server started, as far as it remembers.";
    }

    function trim() {
        if (known.size > 4 * SHOWN) for (const id of [...known.keys()].sort((a, b) => a - b).slice(0, -SHOWN)) known.delete(id);
    }

    async function history() {
        try {
            const answer = await get("v1/history", { ...query, limit: SHOWN }, signal);
            for (const change of answer.changes.filter(keep)) {
                if (!known.has(change.id) && !first) fresh.add(change.id);
                known.set(change.id, change);
            }
            first = false;
            soon();
        } catch (problem) {
            if (signal.aborted) return;
            note.hidden = false;
            note.textContent = problem.message;
        }
    }

    follow(query, signal, {
        // The stream is open before the past is asked for, so nothing falls between the two.
        open: () => (set("live", true), history()),
        change: (change) => {
            if (!keep(change)) return;
            known.set(change.id, change);
            fresh.add(change.id);
            trim();
            soon();
            on();
        },
        lost: () => (set("live; some changes came too fast to be shown", true), history(), on()),
        broken: (problem) => set(`not live: ${problem.message} Trying again.`, false),
    });
    return section("Recent changes", { class: "recent" }, state, note, list);
}

/** What is known of a prefix, in one table or in all. The element changes while the tables do. */
export function detail(prefix, table, signal) {
    const body = h("div", { class: "tables" }, h("p", { class: "waiting" }, `Asking for ${prefix} ...`));
    let shown = "";

    async function load() {
        try {
            const answer = await get(`v1/routes/${segment(prefix)}`, { view: "exact", table }, signal);
            const text = JSON.stringify(answer.tables);
            if (text === shown) return;
            shown = text;
            refill(body, paths(answer, table));
        } catch (problem) {
            if (signal.aborted || problem.lost) return; // The page's own sentence says that the server is gone.
            shown = "";
            body.replaceChildren(h("p", { class: "problem" }, problem.message));
        }
    }

    const reload = throttled(load, signal);
    refreshed(table, signal, reload);
    reload();
    return h("article", { class: "detail", "aria-label": `Prefix ${prefix}` },
        h("h2", { class: "mono" }, prefix, h("span", { class: "dim" }, size(prefix))),
        body,
        changes({ prefix, view: "exact", table }, signal, reload),
        past(prefix, table, signal));
}

function paths(answer, table) {
    const tables = answer.tables.filter((t) => t.routes.length > 0);
    if (tables.length === 0) {
        const where = table ? `The table ${table} has` : "No table has";
        return [h("p", null, table ? `${where} no route for exactly ${answer.prefix}.` : `${where} a route for exactly ${answer.prefix}.`)];
    }
    return tables.flatMap((t) => t.routes.map((route) => h("section", null,
        h("h3", null, t.table, h("span", { class: "dim" }, many(route.paths.length, "path"))),
        pathTable(route),
        route.why ? h("p", { class: "why" }, route.why) : null)));
}

/** Runs `work` now, but with a rest after it, however often it is asked for; the last request is never dropped. */
export function throttled(work, signal, rest = 1000) {
    let busy = false;
    let again = false;
    return async function run() {
        if (busy) return void (again = true);
        busy = true;
        do {
            again = false;
            await work();
            await pause(rest, signal);
        } while (again && !signal.aborted);
        busy = false;
    };
}

/** Calls `reload` when the tables have counted changes, and every ten seconds all the same. */
export function refreshed(table, signal, reload) {
    let seen = null;
    let when = Date.now();
    onPulse((answer, restarted, back) => {
        const now = changesIn(answer, table);
        if (seen !== null && (now !== seen || back || Date.now() - when > 10_000)) {
            when = Date.now();
            reload();
        }
        seen = now;
    }, signal);
}

/** New content in place of the old; the focus stays on the link that has it. */
export function refill(element, children) {
    const focus = element.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    element.replaceChildren(...children.flat(Infinity).filter(Boolean));
    if (focus !== null) [...element.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focus)?.focus({ preventScroll: true });
}
