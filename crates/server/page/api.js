// Requests to the server: its errors as its sentences, time limits, the stream of changes, whether it is there at all.

const LIMIT = 10_000;

/** What went wrong, as a sentence. `lost`: the server did not answer at all. */
export class Problem extends Error {
    constructor(sentence, { status = 0, lost = false } = {}) {
        super(sentence);
        this.status = status;
        this.lost = lost;
    }
}

function token() {
    try {
        return sessionStorage.getItem("token");
    } catch {
        return null;
    }
}

export function setToken(value) {
    try {
        sessionStorage.setItem("token", value);
    } catch {
        // Storage is forbidden here: requests stay without a token, and the server says so.
    }
}

function url(path, query) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
        if (value !== null && value !== undefined && value !== "") parameters.set(name, value);
    }
    const text = parameters.toString();
    return text ? `${path}?${text}` : path;
}

async function request(path, query, signal, accept) {
    const headers = { accept };
    if (token()) headers.authorization = `Bearer ${token()}`;
    let response;
    try {
        // Relative to the page, so that it works under a path of a proxy.
        response = await fetch(url(path, query), { signal, headers, cache: "no-store" });
    } catch (error) {
        if (error.name === "TimeoutError") throw new Problem("The server took longer than 10 s to answer.", { lost: true });
        if (error.name === "AbortError") throw error;
        throw new Problem("The server cannot be reached.", { lost: true });
    }
    if (response.ok) return response;
    let sentence = `The server answered with status ${response.status} and no explanation.`;
    try {
        sentence = (await response.json()).error ?? sentence;
    } catch {
        // Not JSON, perhaps of a proxy: the status is all there is.
    }
    if (response.status === 401) dispatchEvent(new Event("locked"));
    throw new Problem(String(sentence), { status: response.status });
}

/** The body of a response; a connection that breaks in the middle is a server that was lost. */
async function body(response, read) {
    try {
        return await read(response);
    } catch (error) {
        if (error.name === "AbortError") throw error;
        if (error.name === "SyntaxError") throw new Problem("The server's answer is not the JSON that this page expects.");
        throw new Problem("The connection broke before the answer was complete.", { lost: true });
    }
}

const limited = (signal) => AbortSignal.any([signal, AbortSignal.timeout(LIMIT)].filter(Boolean));

/** GET, as JSON. `signal` ends it. */
export async function get(path, query, signal) {
    return body(await request(path, query, limited(signal), "application/json"), (r) => r.json());
}

/** GET, as bytes. */
export async function getBytes(path, query, signal) {
    const response = await request(path, query, limited(signal), "application/octet-stream");
    return new Uint8Array(await body(response, (r) => r.arrayBuffer()));
}

/** A path's segment: prefixes have a slash. */
export const segment = (text) => encodeURIComponent(text);

/**
 * Follows /v1/changes until `signal` ends it, and connects again when it breaks off. `on` has `open` (connected, before
 * the first event), `change`, `lost` (changes were skipped) and `broken` (a Problem; it is tried again).
 * EventSource would do the same, but cannot send a token and hides the server's sentence.
 */
export async function follow(query, signal, on) {
    let since = null;
    let wait = 500;
    while (!signal.aborted) {
        try {
            const response = await request("v1/changes", { ...query, since }, signal, "text/event-stream");
            wait = 500;
            on.open();
            for await (const event of events(response, signal)) {
                if (event.id) since = event.id;
                if (event.name === "change") on.change(JSON.parse(event.data));
                if (event.name === "lost") on.lost();
            }
            throw new Problem("The server ended the stream.", { lost: true });
        } catch (error) {
            if (signal.aborted) return;
            on.broken(error instanceof Problem ? error : new Problem("The stream broke off.", { lost: true }));
        }
        await pause(wait, signal);
        wait = Math.min(wait * 2, 8000);
    }
}

/** The events of a stream, as the HTML standard cuts them, without `retry`. */
async function* events(response, signal) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let event = { name: "message", data: "", id: null };
    try {
        for (;;) {
            const { value, done } = await reader.read();
            if (done || signal.aborted) return;
            // A carriage return at the end may be half of a line's end.
            const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
            rest = lines.pop();
            for (const line of lines) {
                if (line === "") {
                    if (event.data) yield { ...event, data: event.data.slice(0, -1) };
                    event = { name: "message", data: "", id: null };
                    continue;
                }
                const colon = line.indexOf(":");
                const field = colon < 0 ? line : line.slice(0, colon);
                const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
                if (field === "event") event.name = text;
                if (field === "data") event.data += `${text}\n`;
                if (field === "id") event.id = text;
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

/** Waits, or until `signal` ends it. */
export function pause(milliseconds, signal) {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
}

/** Resolves once somebody can see the page. */
export function visible() {
    if (!document.hidden) return Promise.resolve();
    return new Promise((resolve) => {
        document.addEventListener("visibilitychange", function seen() {
            if (document.hidden) return;
            document.removeEventListener("visibilitychange", seen);
            resolve();
        });
    });
}
