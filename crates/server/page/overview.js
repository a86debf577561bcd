// What there is when nothing is asked: tables, rates, lengths, the map, sources and peers.

import { get } from "./api.js";
import { histogram, rateChart } from "./charts.js";
import { age, ask, bytes, count, grid, h, local, many, section, utc } from "./dom.js";
import { topFlows } from "./flows.js";
import { hilbert } from "./hilbert.js";
import { every, latest, onPulse } from "./pulse.js";

const FAMILIES = [["ipv4", "IPv4"], ["ipv6", "IPv6"]];
const SHOWN = 50;

export async function overview(question, signal) {
    const first = latest ?? (await get("v1/table", {}, signal));
    const tables = grid("Tables", [
        { name: "Table" }, { name: "Family" }, { name: "Routes", number: true }, { name: "Changes/s", number: true },
        { name: "Newest change", number: true }, { name: "Engine" }, { name: "Memory", number: true },
        { name: "Generation", number: true }, { name: "Rebuilds, patches", number: true }, { name: "Audit" }]);
    const rate = h("b", { class: "big" }, "–");
    const chart = rateChart(240);
    const rates = new Rates();
    const largest = () => {
        const routes = (t) => (t.ipv4?.routes ?? 0) + (t.ipv6?.routes ?? 0);
        return [...(latest ?? first).tables].sort((a, b) => routes(b) - routes(a))[0]?.name;
    };
    const table = question.table || largest();
    const none = h("p", null, "The server has no table yet.");
    const only = (t) => !question.table || t.name === question.table;

    const show = (answer) => {
        rates.take(answer, performance.now());
        const named = answer.tables.filter(only);
        none.hidden = named.length > 0;
        none.textContent = question.table ? `There is no table ${question.table}.` : "The server has no table yet.";
        tables.element.hidden = named.length === 0;
        tables.update(named.flatMap((t) => tableRows(t, rates)));
        const sum = rates.sum(named);
        if (sum !== null) {
            rate.textContent = count(Math.round(sum));
            chart.add(sum, Date.now());
        }
    };
    show(first);
    onPulse(show, signal);

    const peers = peerGrid(signal, null);
    const lengths = FAMILIES.map(([key, name]) => [key, histogram(name)]);
    const about = h("span", { class: "dim" }, table ?? "");
    if (table) every(60_000, signal, async () => {
        const answer = await get("v1/histogram", { table }, signal);
        for (const [key, chart] of lengths) chart.set(answer[key]);
        about.textContent = `${table}, as of ${local(new Date())}`;
    }, (problem) => (about.textContent = problem.message));

    return {
        element: h("div", { class: "overview" },
            h("h1", { class: "unseen" }, "Overview"),
            section("Tables", { class: "all" }, none, tables.element),
            section("Changes a second", { class: "rates" }, rate, chart.element),
            table ? section("Prefix lengths", { class: "lengths" }, about, lengths.map(([, c]) => c.element)) : null,
            table ? hilbert({ table }, signal) : null,
            first.flows ? topFlows(signal) : null,
            h("div", { class: "feeds" }, peers.sources, section("Peers", null, peers.element))),
        summary: `Overview: ${many(first.tables.length, "table")}`,
    };
}

function tableRows(table, rates) {
    if (!table.ipv4 && !table.ipv6) {
        return [{ key: table.name, cells: [table.name, "", "", "", "", { text: "not compiled: too many tables", class: "warn" }, "", "", "", ""] }];
    }
    return FAMILIES.flatMap(([key, name]) => {
        const family = table[key];
        // A family that has nothing and never had is left out, unless the table has neither.
        if (!family || (key === "ipv6" && !family.routes && !family.changes)) return [];
        const { audit } = family;
        const rate = rates.of(table.name, key);
        const newest = key === "ipv4" || !table.ipv4?.routes ? table.newest_change : null;
        const failed = family.failures ? `, ${many(family.failures, "failure")}` : "";
        const wrong = audit?.differences > 0;
        return [{
            key: `${table.name} ${key}`,
            cells: [
                { text: `${table.name}${table.complete ? "" : " (filling)"}`, node: () => [ask({ table: table.name }, table.name), table.complete ? null : h("span", { class: "warn" }, " still filling")] },
                name,
                count(family.routes),
                rate === null ? "" : count(Math.round(rate)),
                newest ? { text: `${age(Date.now() - new Date(newest))} ago`, title: `${local(new Date(newest))}, ${utc(new Date(newest))}` } : "",
                family.engine ?? "",
                { text: bytes(family.memory_bytes), title: family.routes ? `${(family.memory_bytes / family.routes).toFixed(1)} bytes a route` : "" },
                count(family.generation),
                { text: `${count(family.rebuilds)}, ${count(family.patches)}${failed}`, class: family.failures ? "warn" : null },
                audit ? { text: wrong ? many(audit.differences, "difference") : "equal", class: wrong ? "bad" : null, title: `${count(audit.probes)} probes compared with the routes` } : "",
            ],
        }];
    });
}

