// The names of ASes, if the server has a file of them. They are asked for together, a moment after they are wanted.

import { get } from "./api.js";
import { latest } from "./pulse.js";

/** ASes of one request. */
const MOST = 500;

const known = new Map(); // AS -> name, null without one
let waiting = new Map(); // AS -> functions that want its name
let timer = null;

/** Calls `use` with the name of an AS, now or later; not at all if it has none. */
export function withName(asn, use) {
    const key = String(asn);
    if ((latest && !latest.names) || !/^\d+$/.test(key)) return;
    if (known.has(key)) {
        if (known.get(key) !== null) use(known.get(key));
        return;
    }
    waiting.set(key, [...(waiting.get(key) ?? []), use]);
    timer ??= setTimeout(ask, 20);
}

async function ask() {
    if (!latest) {
        // The server has not said yet whether it has names.
        timer = setTimeout(ask, 200);
        return;
    }
    const all = [...waiting];
    [waiting, timer] = [new Map(), null];
    if (!latest.names) return;
    for (let at = 0; at < all.length; at += MOST) {
        const part = all.slice(at, at + MOST);
        try {
            const { names } = await get("v1/names", { as: part.map(([asn]) => asn).join(",") });
            for (const [asn, uses] of part) {
                known.set(asn, names[asn] ?? null);
                if (names[asn] !== undefined) uses.forEach((use) => use(names[asn]));
            }
        } catch {
            // Names are an extra: without them, numbers are all there is. They are asked for again with the next view.
        }
    }
}
