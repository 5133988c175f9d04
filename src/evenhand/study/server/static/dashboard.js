// Keeps the dashboard fresh: asks every few seconds whether a number changed, and if so takes the same page again from
// the server and swaps the parts that differ. Without it the page works by reloading.
"use strict";

const EVERY = 5000;
const SLOWEST = 60000;
const LONGEST = 60000;

document.addEventListener("DOMContentLoaded", () => {
  let stamp = document.getElementById("overview").dataset.stamp;
  let taken = Date.now();
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let wait = EVERY;
  let timer = 0;
  let paused = false;

  const bar = document.createElement("p");
  bar.className = "updates";
  const state = document.createElement("span");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  bar.append(state, button);
  document.getElementById("main").prepend(bar);

  const say = () => {
    const now = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    state.textContent = paused ? "Updates are paused." : `Updated ${now}`;
    button.textContent = paused ? "Go on" : "Pause updates";
  };
  const later = () => {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(refresh, wait);
  };

  /** Replace the parts whose text differs; leave alone what somebody is using. */
  function swap(page) {
    for (const part of page.querySelectorAll("[data-live]")) {
      const old = document.getElementById(part.id);
      if (!old || old.contains(document.activeElement)) continue;
      if (old.tagName === "DETAILS" && old.open) part.open = true;
      if (old.outerHTML === part.outerHTML) continue;
      const before = [...old.querySelectorAll("dd, td, .value strong")].map((one) => one.textContent);
      const arrived = document.importNode(part, true);
      if (!calm.matches) {
        [...arrived.querySelectorAll("dd, td, .value strong")].forEach((one, at) => {
          if (before[at] !== undefined && before[at] !== one.textContent) one.classList.add("changed");
        });
      }
      old.replaceWith(arrived);
    }
    stamp = page.getElementById("overview").dataset.stamp;
    taken = Date.now();
  }

  async function refresh() {
    try {
      const asked = await fetch("/api/dashboard", { headers: { Accept: "application/json" } });
      if (asked.status === 401) {
        location.assign("/researcher/login");
        return;
      }
      if (!asked.ok) throw new Error("not now");
      const numbers = await asked.json();
      if (numbers.stamp !== stamp || Date.now() - taken > LONGEST) {
        const page = await fetch("/researcher", { headers: { Accept: "text/html" } });
        if (!page.ok || page.redirected) throw new Error("not now");
        swap(new DOMParser().parseFromString(await page.text(), "text/html"));
      }
      wait = EVERY;
      say();
    } catch {
      wait = Math.min(2 * wait, SLOWEST);
      state.textContent = "No connection. Trying again.";
    }
    later();
  }

  button.addEventListener("click", () => {
    paused = !paused;
    say();
    if (paused) clearTimeout(timer);
    else refresh();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else if (!paused) refresh();
  });
  say();
  later();
});
