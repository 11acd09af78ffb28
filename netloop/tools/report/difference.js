"use strict";
// Texts of the models reach the page through textContent only, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const html = (name, parent, attributes = {}, text = null) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  };
  const heading = (text) => html("h2", at("content"), {}, text);
  const shown = (value, unit) => {
    if (value === null || value === undefined) return "\u2013";
    if (unit === "s") return value < 1e-3 ? `${(value * 1e6).toFixed(0)} \u00b5s` : value < 1 ? `${(value * 1e3).toFixed(2)} ms` : `${value.toFixed(2)} s`;
    if (unit === "B") return value < 1024 ? `${value} B` : value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / (1 << 20)).toFixed(1)} MiB`;
    return `${value}`;
  };
  function numbers(rows, id) {
    const table = html("table", at("content"), { class: "numbers", id }), head = html("tr", table);
    for (const text of ["", "before", "after", "after / before"]) html("th", head, {}, text);
    for (const [name, before, after, unit] of rows) {
      const row = html("tr", table);
      html("td", row, {}, name);
      for (const value of [before, after]) html("td", row, {}, shown(value, unit));
      html("td", row, {}, before > 0 && after !== null ? (after / before).toFixed(2) : "\u2013");
    }
  }

  const { added, removed, changed } = data.counts;
  const summary = added + removed + changed ? `${added} added, ${removed} removed, ${changed} changed` : "no layer differs";
  at("title").textContent = summary;
  document.title = `${summary} - netloop`;
  const sides = html("table", at("content"), { class: "sides" });
  ["before", "after"].forEach((name, side) => { const row = html("tr", sides); html("th", row, {}, name); html("td", row, {}, data.summaries[side]); });
  heading("sizes and times");
  numbers(data.numbers, "numbers");
  if (data.times.length) { heading("time by layer"); numbers(data.times, "times"); }
  if (data.passes.some((side) => side.length)) {
    heading("passes, on one side only");
    const table = html("table", at("content"), { class: "compare", id: "passes" });
    for (let i = 0; i < Math.max(...data.passes.map((side) => side.length)); i++) {
      const row = html("tr", table, { class: "replace" });
      for (const side of data.passes) html("td", row, {}, side[i] ?? "");
    }
  }
  heading("layers");
  const jump = aligned(data.layers, at("content"), at("bar"));
  window.addEventListener("keydown", (event) => {
    if (event.key === "n") jump(1);
    if (event.key === "p") jump(-1);
  });
  document.body.dataset.ready = "1";
})();
