// What pages do with JavaScript on top of their plain forms: sliders, saving as one goes, copying the code.
"use strict";
document.documentElement.classList.add("js");

const PAUSE = 800;
const LONGEST_WAIT = 30_000;
const PATIENCE = 10_000;

/** A slider has no answer until somebody moves it or gives a number: only the number is sent. */
function bindSlider(slider) {
  const number = document.getElementById(slider.dataset.for);
  const show = () => {
    const given = parseFloat(number.value.replace(",", "."));
    const known = given >= 0 && given <= 100;
    slider.classList.toggle("untouched", !known);
    if (known) slider.value = given;
    slider.setAttribute("aria-valuetext", known ? `${number.value} %` : "–");
  };
  const take = () => {
    number.value = slider.value;
    show();
    number.dispatchEvent(new Event("input", { bubbles: true }));
  };
  slider.addEventListener("input", take);
  slider.addEventListener("click", () => slider.classList.contains("untouched") && take());
  number.addEventListener("input", show);
  show();
}

/** What else: words tick the box, and without the tick there are no words. */
function bindOther(box, text) {
  let kept = "";
  text.addEventListener("input", () => {
    if (text.value.trim()) box.checked = true;
  });
  box.addEventListener("change", () => {
    if (box.checked) {
      text.value ||= kept;
      text.focus();
    } else {
      kept = text.value;
      text.value = "";
    }
  });
}

/** Save the form as it is, soon after each change; where there is no connection, say so and keep trying. */
function saveAsOneGoes(form) {
  const status = form.querySelector(".status");
  let timer = 0;
  let wait = PAUSE;
  let changed = false;
  let sent = false;

  const fields = () => {
    const held = {};
    for (const [name, value] of new FormData(form)) {
      if (name !== "csrf") (held[name] ??= []).push(value);
    }
    return held;
  };
  const say = (text, trouble) => {
    status.textContent = text;
    status.classList.toggle("trouble", trouble);
  };
  const later = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(save, milliseconds);
  };
  const put = () =>
    fetch(form.dataset.draft, {
      method: "PUT",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": form.elements.csrf.value },
      body: JSON.stringify({ fields: fields() }),
      keepalive: true,
    });
  async function save() {
    if (sent || !changed) return;
    changed = false;
    try {
      const answer = await put();
      if (answer.status >= 500 || answer.status === 429) throw new Error("not now");
      wait = PAUSE;
      const kept = answer.ok && (await answer.json()).kept;
      if (!changed) say(kept ? form.dataset.saved : "", false);
    } catch {
      changed = true;
      say(form.dataset.trouble, true);
      wait = Math.min(wait * 2, LONGEST_WAIT);
      if (!sent) later(wait);
    }
  }

  form.addEventListener("input", () => {
    changed = true;
    if (!status.classList.contains("trouble")) say("", false);
    later(PAUSE);
  });
  form.addEventListener("submit", (event) => {
    if (sent) {
      event.preventDefault();
    } else if (!navigator.onLine) {
      event.preventDefault();
      say(form.dataset.trouble, true);
    } else {
      sent = true;
      clearTimeout(timer);
      setTimeout(() => (sent = false), PATIENCE);
    }
  });
  window.addEventListener("online", () => later(0));
  window.addEventListener("pagehide", () => {
    if (changed && !sent) put().catch(() => {});
  });
}

function bindCopy(button) {
  button.addEventListener("click", async () => {
    const shown = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(shown.textContent);
      button.nextElementSibling.textContent = button.dataset.copied;
      button.textContent = button.dataset.copied;
    } catch {
      getSelection().selectAllChildren(shown);
    }
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("input[type=range][data-for]").forEach(bindSlider);
  const other = document.querySelector("input[name=factors][value=other]");
  if (other) bindOther(other, document.getElementById("factor_text"));
  const form = document.querySelector("form[data-draft]");
  if (form) saveAsOneGoes(form);
  document.querySelectorAll("button[data-copy]").forEach(bindCopy);
});

// A page that the browser kept from before may show an answer that was changed since.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
