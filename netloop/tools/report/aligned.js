// Two texts side by side, line by line: equal parts are folded, and buttons jump from difference to difference.
const aligned = (list, parent, bar) => {
  const NEAR = 3; // equal lines that stay around a difference
  const make = (name, into, attributes = {}, text = "") => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    into.append(made);
    return made;
  };
  const table = make("table", parent, { class: "compare" }), differences = [];
  const row = ([kind, before, after], hidden) => {
    const made = make("tr", table, { class: kind });
    made.hidden = hidden;
    make("td", made, {}, before); make("td", made, {}, after);
    return made;
  };
  const fold = (part) => {
    const line = make("tr", table, { class: "fold" }), cell = make("td", line, { colspan: 2 });
    const rows = part.map((each) => row(each, true));
    make("button", cell, { type: "button" }, `\u22ef ${part.length} equal lines`).addEventListener("click", () => {
      for (const each of rows) each.hidden = false;
      line.remove();
    });
  };
  for (let from = 0, to = 0; from < list.length; from = to) {
    const isEqual = list[from][0] === "equal";
    while (to < list.length && (list[to][0] === "equal") === isEqual) to++;
    const part = list.slice(from, to), head = from ? NEAR : 0, tail = to < list.length ? NEAR : 0;
    if (!isEqual) differences.push(part.map((each) => row(each, false))[0]);
    else if (part.length <= head + tail + 1) part.forEach((each) => row(each, false));
    else {
      part.slice(0, head).forEach((each) => row(each, false));
      fold(part.slice(head, part.length - tail));
      part.slice(part.length - tail).forEach((each) => row(each, false));
    }
  }
  let current = -1;
  const place = make("span", bar, { class: "place" });
  const jump = (by) => {
    if (!differences.length) return;
    differences[current]?.classList.remove("current");
    current = (current + by + differences.length) % differences.length;
    differences[current].classList.add("current");
    differences[current].scrollIntoView({ block: "center" });
    place.textContent = `${current + 1} of ${differences.length}`;
  };
  place.textContent = `${differences.length} difference${differences.length === 1 ? "" : "s"}`;
  for (const [text, by] of [["Previous", -1], ["Next", 1]]) {
    make("button", bar, { type: "button", class: text.toLowerCase() }, text).addEventListener("click", () => jump(current < 0 && by < 0 ? 0 : by));
  }
  return jump;
};