/** Changes a second of each table, from two answers. */
class Rates {
    #last = new Map();
    #rates = new Map();
    #at = null;

    take(answer, now) {
        const seconds = this.#at === null ? null : (now - this.#at) / 1000;
        if (seconds !== null && seconds < 0.5) return;
        this.#rates.clear();
        for (const table of answer.tables) {
            for (const [key] of FAMILIES) {
                const name = `${table.name} ${key}`;
                const changes = table[key]?.changes ?? 0;
                const before = this.#last.get(name);
                // After a pause or a restart there is no rate to tell.
                if (before !== undefined && seconds < 7 && changes >= before) this.#rates.set(name, (changes - before) / seconds);
                this.#last.set(name, changes);
            }
        }
        this.#at = now;
    }

    of(table, key) {
        return this.#rates.get(`${table} ${key}`) ?? null;
    }

    sum(tables) {
        const all = tables.flatMap((t) => FAMILIES.map(([key]) => this.of(t.name, key))).filter((r) => r !== null);
        return all.length ? all.reduce((sum, r) => sum + r, 0) : null;
    }
}

/** Peers with their states, and the sources they come from, asked for every five seconds. `ids`: only these. */
export function peerGrid(signal, ids) {
    const grown = grid("Peers", [
        { name: "Peer" }, { name: "State" }, { name: "IPv4", number: true }, { name: "Best IPv4", number: true },
        { name: "IPv6", number: true }, { name: "Best IPv6", number: true }, { name: "Address" }, { name: "Source" }]);
    const more = h("p", { class: "dim", hidden: true });
    const note = h("p", null, "Asking ...");
    const sources = grid("Sources", [{ name: "Source" }, { name: "State" }, { name: "Announced", number: true }, { name: "Withdrawn", number: true }, { name: "Received", number: true }, { name: "Damaged", number: true }, { name: "Last", number: true }, { name: "Endpoint" }, { name: "Remarks" }]);
    const feeds = section("Sources", { hidden: true }, sources.element);
    let all = false;
    let known = [];

    function draw() {
        const shown = all || ids ? known : known.slice(0, SHOWN);
        grown.update(shown.map(peerRow));
        grown.element.hidden = known.length === 0;
        more.hidden = shown.length === known.length;
        more.replaceChildren(`${count(shown.length)} of ${count(known.length)} peers. `, h("button", { type: "button", onclick: () => ((all = true), draw()) }, "Show all"));
    }

    every(5000, signal, async () => {
        const answer = await get("v1/peers", {}, signal);
        known = answer.peers.filter((p) => !ids || ids.has(p.id));
        note.hidden = known.length > 0;
        note.textContent = ids ? "The server no longer has this peer." : "No peer yet.";
        draw();
        sources.update((answer.sources ?? []).map(sourceRow));
        feeds.hidden = !answer.sources?.length;
    }, (problem) => {
        note.hidden = false;
        note.textContent = problem.message;
    });
    return { element: h("div", null, note, grown.element, more), sources: feeds };
}

// `resync` and `idle` wait for something: neither good nor bad.
const stateClass = (state) => ({ up: "good", down: "bad", lost: "bad", damaged: "bad" })[state] ?? "warn";

/** The state, and until when the routes of a lost connection are kept. */
function stateText(of) {
    return of.until ? `${of.state} (routes kept until ${local(new Date(of.until))})` : of.state ?? "";
}

function peerRow(peer) {
    return {
        key: peer.id,
        cells: [
            { text: peer.name, node: () => ask({ q: peer.name }, peer.name) },
            { text: stateText(peer), class: peer.state ? stateClass(peer.state) : null },
            count(peer.routes?.ipv4), count(peer.best?.ipv4), count(peer.routes?.ipv6), count(peer.best?.ipv6),
            peer.address ?? "", peer.source ?? "",
        ],
    };
}

function sourceRow(source) {
    const last = source.last ? new Date(source.last) : null;
    const remarks = Object.entries(source.remarks ?? {}).map(([name, text]) => `${name} ${text}`);
    for (const [what, times] of Object.entries(source.noted ?? {})) remarks.push(`${what}: ${count(times)}`);
    if (source.trouble) remarks.unshift(source.trouble);
    return {
        key: source.name,
        cells: [
            { text: source.name, title: source.kind },
            { text: stateText(source), class: stateClass(source.state), title: source.since ? `since ${utc(new Date(source.since))}, ${many(source.connections, "connection")} so far` : "" },
            count(source.announced), count(source.withdrawn), bytes(source.bytes),
            { text: count(source.damaged), class: source.damaged ? "bad" : null },
            last ? { text: `${age(Date.now() - last)} ago`, title: `${local(last)}, ${utc(last)}` } : "",
            source.endpoint ?? "", remarks.join("; "),
        ],
    };
}
