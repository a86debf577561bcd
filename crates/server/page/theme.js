// Dark or light, as the system says or as chosen here. A plain script in the head: it runs before anything is painted.
"use strict";
{
    const themes = ["auto", "light", "dark"];
    const root = document.documentElement;
    let stored = null;
    try {
        stored = localStorage.getItem("theme");
    } catch {
        // Storage is forbidden here: the choice lasts as long as the page.
    }

    const set = (theme) => {
        if (theme === "auto") delete root.dataset.theme;
        else root.dataset.theme = theme;
        const button = document.getElementById("theme");
        if (button) button.textContent = `Theme: ${theme}`;
        dispatchEvent(new Event("theme"));
    };

    set(themes.includes(stored) ? stored : "auto");
    document.addEventListener("DOMContentLoaded", () => {
        set(root.dataset.theme ?? "auto");
        document.getElementById("theme").addEventListener("click", () => {
            const next = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % themes.length];
            try {
                localStorage.setItem("theme", next);
            } catch {
                // As above.
            }
            set(next);
        });
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
}
