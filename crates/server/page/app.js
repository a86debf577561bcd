// The looking glass: what is asked is in the page's address, and each address has one view.

import { Problem, setToken } from "./api.js";
import { byId, h, link, say } from "./dom.js";
import { answer } from "./answer.js";
import { overview } from "./overview.js";
import { beat, checkNow, onPulse } from "./pulse.js";

let shown = null; // { question, view, controller }

function question() {
    const query = new URLSearchParams(location.search);
    const text = (name) => (query.get(name) ?? "").trim();
    return { q: text("q"), table: text("table"), prefix: text("prefix") };
}

/** Shows what the address asks. What was asked before is ended: its late answers find nothing to write into. */
async function show({ again = false } = {}) {
    const asked = question();
    byId("q").value = asked.q;
    offer(asked.table);
    document.title = asked.q ? `${asked.q}${asked.table ? ` in ${asked.table}` : ""} - fibula` : "fibula looking glass";
    const same = shown && !again && shown.question.q === asked.q && shown.question.table === asked.table;
    if (same && shown.view?.choose) {
        shown.question = asked;
        shown.view.choose(asked);
        return;
    }
    shown?.controller.abort();
    const controller = new AbortController();
    const mine = (shown = { question: asked, view: null, controller, failed: false });
    byId("main").replaceChildren(h("p", { class: "waiting" }, asked.q ? `Asking for ${asked.q} ...` : "Asking for the tables ..."));
    try {
        const view = await (asked.q ? answer : overview)(asked, controller.signal);
        if (controller.signal.aborted) return;
        mine.view = view;
        byId("main").replaceChildren(view.element);
        view.shown?.();
        if (view.summary) say(view.summary);
    } catch (problem) {
        if (controller.signal.aborted) return;
        const known = problem instanceof Problem;
        const sentence = known ? problem.message : `This page has an error of its own: ${problem.message}`;
        byId("main").replaceChildren(h("p", { class: "problem", role: "alert" }, sentence));
        if (!known) throw problem;
        // Not the question's fault: it is asked again once the server answers.
        mine.failed = problem.lost || problem.status >= 500 || problem.status === 429;
        if (problem.lost) checkNow();
    }
}

function go(to) {
    const target = new URL(to, location.href);
    if (target.href !== location.href) history.pushState(null, "", target);
    return show();
}

/** The tables to choose from; the one that is asked for is among them even where the server has none of its name. */
let names = [];
function offer(chosen) {
    const select = byId("table");
    const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
    if (select.length !== all.length + 1 || all.some((name, i) => select.options[i + 1].value !== name)) {
        select.replaceChildren(new Option("all tables", ""), ...all.map((name) => new Option(name, name)));
    }
    select.value = chosen;
}

function submit() {
    const q = byId("q").value.trim();
    const table = byId("table").value;
    const to = link({ q, table });
    // Asked again: a new answer, not a new entry in the history.
    if (new URL(to, location.href).href === location.href) show({ again: true });
    else go(to);
    // Not in the field any more: a phone's keyboard goes, `/` leads back, Tab leads into the answer.
    byId("main").focus({ preventScroll: true });
}

byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
});
byId("table").addEventListener("change", submit);

document.addEventListener("click", (event) => {
    const anchor = event.target.closest?.("a[href]");
    if (!anchor || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const href = anchor.getAttribute("href");
    if (!href.startsWith("?") && href !== "./") return;
    event.preventDefault();
    go(href);
    // The link may be gone with what was shown; the next Tab leads into the answer.
    if (document.activeElement === document.body) byId("main").focus({ preventScroll: true });
});

addEventListener("popstate", () => show());

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = byId("q");
    const typing = event.target.matches?.("input, select, textarea");
    if (event.key === "/" && !typing) {
        event.preventDefault();
        field.focus();
        field.select();
    } else if (event.key === "Escape") {
        if (event.target !== field) field.focus();
        else if (field.value) field.value = "";
        else field.blur();
    } else if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key) && !typing) {
        move(event);
    }
});

/** Arrow keys go from link to link within a list or table. */
function move(event) {
    const list = event.target.closest?.("[data-arrows]");
    if (!list) return;
    const links = [...list.querySelectorAll("a[href], button")].filter((item) => item.offsetParent !== null);
    const place = links.indexOf(event.target);
    if (place < 0) return;
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: links.length - 1 }[event.key];
    if (links[to]) {
        event.preventDefault();
        links[to].focus();
    }
}

addEventListener("locked", () => {
    byId("unlock").hidden = false;
});
byId("unlock").addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(byId("token").value);
    byId("token").value = "";
    byId("unlock").hidden = true;
    checkNow();
    show({ again: true });
});

onPulse((table, restarted, back) => {
    names = table.tables.map((t) => t.name);
    offer(question().table);
    byId("server").textContent = `fibula ${table.version}`;
    // Numbers of changes begin anew after a restart, and an answer that failed may now be given.
    if (restarted || (back && shown?.failed)) show({ again: true });
}, new AbortController().signal);
beat();
show();
