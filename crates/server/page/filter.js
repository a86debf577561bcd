// Routes that have a community or an AS path, in pages.

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
    const rows = h("tbody");
    const said = h("p", { class: "dim" });
    const more = h("button", { type: "button", onclick: () => load() }, "Show more");
    let next = null;
    let shown = 0;
    let read = 0;

    const row = ({ table, route }) => h("tr", null,
        h("td", { "data-name": "Prefix", class: "mono" }, ask({ q: route.prefix, table }, route.prefix)),
        h("td", { "data-name": "Table" }, table),
        h("td", { "data-name": "AS path" }, asPath(route.attributes.as_path)),
        h("td", { "data-name": "Communities" }, route.attributes.communities ?? ""),
        h("td", { "data-name": "Peer" }, peerLink(route.peer)));

    async function page() {
        const asked = { ...filter, table: question.table, limit: PAGE };
        const answer = await get("v1/filter", next ? { ...asked, after: next } : asked, signal);
        rows.append(...answer.routes.map(row));
        [shown, read, next] = [shown + answer.routes.length, read + answer.read, answer.next];
        said.textContent = `${many(shown, "best route")} of ${count(read)} read${next ? " so far" : ""}.`;
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
    const head = ["Prefix", "Table", "AS path", "Communities", "Peer"].map((name) => h("th", { scope: "col" }, name));
    const what = filter.community ? "with the community" : "whose AS path matches";
    return {
        element: h("div", { class: "answer" },
            h("h1", null, `Routes ${what} `, h("span", { class: "mono" }, question.q)),
            said,
            h("div", { class: "scroll" }, h("table", { "data-arrows": true },
                h("caption", { class: "unseen" }, `Routes ${what} ${question.q}`), h("thead", null, h("tr", null, head)), rows)),
            h("p", null, more)),
        summary: said.textContent,
    };
}
