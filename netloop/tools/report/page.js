"use strict";
// Texts of the model reach the page through textContent and setAttribute only, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { nodes, edges } = data;
  const SVG = "http://www.w3.org/2000/svg";
  const BACK = 1, CONTROL = 2; // the kinds of edges
  const MOST_OPEN = 120; // nodes that are laid out when the page opens
  const at = (id) => document.getElementById(id);
  const children = new Map([[-1, []]]);
  nodes.forEach((node, id) => {
    if (node.box) children.set(id, []);
    children.get(node.parent).push(id);
  });
  const inputsOf = nodes.map(() => []), outputsOf = nodes.map(() => []);
  edges.forEach((edge) => { inputsOf[edge[1]].push(edge); outputsOf[edge[0]].push(edge); });
  const open = new Set();
  let chosen = -1, showsConstants = false, view = { x: 0, y: 0, k: 1 }, drawn = null;

  // ------------------------------------------------------------------ small makers of elements

  const make = (space, name, parent, attributes = {}, text = null) => {
    const made = space ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  };
  const svg = (name, parent, attributes, text) => make(true, name, parent, attributes, text);
  const html = (name, parent, attributes, text) => make(false, name, parent, attributes, text);
  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  // the end of a name tells layers apart: their scopes are in front
  const shortened = (text, most) => (text.length > most ? `\u2026${text.slice(text.length - most + 1)}` : text);
  const label = (id, most = Infinity) => {
    const node = nodes[id], only = node.box && (node.kind === "branch" || node.kind === "section");
    if (only || !node.name) return cut(node.name || node.kind, most);
    return cut(`${node.kind}  ${shortened(node.name, Math.max(12, most - node.kind.length - 2))}`, most);
  };
  // limits and conditions have no output: what they read says more
  const typeLine = (node) => node.outputs?.[0]?.[1] ?? (node.role === "entry" && node.inputs?.[0] ? `by ${node.inputs[0][0]}` : "");
  // a box with constants only would be empty
  const hasLayers = nodes.map((node) => !node.box && node.role !== "constant");
  for (let id = nodes.length - 1; id >= 0; id--) if (nodes[id].parent >= 0 && hasLayers[id]) hasLayers[nodes[id].parent] = true;
  const shown = (id) => showsConstants || hasLayers[id];

  // ------------------------------------------------------------------ layout: each open box by itself, inside first

  const ancestors = (id) => {
    const found = [];
    for (; id !== -1; id = nodes[id].parent) found.push(id);
    return found.reverse();
  };
  const visible = (id) => ancestors(id).find((each) => nodes[each].box && !open.has(each)) ?? id;

  function regions() {
    const found = new Map(), chains = new Map();
    const chain = (id) => {
      const end = visible(id);
      if (!chains.has(end)) chains.set(end, ancestors(end));
      return chains.get(end);
    };
    for (const [from, to, tensor, kind] of edges) {
      if (!shown(from) || !shown(to)) continue;
      const a = chain(from), b = chain(to);
      let depth = 0;
      while (depth < a.length && depth < b.length && a[depth] === b[depth]) depth++;
      // a trip limit controls the box that it is in, whose border is the end of the edge
      const toBorder = kind === CONTROL && depth === b.length && depth === a.length - 1;
      if (depth === a.length || (depth === b.length && !toBorder)) continue;
      const region = depth ? a[depth - 1] : -1, key = `${a[depth]} ${toBorder ? "" : b[depth]} ${kind}`;
      if (!found.has(region)) found.set(region, new Map());
      const same = found.get(region);
      if (!same.has(key)) same.set(key, { from: a[depth], to: toBorder ? null : b[depth], kind, back: kind === BACK, tensors: [] });
      same.get(key).tensors.push(tensor);
    }
    return found;
  }

  function layout() {
    const found = regions(), placed = new Map();
    const order = [[-1, false]], stack = [];
    while (order.length) {
      const [id] = order.pop();
      stack.push(id);
      for (const child of children.get(id)) if (open.has(child)) order.push([child]);
    }
    for (const id of stack.reverse()) placed.set(id, place(id, found.get(id) ?? new Map(), placed));
    return placed;
  }

  function size(id, placed) {
    if (open.has(id)) return placed.get(id);
    const type = typeLine(nodes[id]);
    const longest = Math.max(label(id, 34).length * 6.9, cut(type, 38).length * 6.2);
    return { width: Math.max(64, longest + (nodes[id].box ? 52 : 24)), height: nodes[id].box ? 44 : type ? 40 : 28 };
  }

  // Entries belong at the upper edge of their box and exits at the lower one. Hidden ends put them there, but also pull
  // them sideways; so a first layout with the ends gives the ranks, and a second one without them the places.
  function ranks(members, same, placed) {
    const graph = graphOf(members, same, placed, () => 1);
    graph.setNode("first", { width: 0, height: 0 });
    graph.setNode("last", { width: 0, height: 0 });
    for (const each of members) {
      const role = nodes[each].role, id = String(each);
      const isRead = (graph.outEdges(id) ?? []).length > 0, hasInput = (graph.inEdges(id) ?? []).length > 0;
      if (role === "entry" || !hasInput) graph.setEdge("first", id, { weight: role === "entry" ? 20 : 0 }, "hidden");
      if (role === "exit" || !isRead) graph.setEdge(id, "last", { weight: role === "exit" ? 20 : 0 }, "hidden");
    }
    dagre.layout(graph);
    const levels = [...new Set(members.map((each) => graph.node(String(each)).y))].sort((a, b) => a - b);
    return new Map(members.map((each) => [each, levels.indexOf(graph.node(String(each)).y)]));
  }

  function graphOf(members, same, placed, length) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, edgesep: 12, marginx: 0, marginy: 0 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const each of members) graph.setNode(String(each), { ...size(each, placed) });
    for (const [key, edge] of same) {
      // a back edge is laid out downwards, so that the recurrence stays at the upper edge of its loop
      const [from, to] = edge.back ? [edge.to, edge.from] : [edge.from, edge.to];
      if (from !== to && to !== null) graph.setEdge(String(from), String(to), { edge, weight: edge.back ? 1 : 2, minlen: length(from, to) }, key);
    }
    return graph;
  }

  function place(id, same, placed) {
    const members = children.get(id).filter(shown);
    const rank = members.length ? ranks(members, same, placed) : new Map();
    const graph = graphOf(members, same, placed, (from, to) => Math.max(1, rank.get(to) - rank.get(from)));
    if (members.length) dagre.layout(graph);
    const { width = 0, height = 0 } = graph.graph();
    const top = id === -1 ? 0 : 34, pad = id === -1 ? 0 : 16;
    const outer = { width: Math.max(members.length ? width : 0, id === -1 ? 0 : label(id).length * 7.4 + 28) + 2 * pad, height: (members.length ? height : 0) + top + pad };
    const shift = (outer.width - (members.length ? width : 0)) / 2;
    const spots = members.map((each) => { const n = graph.node(String(each)); return { id: each, x: n.x + shift, y: n.y + top, width: n.width, height: n.height }; });
    const spot = (id) => spots.find((each) => String(each.id) === id);
    const borders = [...same.values()].filter((edge) => edge.to === null).map((edge) => ({ ...edge, to: id, points: toBorder(spot(String(edge.from)), outer.width) }));
    return { ...outer, members: spots, borders, lines: graph.edges().map((each) => [graph.edge(each), spot(each.v), spot(each.w)]).map(([each, from, to]) => ({ ...each.edge, points: anchored(each.points.map((p) => ({ x: p.x + shift, y: p.y + top })), from, to) })) };
  }

  // to the upper border from the upper edge of a box, or else to the nearer side
  function toBorder({ x, y, width, height }, whole) {
    if (y - height / 2 < 40) return [{ x, y: y - height / 2 }, { x, y: 0 }];
    return x < whole / 2 ? [{ x: x - width / 2, y }, { x: 0, y }] : [{ x: x + width / 2, y }, { x: whole, y }];
  }

  // ------------------------------------------------------------------ drawing

  // With vertical ends at the lower edge of one node and the upper one of the next, so that lines run aside between the
  // ranks of nodes, and not behind those of their own rank.
  function curve(points) {
    let path = `M${points[0].x} ${points[0].y}`;
    for (let i = 1; i < points.length; i++) {
      const a = points[i - 1], b = points[i], middle = (a.y + b.y) / 2;
      path += Math.abs(a.x - b.x) < 0.5 || a.y === b.y ? `L${b.x} ${b.y}` : `C${a.x} ${middle} ${b.x} ${middle} ${b.x} ${b.y}`;
    }
    return path;
  }
  // the points of an edge between two nodes, of which dagre's first and last are where straight lines meet the borders
  function anchored(points, from, to) {
    const inner = points.slice(1, -1), end = (spot, next) => Math.min(Math.max(next.x, spot.x - spot.width / 2 + 12), spot.x + spot.width / 2 - 12);
    const first = inner[0] ?? to, last = inner[inner.length - 1] ?? from;
    return [{ x: end(from, first), y: from.y + from.height / 2 }, ...inner, { x: end(to, last), y: to.y - to.height / 2 }];
  }

  function draw() {
    drawn = layout();
    const root = at("view");
    root.replaceChildren();
    const whole = drawn.get(-1), bad = new Set(data.findings.filter((each) => each.severity === "ERROR").map((each) => each.node));
    const stack = [[-1, root]];
    while (stack.length) {
      const [id, parent] = stack.pop(), region = drawn.get(id);
      for (const line of [...region.lines, ...region.borders]) {
        const points = line.back ? [...line.points].reverse() : line.points;
        const [kind, arrow] = [["edge", "arrow"], ["edge back", "back-arrow"], ["edge control", "control-arrow"]][line.kind];
        const path = svg("path", parent, { class: kind, d: curve(points), "marker-end": `url(#${arrow})`, "data-from": line.from, "data-to": line.to });
        svg("title", path, {}, line.tensors.slice(0, 20).join("\n"));
      }
      for (const member of region.members) {
        const node = nodes[member.id], kind = `node ${node.box ? `box ${node.kind}` : node.role || node.kind} ${member.id === chosen ? "chosen" : ""} ${bad.has(member.id) ? "bad" : ""}`;
        const group = svg("g", parent, { class: kind, "data-id": member.id, transform: `translate(${member.x - member.width / 2} ${member.y - member.height / 2})` });
        svg("rect", group, { width: member.width, height: member.height });
        if (node.box) {
          const sign = open.has(member.id) ? "\u25be " : "\u25b8 ";
          svg("text", group, { class: "label", x: 12, y: 20 }, sign + label(member.id, open.has(member.id) ? 80 : 34));
          if (!open.has(member.id)) svg("text", group, { class: "type", x: 12, y: 36 }, `${counts[member.id]} layers`);
        } else {
          const type = typeLine(node);
          svg("text", group, { class: "label", x: member.width / 2, y: 18, "text-anchor": "middle" }, label(member.id, 34));
          if (type) svg("text", group, { class: "type", x: member.width / 2, y: 33, "text-anchor": "middle" }, cut(type, 38));
        }
        if (open.has(member.id)) stack.push([member.id, group]);
      }
    }
    light();
    return whole;
  }

  const counts = nodes.map((node) => (node.box ? 0 : 1));
  for (let id = nodes.length - 1; id >= 0; id--) if (nodes[id].parent >= 0) counts[nodes[id].parent] += counts[id];

  const move = () => at("view").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
  function fit() {
    const area = at("graph").getBoundingClientRect(), whole = drawn.get(-1);
    view.k = Math.min(1.3, (area.width - 40) / Math.max(1, whole.width), (area.height - 40) / Math.max(1, whole.height));
    view.x = Math.max(20, (area.width - whole.width * view.k) / 2);
    view.y = Math.max(20, (area.height - whole.height * view.k) / 2);
    move();
  }
  // all of it, or its first node at a readable scale
  function begin() {
    fit();
    if (view.k >= 0.6) return;
    const first = drawn.get(-1).members[0], area = at("graph").getBoundingClientRect();
    view = { k: 0.8, x: area.width / 2 - first.x * 0.8, y: 20 };
    move();
  }
  function place_of(id) {
    let x = 0, y = 0;
    for (const each of ancestors(id)) {
      const member = drawn.get(nodes[each].parent).members.find((one) => one.id === each);
      if (!member) return null;
      x += member.x - member.width / 2; y += member.y - member.height / 2;
    }
    return { x, y };
  }
  function light() {
    for (const each of document.querySelectorAll(".edge")) each.classList.toggle("lit", chosen >= 0 && (each.dataset.from == chosen || each.dataset.to == chosen));
    for (const each of document.querySelectorAll(".node")) each.classList.toggle("chosen", each.dataset.id == chosen);
  }

  // ------------------------------------------------------------------ folding and choosing

  function toggle(id) {
    const before = place_of(id);
    open.has(id) ? open.delete(id) : open.add(id);
    draw();
    const after = place_of(id);
    view.x += (before.x - after.x) * view.k; view.y += (before.y - after.y) * view.k;
    move();
  }
  function openSome(most) {
    let count = children.get(-1).filter(shown).length;
    const queue = children.get(-1).filter((each) => nodes[each].box);
    while (queue.length) {
      const id = queue.shift(), more = children.get(id).filter(shown).length;
      if (count + more > most || nodes[id].name === "unused layers") continue;
      count += more; open.add(id);
      queue.push(...children.get(id).filter((each) => nodes[each].box));
    }
  }
  function reveal(id) {
    if (!shown(id)) { showsConstants = true; at("constants").checked = true; }
    for (const each of ancestors(id).slice(0, -1)) open.add(each);
    chosen = id;
    draw();
    const place = place_of(id), area = at("graph").getBoundingClientRect();
    view.k = Math.max(view.k, 0.8);
    view.x = area.width / 2 - place.x * view.k - 60; view.y = area.height / 2 - place.y * view.k - 20;
    move(); describe(id);
  }

  // ------------------------------------------------------------------ details

  const heading = (text) => html("h2", at("details"), {}, text);
  const paragraph = (text, kind = "") => html("p", at("details"), { class: kind }, text);
  function rows(list) {
    const table = html("table", at("details"));
    for (const [name, value, node] of list) {
      const row = html("tr", table), cell = html("td", row);
      if (node >= 0) html("a", cell, {}, name).addEventListener("click", () => reveal(node)); else cell.textContent = name;
      html("td", row, {}, value);
    }
  }
  const seconds = (value) => (value < 1e-3 ? `${(value * 1e6).toFixed(0)} \u00b5s` : value < 1 ? `${(value * 1e3).toFixed(2)} ms` : `${value.toFixed(2)} s`);
  const bytes = (value) => (value < 1024 ? `${value} B` : value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / (1 << 20)).toFixed(1)} MiB`);

  function spark(each) {
    const W = 360, H = 70, n = each.trips.length;
    const numbers = [...each.min, ...each.max].filter((one) => typeof one === "number");
    const low = Math.min(...numbers), high = Math.max(...numbers), span = high - low || 1;
    const x = (i) => 4 + (n > 1 ? (i * (W - 8)) / (n - 1) : (W - 8) / 2), y = (v) => H - 6 - ((v - low) * (H - 12)) / span;
    const chart = svg("svg", at("details"), { class: "chart", viewBox: `0 0 ${W} ${H}` });
    const defined = each.trips.map((_, i) => i).filter((i) => typeof each.mean[i] === "number");
    const line = (list, values) => list.map((i) => `${x(i)},${y(values[i])}`).join(" ");
    svg("polygon", chart, { points: `${line(defined, each.max)} ${line([...defined].reverse(), each.min)}`, fill: "var(--accent)", "fill-opacity": ".18" });
    svg("polyline", chart, { points: line(defined, each.mean), fill: "none", stroke: "var(--accent)", "stroke-width": "1.8" });
    each.nan.forEach((count, i) => { if (count) svg("circle", chart, { cx: x(i), cy: H - 5, r: 3, fill: "var(--bad)" }); });
    paragraph(`mean, minimum to maximum: ${low} to ${high}, iterations ${each.trips[0].join(", ")} to ${each.trips[n - 1].join(", ")}`, "soft");
  }
  function heat(each) {
    const columns = each.trips.length, lines = Math.max(...each.cells.map((one) => one.length));
    const numbers = each.cells.flat().filter((one) => typeof one === "number");
    const most = Math.max(1e-30, ...numbers.map(Math.abs)), W = 360, w = W / columns, h = Math.max(5, Math.min(14, 160 / lines));
    const chart = svg("svg", at("details"), { class: "chart heat", viewBox: `0 0 ${W} ${lines * h}`, "shape-rendering": "crispEdges" });
    each.cells.forEach((cells, i) => cells.forEach((value, j) => {
      const part = typeof value === "number" ? Math.abs(value) / most : 1;
      const fill = typeof value !== "number" ? "var(--bad)" : value < 0 ? "var(--back)" : "var(--accent)";
      const cell = svg("rect", chart, { x: i * w, y: j * h, width: w, height: h, fill, "fill-opacity": 0.06 + 0.94 * part });
      svg("title", cell, {}, `iteration ${each.trips[i].join(", ")}, element ${j}: ${value}`);
    }));
    paragraph(`element (down) by iteration (across), blue above 0, orange below, red not finite${each.size > lines ? `; ${lines} of ${each.size} elements` : ""}`, "soft");
  }
  function values(id) {
    for (const each of data.run?.nodes[id] ?? []) {
      heading("values of the run");
      if (each.trips.length === 1) { const some = each.cells[0]; paragraph((each.size > some.length ? [...some, "..."] : some).join("  ")); continue; }
      spark(each);
      if (each.size > 1) heat(each);
    }
  }
  function describe(id) {
    chosen = id;
    at("details").replaceChildren();
    if (id < 0) { overview(); light(); return; }
    const node = nodes[id];
    html("a", at("details"), {}, "\u2190 overview").addEventListener("click", () => describe(-1));
    html("h1", at("details"), { id: "chosen-name" }, node.name || `${node.kind} %${node.index}`);
    paragraph(node.index === undefined ? node.kind : `${node.kind}, layer ${node.index}`, "soft");
    if (node.source) paragraph(node.source, "soft");
    for (const each of data.findings) if (each.node === id) finding(each, at("details"));
    if (node.box) html("button", at("details"), {}, open.has(id) ? "Fold" : "Unfold").addEventListener("click", () => { toggle(id); describe(id); });
    if (node.strategy) {
      heading("how the loop runs");
      paragraph(`${node.strategy.name}, because ${node.strategy.why}`);
      if (node.strategy.trips !== null) paragraph(`${node.strategy.trips} iterations`);
      if (node.batched.length) paragraph(`for many iterations at once: ${node.batched.join(", ")}`);
    }
    if (node.inputs?.length) { heading("inputs"); rows(node.inputs); }
    if (node.outputs?.length) { heading("outputs"); rows(node.outputs); }
    if (node.attributes?.length) { heading("attributes"); rows(node.attributes); }
    if (outputsOf[id].length) { heading(node.outputs?.length ? "read by" : "controls"); rows(outputsOf[id].slice(0, 100).map(([, to, tensor, kind]) => [label(to), kind === BACK ? "next iteration" : tensor, to])); }
    if (node.notes) { heading("passes"); for (const each of node.notes) note(data.engine.notes[each]); }
    values(id);
    if (node.means) { heading("meaning"); paragraph(node.means, "soft"); }
    light();
  }
  function finding(each, into, shows) {
    const text = html("p", into, { class: each.severity === "ERROR" ? "bad" : "" }, each.text);
    if (shows && each.node >= 0) html("a", text, {}, "  show").addEventListener("click", () => reveal(each.node));
  }
  const note = (each) => { paragraph(`${each.by}: ${each.what}`).title = each.rule; };
  function compare() {
    const dialog = html("dialog", document.body), form = html("form", dialog, { method: "dialog" });
    html("strong", form, {}, "The network before and after the passes");
    const bar = html("span", form, { class: "bar-of" });
    html("button", form, {}, "Close");
    const jump = aligned(data.engine.rewritten, dialog, bar);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
    jump(1);
  }
  function overview() {
    html("h1", at("details"), {}, "Overview");
    paragraph(data.summary, "soft");
    if (data.undefined) paragraph(`The nesting is undefined: ${data.undefined}`, "bad");
    const loops = nodes.map((node, id) => [node, id]).filter(([node]) => node.kind === "loop");
    if (loops.length) { heading("loops"); rows(loops.slice(0, 100).map(([node, id]) => [node.name, node.strategy ? `${node.strategy.name}${node.strategy.trips === null ? "" : `, ${node.strategy.trips} iterations`}` : "", id])); }
    const [ofTensorRT, findings] = [true, false].map((is) => data.findings.filter((each) => (each.severity === "PORTABILITY") === is));
    if (findings.length) { heading("findings"); for (const each of findings.slice(0, 50)) finding(each, at("details"), true); }
    if (ofTensorRT.length) {
      const fold = html("details", at("details"), { id: "tensorrt" });
      html("summary", fold, {}, `In TensorRT: ${ofTensorRT.length} finding${ofTensorRT.length > 1 ? "s" : ""}`);
      for (const each of ofTensorRT.slice(0, 50)) finding(each, fold, true);
    }
    if (data.run) { heading("run");
      if (data.run.error) paragraph(data.run.error, "bad");
      const first = data.run.not_finite;
      if (!first) paragraph("All computed values are finite.");
      else html("a", paragraph(`Not finite first: ${first.tensor}${first.trips.length ? `, iteration ${first.trips.join(", ")}` : ""} `, "bad"), {}, "show").addEventListener("click", () => reveal(first.node));
    }
    for (const peer of data.peers) { heading(`compared with ${peer.peer}`);
      for (const row of peer.rows) paragraph(`${row.output}: ${row.what}`, row.agrees ? "" : "bad");
      if (peer.node >= 0) html("a", at("details"), {}, "show").addEventListener("click", () => reveal(peer.node));
    }
    if (!data.engine) return;
    if (data.engine.error) paragraph(data.engine.error, "bad");
    if (data.engine.phases.length) { heading("time");
      const most = Math.max(...data.engine.phases.map((each) => each[1]));
      const table = html("table", at("details"));
      for (const [name, value] of data.engine.phases) { const row = html("tr", table);
        html("td", row, {}, name); const cell = html("td", row, { style: "width:45%" }); const bar = html("div", cell, { class: "bar" }); bar.style.width = `${(100 * value) / most}%`;
        html("td", row, {}, seconds(value)); }
    }
    if (data.engine.times.length) { heading("time by layer"); rows(data.engine.times.map(([name, value, node]) => [name, seconds(value), node])); }
    heading("memory"); rows([["weights", bytes(data.engine.weights)], ["scratch", bytes(data.engine.scratch)]]);
    const launches = data.engine.launches;
    if (launches) { heading("launches on the GPU");
      rows([["a call", launches.total === null ? "as many as the run decides" : `${launches.total}`], ["outside of loops", `${launches.entry}`],
        ...launches.loops.slice(0, 100).map((each) => [`an iteration of ${each.name}`, `${each.launches}${each.iterations === null ? "" : `, ${each.iterations} iterations`}`])]);
    }
    heading("passes");
    if (!data.engine.notes.length) paragraph("No pass changed the latest program, or none is compiled yet.", "soft");
    for (const each of data.engine.notes.slice(0, 200)) note(each);
    if (data.engine.rewritten.some(([kind]) => kind !== "equal"))
      html("button", at("details"), { id: "compare" }, "Before and after").addEventListener("click", compare);
  }

  // ------------------------------------------------------------------ search, zoom, pan

  function search() {
    const wanted = at("search").value.trim().toLowerCase();
    at("hits").replaceChildren();
    at("hits").hidden = !wanted;
    if (!wanted) return [];
    const texts = (node) => [node.name, node.kind, `%${node.index}`, ...(node.outputs ?? []).map((each) => each[0])];
    const found = nodes.map((_, id) => id).filter((id) => texts(nodes[id]).some((each) => each.toLowerCase().includes(wanted)));
    const exact = (id) => (texts(nodes[id]).some((each) => each.toLowerCase() === wanted) ? 0 : 1);
    found.sort((a, b) => exact(a) - exact(b) || a - b);
    for (const id of found.slice(0, 60)) {
      const where = nodes[id].index === undefined ? "" : `   %${nodes[id].index}`;
      html("button", at("hits"), { class: "hit" }, label(id) + where).addEventListener("click", () => { at("hits").hidden = true; reveal(id); });
    }
    if (!found.length) html("p", at("hits"), { class: "soft" }, "nothing has this name");
    return found;
  }
  at("search").addEventListener("input", search);
  at("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") { const found = search(); if (found.length) { at("hits").hidden = true; reveal(found[0]); } }
    if (event.key === "Escape") at("hits").hidden = true;
  });
  at("open-all").addEventListener("click", () => { openSome(600); draw(); begin(); });
  at("fold-all").addEventListener("click", () => { open.clear(); draw(); begin(); });
  at("fit").addEventListener("click", fit);
  at("save").addEventListener("click", () => {
    const picture = at("graph").cloneNode(true), whole = drawn.get(-1), style = document.querySelector("style").textContent;
    picture.querySelector("#view").removeAttribute("transform");
    for (const [name, value] of [["xmlns", "http://www.w3.org/2000/svg"], ["viewBox", `-10 -10 ${whole.width + 20} ${whole.height + 20}`], ["width", whole.width + 20], ["height", whole.height + 20]]) picture.setAttribute(name, value);
    svg("style", picture, {}, style);
    const link = html("a", document.body, { download: "network.svg", href: URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" })) });
    link.click(); link.remove();
  });
  at("constants").addEventListener("change", (event) => { showsConstants = event.target.checked; draw(); });
  at("graph").addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 500), k = Math.min(4, Math.max(0.05, view.k * factor));
    const area = at("graph").getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top;
    view = { x: x - ((x - view.x) * k) / view.k, y: y - ((y - view.y) * k) / view.k, k };
    move();
  }, { passive: false });
  let grip = null;
  at("graph").addEventListener("pointerdown", (event) => { grip = { x: event.clientX, y: event.clientY, moved: false }; });
  window.addEventListener("pointermove", (event) => {
    if (!grip) return;
    const dx = event.clientX - grip.x, dy = event.clientY - grip.y;
    if (!grip.moved && Math.hypot(dx, dy) < 4) return;
    grip = { x: event.clientX, y: event.clientY, moved: true };
    view.x += dx; view.y += dy; move();
  });
  window.addEventListener("pointerup", (event) => {
    const moved = grip?.moved, inside = grip !== null;
    grip = null;
    if (moved || !inside) return;
    const group = event.target.closest?.(".node");
    if (!group) { describe(-1); return; }
    const id = Number(group.dataset.id);
    if (nodes[id].box) toggle(id);
    describe(id);
  });

  at("title").textContent = data.summary;
  document.title = `${data.summary} - netloop`;
  openSome(MOST_OPEN);
  draw();
  begin();
  // a page in a frame that is not open yet has no size to fit
  if (!at("graph").clientWidth) new ResizeObserver((_, observer) => { if (at("graph").clientWidth) { observer.disconnect(); begin(); } }).observe(at("graph"));
  describe(-1);
  document.body.dataset.ready = "1";
})();
