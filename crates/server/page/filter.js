// Routes that have a community or an AS path, or are of a peer, in pages.

import { get } from "./api.js";
import { ask, count, h, many, say } from "./dom.js";
import { asPath, peerLink } from "./routes.js";

/** Routes of one page. */
const PAGE = 200;

/** What the routes that are asked for have: a community (64500:1, 64500:1:*) or an AS path (_64500_, ^64500, 64500$). */
export function filterOf(q) {
    if (/^((rt|soo):)?(\*|[\d.]+)(:(\*|\d+)){1,2}$/i.test(q)) return { community: q };
    if (/^[\^_]|[_$]$/.test(q)) return { path_regex: q };
    return null;
}

export async function filtered(question, filter, signal) {
    const what = filter.community ? "with the community" : "whose AS path matches";
    const list = await routeList({ ...filter, table: question.table }, `Routes ${what} ${question.q}`, signal);
    return {
        element: h("div", { class: "answer" }, h("h1", null, `Routes ${what} `, h("span", { class: "mono" }, question.q)), list.parts),
        summary: list.summary,
    };
}

/** The routes that a filter wants: the first page, and a button for the next ones. Of a peer, a column says which are best. */
export async function routeList(filter, caption, signal) {
    const isOfPeer = filter.peer !== undefined;
    const last = isOfPeer
        ? { name: "Best", cell: (found) => (found.best ? "best" : "") }
        : { name: "Peer", cell: (found) => peerLink(found.route.peer) };
    const rows = h("tbody");
    const said = h("p", { class: "dim" });
    const more = h("button", { type: "button", onclick: () => load() }, "Show more");
    let next = null;
    let shown = 0;
    let read = 0;

    const row = (found) => h("tr", null,
        h("td", { "data-name": "Prefix", class: "mono" }, ask({ q: found.route.prefix, table: found.table }, found.route.prefix)),
        h("td", { "data-name": "Table" }, found.table),
        h("td", { "data-name": "AS path" }, found.route.attributes.kind === "bgp" ? asPath(found.route.attributes.as_path) : ""),
        h("td", { "data-name": "Communities" }, found.route.attributes.communities ?? ""),
        h("td", { "data-name": last.name }, last.cell(found)));

    async function page() {
        const asked = { ...filter, limit: PAGE };
        const answer = await get("v1/filter", next ? { ...asked, after: next } : asked, signal);
        rows.append(...answer.routes.map(row));
        [shown, read, next] = [shown + answer.routes.length, read + answer.read, answer.next];
        said.textContent = `${many(shown, isOfPeer ? "route" : "best route")} of ${count(read)} read${next ? " so far" : ""}.`;
        more.hidden = !next;
        say(said.textContent);
    }

    async function load() {
        more.disabled = true;
        try {
            await page();
        } catch (problem) {
            if (!signal.aborted) said.textContent = problem.message;
        }
        more.disabled = false;
    }

    await page();
    const head = ["Prefix", "Table", "AS path", "Communities", last.name].map((name) => h("th", { scope: "col" }, name));
    const table = h("table", { "data-arrows": true },
        h("caption", { class: "unseen" }, caption), h("thead", null, h("tr", null, head)), rows);
    return { parts: [said, h("div", { class: "scroll" }, table), h("p", null, more)], summary: said.textContent };
}
