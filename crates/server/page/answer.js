// What a question means, and its answer: an address, a prefix, an AS, a peer, a community or an AS path.

import { get, segment } from "./api.js";
import { ask, count, h, many, section, svg, time } from "./dom.js";
import { filtered, filterOf, routeList } from "./filter.js";
import { hilbert } from "./hilbert.js";
import { changes, detail, refill, refreshed, throttled } from "./prefix.js";
import { withName } from "./names.js";
import { brief, isV6, lengthOf, peerLink, size } from "./routes.js";
import { peerGrid } from "./overview.js";

/** More specific prefixes that are shown, and prefixes of an AS or peers that are asked for. */
const MORE = 100;
const MOST = 1000;

export async function answer(question, signal) {
    const filter = filterOf(question.q);
    if (filter) return filtered(question, filter, signal);
    const meaning = await search(question, 1, signal);
    switch (meaning.is) {
        case "address": return chains(question, signal, addressChains);
        case "prefix": return chains({ ...question, asked: meaning.prefix ?? question.q }, signal, prefixChains);
        case "as": return system(question, meaning, signal);
        case "peer": return peers(question, meaning, signal);
        case "nothing": return plain(`"${question.q}" is no address, no prefix, no AS number, no community (64500:1), no AS path (_64500_) and no part of the name of a peer.`);
        default: return plain(`This page does not know what "${meaning.is}" is: it is older than the server.`);
    }
}

/** The meaning of a question, with as many pages of an AS's prefixes. */
async function search({ q, table }, pages, signal) {
    const asked = { q, table, limit: MOST };
    const meaning = await get("v1/search", asked, signal);
    for (let page = 1; page < pages && meaning.next; page++) {
        const more = await get("v1/search", { ...asked, after: meaning.next }, signal);
        for (const origins of more.origins ?? []) {
            const known = meaning.origins.find((t) => t.table === origins.table);
            known ? known.prefixes.push(...origins.prefixes) : meaning.origins.push(origins);
        }
        meaning.next = more.next;
    }
    return meaning;
}

const plain = (sentence) => ({ element: h("p", { class: "problem" }, sentence), summary: sentence });

// ---- addresses and prefixes ---------------------------------------------------------------------

/** { asked, tables: [{ table, routes: [{ prefix, peer, attributes }], longest first }] } of an address. */
async function addressChains(question, signal) {
    const answer = await get(`v1/lookup/${segment(question.q)}`, { table: question.table }, signal);
    return { asked: answer.address, tables: answer.tables.map((t) => ({ table: t.table, routes: t.covering })) };
}

/** The same of a prefix: it and what covers it, with its best paths. */
async function prefixChains(question, signal) {
    const answer = await get(`v1/routes/${segment(question.asked)}`, { view: "covering", table: question.table }, signal);
    const best = (route) => {
        const path = route.paths.find((p) => p.best) ?? route.paths[0];
        return { prefix: route.prefix, peer: path?.peer, attributes: path?.attributes };
    };
    const tables = answer.tables.map((t) => ({
        table: t.table,
        routes: t.routes.map(best).sort((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix)),
    }));
    return { asked: answer.prefix, exact: true, tables };
}

async function chains(question, signal, load) {
    let found = await load(question, signal);
    const asked = found.asked;
    const list = h("div", { class: "chains" });
    const side = h("div", { class: "side" });
    let chosen = null;
    let inner = null;
    let shown = "";

    function draw() {
        const text = JSON.stringify(found.tables) + chosen;
        if (text === shown) return;
        shown = text;
        const [some, none] = [found.tables.filter((t) => t.routes.length), found.tables.filter((t) => !t.routes.length)];
        refill(list, [some.map((t) => chain(t, found, question, chosen)),
            none.length ? h("p", { class: "dim" }, `No route covers ${asked} in ${none.map((t) => t.table).join(", ")}.`) : null,
            found.tables.length ? null : h("p", null, "No table has routes.")]);
    }

    function choose(next) {
        const longest = found.tables.flatMap((t) => t.routes.slice(0, 1)).sort((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix))[0];
        const prefix = next.prefix || (found.exact ? asked : longest?.prefix) || null;
        if (prefix !== chosen) {
            chosen = prefix;
            inner?.abort();
            inner = new AbortController();
            side.replaceChildren(...(prefix ? [detail(prefix, question.table, AbortSignal.any([signal, inner.signal]))] : []));
        }
        draw();
    }

    const reload = throttled(async () => {
        try {
            found = await load(question, signal);
            // A match that changed is shown with its new route, unless another prefix was asked for.
            choose(view.question);
        } catch {
            // The page's own sentence says that the server is gone; what is shown stays.
        }
    }, signal);
    refreshed(question.table, signal, reload);

    const matches = found.tables.filter((t) => t.routes.length > 0);
    const view = {
        question,
        element: h("div", { class: "answer" },
            h("h1", { class: "mono" }, asked),
            h("div", { class: "columns" },
                h("div", null, list, found.exact ? covered(asked, question, signal) : null),
                side,
                isV6(asked) ? null : hilbert({ table: question.table || (matches[0] ?? found.tables[0])?.table, mark: asked }, signal))),
        summary: matches.length ? `${asked}: ${matches.map((t) => `${t.routes[0].prefix} in ${t.table}`).join(", ")}` : `${asked}: no table has a route for it`,
        choose(next) {
            view.question = next;
            choose(next);
        },
    };
    choose(question);
    return view;
}

