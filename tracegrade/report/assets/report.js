"use strict";
// Draws the timelines of the page when they are opened. Every text is set as text: nothing here makes markup of data.
(function () {
  const CHUNK = 120;
  const ROW = 16;
  const SVG = "http://www.w3.org/2000/svg";
  const timelines = JSON.parse(document.getElementById("data").textContent);

  function el(tag, cls, text) {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text !== undefined && text !== null) node.textContent = text;
    return node;
  }

  function shape(tag, attributes, text) {
    const node = document.createElementNS(SVG, tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (text) node.textContent = text;
    return node;
  }

  function time(ms) {
    if (ms === null) return "no time";
    if (ms === 0) return "0 s";
    if (ms < 1) return Math.round(ms * 1000) + " µs";
    if (ms < 1000) return Math.round(ms) + " ms";
    if (ms < 120000) return (ms / 1000).toFixed(2) + " s";
    return (ms / 60000).toFixed(1) + " min";
  }

  function worst(step, findings) {
    const told = step.findings.map((i) => findings[i]).filter((f) => !f.waived && f.level === "error");
    if (told.some((f) => f.verdict !== "unknown")) return "violated";
    return told.length ? "unsure" : "";
  }

  function card(step, data) {
    const node = el("div", "step " + step.kind + " " + worst(step, data.findings));
    node.dataset.seq = step.seq;
    const head = el("div", "head");
    const at = step.at_ms === null ? "" : "+" + time(step.at_ms);
    head.append(el("span", "at", "#" + step.seq + (step.turn === null ? "" : " · turn " + step.turn) + (at ? " · " + at : "")));
    head.append(el("span", "label", step.label));
    if (step.kind !== "message" && step.ms !== null) head.append(el("span", "at", step.open ? "no end" : time(step.ms)));
    node.append(head);
    if (step.kind === "tool_call") {
      const line = el("div", "result-line", "→ ");
      line.append(el("span", "status-" + (step.status || "unsure"), step.status_text));
      line.append(document.createTextNode(" " + step.result));
      node.append(line);
    }
    for (const i of step.findings) {
      const f = data.findings[i];
      const cls = f.level !== "error" || f.waived ? "note" : f.verdict;
      node.append(el("div", "why " + cls, f.rule + " (" + f.verdict + (f.waived ? ", waived" : "") + "): " + f.text));
    }
    const more = el("details");
    const where = (step.agent ? "agent " + step.agent + " · " : "") + (step.spans.length ? "span " + step.spans.join(", ") : "no span");
    more.append(el("summary", "", where + (step.more_spans ? " and " + step.more_spans + " more" : "")));
    more.addEventListener("toggle", function () {
      if (more.childElementCount > 1) return;
      for (const [name, text] of step.details) {
        more.append(el("div", "at", name));
        more.append(el("pre", "", text));
      }
      if (!step.details.length) more.append(el("div", "at", "nothing more was recorded"));
    });
    node.append(more);
    return node;
  }

  // Steps of one group become one block, so that they stand beside each other.
  function blocks(steps) {
    const found = [];
    for (const step of steps) {
      const last = found[found.length - 1];
      if (last && step.group !== null && last[0].group === step.group) last.push(step);
      else found.push([step]);
    }
    return found;
  }

  function stepList(holder, data) {
    const list = el("ol", "steps");
    const all = blocks(data.steps);
    const tail = el("div", "bar-tools");
    const note = el("span", "note");
    const button = el("button", "", "Show more");
    let shown = 0;
    function more() {
      const part = document.createDocumentFragment();
      for (const block of all.slice(shown, shown + CHUNK)) {
        const item = el("li", "block");
        let beside = item;
        if (block.length > 1) {
          const unsure = block[0].order === "unknown";
          item.className = unsure ? "block parallel unsure" : "block parallel";
          item.append(el("div", "note", unsure ? "order not shown by the spans" : "parallel"));
          beside = el("div", "beside");
          item.append(beside);
        }
        for (const step of block) beside.append(card(step, data));
        part.append(item);
      }
      shown = Math.min(all.length, shown + CHUNK);
      list.append(part);
      const steps = list.querySelectorAll(".step").length;
      note.textContent = steps + " of " + data.steps.length + " steps";
      button.hidden = shown >= all.length;
    }
    button.addEventListener("click", more);
    tail.append(note, button);
    holder.append(list, tail);
    more();
    if ("IntersectionObserver" in window) {
      new IntersectionObserver(function (entries) {
        if (entries[0].isIntersecting && shown < all.length) more();
      }).observe(tail);
    }
    return function find(seq) {
      const place = all.findIndex((block) => block.some((step) => step.seq === seq));
      while (shown <= place) more();
      for (const old of list.querySelectorAll(".found")) old.classList.remove("found");
      const node = list.querySelector('.step[data-seq="' + Number(seq) + '"]');
      if (node) {
        node.classList.add("found");
        node.scrollIntoView({ block: "center" });
      }
    };
  }

  function bars(holder, data, find) {
    const timed = data.steps.filter((step) => step.lane !== null);
    if (!timed.length) return;
    const whole = Math.max(data.span_ms, 0.001);
    const tools = el("div", "bar-tools");
    const lanes = el("div", "lanes");
    const label = el("span", "note");
    let from = 0;
    let length = whole;

    function draw() {
      const width = Math.max(300, holder.clientWidth || 900);
      const height = data.lanes * ROW + 22;
      const svg = shape("svg", { class: "bars", viewBox: "0 0 " + width + " " + height, height: height, role: "img" });
      for (let i = 0; i <= 4; i++) {
        const x = (width * i) / 4;
        svg.append(shape("line", { class: "grid", x1: x, x2: x, y1: 18, y2: height }));
        const anchor = i === 0 ? "start" : i === 4 ? "end" : "middle";
        svg.append(shape("text", { x: x, y: 12, "text-anchor": anchor }, "+" + time(from + (length * i) / 4)));
      }
      const seen = new Set();
      for (const step of timed) {
        const x = ((step.at_ms - from) / length) * width;
        const w = Math.max(2, (step.ms / length) * width);
        if (x + w < 0 || x > width) continue;
        const cls = step.kind + " " + worst(step, data.findings) + (step.open ? " open" : "");
        const key = [step.lane, Math.round(x), Math.round(w), cls].join();
        if (seen.has(key)) continue; // bars of one pixel and colour are drawn once
        seen.add(key);
        const bar = shape("rect", { class: cls, x: x, y: 18 + step.lane * ROW, width: w, height: ROW - 3, rx: 2 });
        bar.append(shape("title", {}, "#" + step.seq + " " + step.label + " " + (step.open ? "no end" : time(step.ms))));
        bar.addEventListener("click", () => find(step.seq));
        svg.append(bar);
      }
      lanes.replaceChildren(svg);
      label.textContent = "showing " + time(length) + " of " + time(whole);
    }

    function zoom(factor, shift) {
      const middle = from + length / 2 + shift * length;
      length = Math.min(whole, Math.max(whole / 1e6, length * factor));
      from = Math.min(whole - length, Math.max(0, middle - length / 2));
      draw();
    }

    for (const [text, factor, shift] of [["Zoom in", 0.5, 0], ["Zoom out", 2, 0], ["◀", 1, -0.5], ["▶", 1, 0.5], ["All", 1e9, 0]]) {
      const button = el("button", "", text);
      button.addEventListener("click", () => zoom(factor, shift));
      tools.append(button);
    }
    tools.append(label);
    holder.prepend(tools, lanes);
    draw();
    window.addEventListener("resize", draw);
  }

  function open(details) {
    const holder = details.querySelector(".timeline");
    if (!holder || holder.childElementCount) return;
    const data = timelines[Number(holder.dataset.timeline)];
    const find = stepList(holder, data);
    bars(holder, data, find);
  }

  const all = document.querySelectorAll("details.trajectory");
  for (const details of all) {
    details.addEventListener("toggle", function () {
      if (details.open) open(details);
    });
  }
  function follow() {
    const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
    if (target && target.matches("details.trajectory")) {
      target.open = true;
      open(target);
      target.scrollIntoView();
    }
  }
  window.addEventListener("hashchange", follow);
  follow();
  if (all.length === 1 && !location.hash) {
    all[0].open = true;
    open(all[0]);
  }
})();
