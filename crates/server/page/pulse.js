// The page asks /v1/table every two seconds while somebody can see it. This says whether the server is there, how fast
// its tables change, and when an answer on the page may be old.

import { get, pause, visible } from "./api.js";
import { byId, local, say } from "./dom.js";

const EVERY = 2000;
const listeners = new Set();

/** The newest answer of /v1/table, and when it came. */
export let latest = null;
let at = null;
let lost = false;
let started = null;

/** Calls `listener(table, restarted)` for each answer, until `signal` ends it; at once if there is one already. */
export function onPulse(listener, signal) {
    listeners.add(listener);
    signal.addEventListener("abort", () => listeners.delete(listener));
    if (latest) listener(latest, false);
}

let hurry = null;

/** Asks now instead of in two seconds: something just failed, or a token was given. */
export const checkNow = () => hurry?.abort();

export async function beat() {
    for (;;) {
        await visible();
        try {
            const table = await get("v1/table");
            const restarted = started !== null && table.started !== started;
            const back = lost;
            [latest, at, lost, started] = [table, new Date(), false, table.started];
            byId("lost").hidden = true;
            document.body.classList.remove("stale");
            if (back) say(restarted ? "The server was restarted." : "The server answers again.");
            for (const listener of listeners) listener(table, restarted, back);
        } catch (problem) {
            lost = true;
            // The form that asks for the token says so already.
            byId("lost").hidden = problem.status === 401;
            document.body.classList.add("stale");
            const since = at ? ` What you see is from ${local(at)}.` : "";
            const sentence = `${problem.message}${since} Trying again.`;
            if (byId("lost").textContent !== sentence) byId("lost").textContent = sentence;
        }
        hurry = new AbortController();
        await pause(EVERY, hurry.signal);
    }
}

/** Does `work` now and again and again while the page is seen, sooner if it failed; a server that is gone is the page's own sentence. */
export async function every(milliseconds, signal, work, failed) {
    while (!signal.aborted) {
        let done = false;
        try {
            await work();
            done = true;
        } catch (problem) {
            if (signal.aborted) return;
            if (!problem.lost) failed(problem);
        }
        await pause(done ? milliseconds : Math.min(milliseconds, 3000), signal);
        await visible();
    }
}

/** All changes that the tables have counted: a number that differs once an answer may have become old. */
export const changesIn = (table, name) =>
    table.tables
        .filter((t) => !name || t.name === name)
        .flatMap((t) => [t.ipv4, t.ipv6])
        .reduce((sum, family) => sum + (family?.changes ?? 0) + (family?.sequence ?? 0), 0);
