// Routes, their peers and attributes, as text and links.

import { ask, h, many } from "./dom.js";
import { withName } from "./names.js";

const COLUMNS = { "local preference": "Pref", "AS path length": "AS path", origin: "Origin", MED: "MED", "peer order": "Peer", "path identifier": "Peer" };

/** The name of a peer, a link to it. */
export function peerLink(peer) {
    if (!peer) return "no peer";
    const from = peer.source ? `from ${peer.source}` : "";
    return titled(peer.asn, ask({ q: peer.name }, peer.name, { title: from || null }), from);
}

/** The link to an AS; its name comes into the tooltip. */
export const asLink = (asn, text) => titled(asn, ask({ q: `AS${asn}` }, text));

function titled(asn, link, more = "") {
    withName(asn, (name) => (link.title = more ? `${name}, ${more}` : name));
    return link;
}

/** An AS path: each AS a link, one that is repeated named once with how often. */
export function asPath(text) {
    const parts = String(text ?? "").split(/\s+/).filter(Boolean);
    if (parts.length === 0) return h("span", { class: "dim" }, "empty (of this AS)");
    const out = [];
    for (let i = 0; i < parts.length; ) {
        let end = i + 1;
        while (end < parts.length && parts[end] === parts[i]) end++;
        const plain = /^\d+$/.test(parts[i]);
        if (out.length) out.push(" ");
        out.push(plain ? asLink(parts[i], parts[i]) : parts[i]);
        if (end - i > 1) out.push(h("span", { class: "dim", title: `${parts[i]} stands ${end - i} times in a row` }, `×${end - i}`));
        i = end;
    }
    return h("span", { class: "path" }, out);
}

const hop = (n) => [n.gateway ? `via ${n.gateway}` : "directly", n.interface ? `interface ${n.interface}` : null, n.weight > 1 ? `weight ${n.weight}` : null].filter(Boolean).join(", ");

/** Attributes in one line. */
export function brief(attributes) {
    if (!attributes) return h("span", { class: "gone" }, "gone, no route is left");
    switch (attributes.kind) {
        case "bgp":
            return [asPath(attributes.as_path), attributes.next_hop ? h("span", { class: "dim" }, ` next hop ${attributes.next_hop}`) : null];
        case "next_hops": {
            const hops = (attributes.next_hops ?? []).map(hop);
            if (attributes.type && attributes.type !== "unicast") return [attributes.type, ...hops].join(", ");
            return hops.length ? hops.join("; ") : "no next hop";
        }
        case "values":
            return Object.entries(attributes.values ?? {}).map(([name, value]) => `${name} ${value}`).join(", ") || "no values";
        default:
            return JSON.stringify(attributes);
    }
}

/** The columns of a table of paths, and the cells of one path. Only BGP's have many. */
export function pathColumns(paths) {
    const bgp = paths.every((path) => path.attributes?.kind === "bgp");
    const has = (name) => paths.some((path) => (path.attributes?.[name] ?? "") !== "");
    if (!bgp) {
        return { columns: [{ name: "Peer" }, { name: "Route" }], cells: (path) => [{ Peer: peerCell(path) }, { Route: brief(path.attributes) }] };
    }
    const plain = [["Pref", "local_pref", true], ["MED", "med", true], ["Origin", "origin", false], ["Communities", "communities", false]].filter(([, key]) => has(key));
    return {
        columns: [{ name: "Peer" }, { name: "AS path" }, { name: "Next hop" }, ...plain.map(([name, , number]) => ({ name, number }))],
        cells: (path) => [
            { Peer: peerCell(path) },
            { "AS path": [asPath(path.attributes.as_path), validity(path.rpki), ofPath(path.aspa)] },
            { "Next hop": path.attributes.next_hop ?? "" },
            ...plain.map(([name, key]) => ({ [name]: String(path.attributes[key] ?? "") })),
        ],
    };
}

/** What the RPKI says about a path's origin, with the VRPs that say so. */
function validity(rpki) {
    if (!rpki) return null;
    const kind = { valid: "good", "not-found": "dim" }[rpki.validity] ?? "bad";
    const why = rpki.vrps?.join("\n") || "no VRP covers the prefix";
    return h("span", { class: `rpki ${kind}`, title: why }, rpki.validity);
}

/** Whether ASPAs let a path be. Most ASes have none, so an unknown path is not worth a word. */
function ofPath(aspa) {
    if (!aspa || aspa === "unknown") return null;
    const title = aspa === "valid" ? "ASPAs attest each hop" : "an AS passed the route on that is no provider by its ASPA";
    return h("span", { class: `rpki ${aspa === "valid" ? "good" : "bad"}`, title }, `path ${aspa}`);
}

const peerCell = (path) => [peerLink(path.peer), path.path_id ? h("span", { class: "dim" }, ` path ${path.path_id}`) : null];

/** The column that a path lost by, if it is one of those that are shown. */
export const decidingColumn = (lostBy) => COLUMNS[lostBy];

/** Every path of a prefix in a table: the best first, and by which step the others lost. */
export function pathTable(route) {
    const paths = [...route.paths].sort((a, b) => Number(b.best) - Number(a.best));
    const { columns, cells } = pathColumns(paths);
    const head = [{ name: "" }, ...columns].map((c) => h("th", { scope: "col", class: c.number && "number" }, c.name || h("span", { class: "unseen" }, "Result")));
    const rows = paths.map((path) => {
        const decided = decidingColumn(path.lost_by);
        const verdict = path.best ? h("b", { class: "tag" }, "best") : h("span", { class: "dim" }, path.lost_by ? `lost by ${path.lost_by}` : "not best");
        const data = cells(path).flatMap(Object.entries).map(([name, content], i) =>
            h("td", { "data-name": name, class: [columns[i].number && "number", name === decided && "decided", content === "" && "empty"].filter(Boolean).join(" ") || null }, content));
        return h("tr", { class: path.best ? "best" : null }, h("td", { "data-name": "Result" }, verdict), data);
    });
    return h("div", { class: "scroll" }, h("table", { class: "paths", "data-arrows": true },
        h("caption", { class: "unseen" }, `Paths of ${route.prefix}`), h("thead", null, h("tr", null, head)), h("tbody", null, rows)));
}

export const lengthOf = (prefix) => Number(prefix.split("/")[1]);
export const isV6 = (prefix) => prefix.includes(":");

/** How much a prefix holds. */
export function size(prefix) {
    const free = (isV6(prefix) ? 64 : 32) - lengthOf(prefix);
    const unit = isV6(prefix) ? ["network of /64", "networks of /64"] : ["address", "addresses"];
    if (free < 0) return `a part of a /64`;
    return free > 40 ? `2^${free} ${unit[1]}` : many(2 ** free, ...unit);
}