/** The routes of one table that cover what was asked, the longest first. */
function chain(table, found, question, chosen) {
    const title = h("h2", null, table.table, h("span", { class: "dim" }, found.exact ? null : many(table.routes.length, "covering route")));
    const items = table.routes.map((route, place) => {
        const exact = found.exact && route.prefix === found.asked;
        const used = found.exact ? exact : place === 0;
        const href = { q: question.q, table: question.table, prefix: route.prefix };
        return h("li", { class: used ? "used" : null },
            h("div", null,
                ask(href, route.prefix, { class: "mono", "aria-current": route.prefix === chosen ? "true" : null }),
                used ? h("b", { class: "tag" }, found.exact ? "asked for" : "longest match") : null,
                h("span", { class: "dim" }, lengthOf(route.prefix) === 0 ? "the default route" : size(route.prefix))),
            bits(route.prefix),
            h("div", { class: "what" }, brief(route.attributes), route.peer ? h("span", { class: "dim" }, " from ", peerLink(route.peer)) : null));
    });
    return h("section", { class: "chain" }, title, h("ol", { "data-arrows": true }, items),
        table.routes.length > 1 ? h("p", { class: "dim" }, "Each route would be used if those above it were gone.") : null);
}

/** How much of an address a prefix fixes, as a bar. */
function bits(prefix) {
    const all = isV6(prefix) ? 128 : 32;
    const length = lengthOf(prefix);
    return svg("svg", { class: "bits", viewBox: `0 0 ${all} 1`, preserveAspectRatio: "none", role: "img", "aria-label": `${length} of ${all} bits are fixed` },
        svg("title", null, `${length} of ${all} bits are fixed`),
        svg("rect", { width: all, height: 1, class: "free" }), svg("rect", { width: length, height: 1, class: "fixed" }));
}

/** The more specific routes of a prefix. */
function covered(prefix, question, signal) {
    const body = h("div", null, h("p", { class: "waiting" }, "Asking ..."));
    get(`v1/routes/${segment(prefix)}`, { view: "covered", table: question.table, limit: MORE }, signal).then((answer) => {
        const tables = answer.tables.map((t) => ({ ...t, routes: t.routes.filter((r) => r.prefix !== prefix) })).filter((t) => t.routes.length);
        body.replaceChildren(...(tables.length ? tables.map((t) => h("div", null,
            h("h3", null, t.table, h("span", { class: "dim" }, t.truncated ? `the first ${count(t.routes.length)}` : count(t.routes.length))),
            prefixList(t.routes.map((r) => r.prefix), t.table))) : [h("p", null, "None.")]));
    }).catch((problem) => {
        if (!signal.aborted) body.replaceChildren(h("p", { class: "problem" }, problem.message));
    });
    return section("More specific routes", null, body);
}

const prefixList = (prefixes, table) =>
    h("ul", { class: "prefixes mono", "data-arrows": true }, prefixes.map((p) => h("li", null, ask({ q: p, table }, p))));

// ---- AS and peers -------------------------------------------------------------------------------

function system(question, meaning, signal) {
    const name = `AS${meaning.asn}`;
    const none = `No table has a best route that begins at ${name}.`;
    const body = h("div");
    const title = h("h1", null, name);
    withName(meaning.asn, (text) => title.append(" ", h("span", { class: "dim" }, text)));
    let pages = 1;

    function draw() {
        const tables = meaning.origins ?? [];
        const parts = tables.map((t) => section(t.table, null, [["IPv4", "ipv4", (p) => !isV6(p)], ["IPv6", "ipv6", isV6]].map(([family, key, is]) => {
            const prefixes = t.prefixes.filter(is);
            const all = t.routes[key];
            if (!all) return null;
            const shown = prefixes.length < all ? `, the first ${count(prefixes.length)} of them` : "";
            return [h("h3", null, family, h("span", { class: "dim" }, many(all, "prefix", "prefixes"), shown)), prefixList(prefixes, t.table)];
        })));
        if (meaning.next) parts.push(h("p", null, h("button", { type: "button", onclick: () => (pages++, reload()) }, "Show more")));
        refill(body, [h("p", { class: "dim" }, `Prefixes whose best route begins at ${name}, as of `, time(new Date().toISOString()), "."),
            ...(parts.length ? parts : [h("p", null, none)])]);
        return tables.reduce((sum, t) => sum + t.routes.ipv4 + t.routes.ipv6, 0);
    }

    const total = draw();
    const reload = throttled(async () => {
        try {
            meaning = await search({ q: name, table: question.table }, pages, signal);
            draw();
        } catch {
            // What is shown says when it was true.
        }
    }, signal, 5000);
    // The server tells of every route that goes, whoever began it.
    const ours = (change) => change.attributes || meaning.origins?.some((t) => t.prefixes.includes(change.prefix));
    const speaking = meaning.peers ?? [];
    return {
        element: h("div", { class: "answer" }, title, body,
            speaking.length ? section(`Peers of ${name}`, null, peerGrid(signal, new Set(speaking.map((p) => p.id))).element) : null,
            changes({ origin_as: meaning.asn, table: question.table }, signal, reload, ours)),
        summary: total ? `${name}: ${many(total, "prefix", "prefixes")}` : none,
    };
}

async function peers(question, meaning, signal) {
    const found = meaning.peers ?? [];
    const one = found.length === 1 ? found[0] : null;
    const view = peerGrid(signal, new Set(found.map((p) => p.id)));
    const routes = one ? await routeList({ peer: one.id, table: question.table }, `Routes of ${one.name}`, signal) : null;
    return {
        element: h("div", { class: "answer" },
            h("h1", null, one ? one.name : `${many(found.length, "peer")} named like ${question.q}`),
            view.element,
            routes ? section("Routes", null, routes.parts) : null,
            one ? changes({ peer: one.id, table: question.table }, signal) : null),
        summary: one ? `Peer ${one.name}` : many(found.length, "peer"),
    };
}
