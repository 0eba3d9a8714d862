// Parallel coordinates: an axis for each column, a line for each member, ranges that select members.

const TOP = 10, BOTTOM = 30, HEIGHT = 300, LEAST_WIDTH = 92, BUDGET_MS = 14;

class Parallel {
  constructor(members, place) {
    this.members = members;
    this.place = place;
    this.stage = place.querySelector(".stage");
    this.labels = place.querySelector(".labels");
    [this.behind, this.canvas] = place.querySelectorAll("canvas");
    this.svg = place.querySelector("svg");
    members.listen((what) => this.update(what));
    new ResizeObserver(() => this.layOut()).observe(place);
    this.layOut();
  }

  layOut() {
    const columns = this.members.columns;
    const room = this.place.clientWidth;
    if (!room || room === this.room) return;
    this.room = room;
    this.step = Math.max(LEAST_WIDTH, room / columns.length);
    this.width = Math.max(room, this.step * columns.length);
    this.stage.style.width = `${this.width}px`;
    this.build();
  }

  build() {
    const height = TOP + HEIGHT + BOTTOM;
    this.raster = new Raster(this.canvas, this.width, height);
    this.shadow = new Raster(this.behind, this.width, height);
    this.scales = this.members.columns.map(scaleOf);
    this.x = this.members.columns.map((_, c) => (c + 0.5) * this.step);
    const ratio = this.raster.ratio;
    this.lines = this.members.columns.map((column, c) => {
      const { to } = this.scales[c];
      return Float32Array.from(column.values, (v) => ratio * this.height(Number.isNaN(v) ? NaN : to(v)));
    });
    this.drawAxes();
    this.restart(this.shadow);
    this.restart(this.raster);
  }

  // Members without a value cross an axis below its end.
  height(t) {
    return Number.isNaN(t) ? TOP + HEIGHT + 18 : TOP + HEIGHT * (1 - Math.max(-0.02, Math.min(1.02, t)));
  }

  update(what) {
    if (what.has("colour") || what.has("brush")) this.restart(this.raster);
    if (what.has("brush")) this.drawBrushes();
    if (what.has("pick") || what.has("brush")) this.drawPicked();
  }

  restart(raster) {
    raster.next = 0;
    raster.clear();
    this.shades = this.members.shades();
    this.work(raster);
  }

  // As many lines as there is time for in this frame; the others in the next ones.
  work(raster) {
    if (raster.request) cancelAnimationFrame(raster.request);
    raster.request = 0;
    const { members, lines, shades } = this;
    const { order, passes, size } = members;
    const all = raster === this.shadow;
    const ends = this.x.map((x) => x * raster.ratio);
    const began = performance.now();
    while (raster.next < size) {
      const row = order[raster.next++];
      if (all || passes[row]) {
        const shade = Number.isNaN(shades[row]) ? 0 : shades[row];
        if (lines.length === 1) raster.line(ends[0] - 12, lines[0][row], ends[0] + 12, lines[0][row], shade);
        for (let c = 1; c < lines.length; c++) {
          raster.line(ends[c - 1], lines[c - 1][row], ends[c], lines[c][row], shade);
        }
      }
      if (raster.next % 128 === 0 && performance.now() - began > BUDGET_MS) break;
    }
    const count = all ? size : Math.max(1, members.passing);
    const alpha = Math.max(0.1, Math.min(0.9, 12 / Math.sqrt(count)));
    raster.show(all ? alpha * 0.25 : alpha, all ? 128 : undefined);
    if (raster.next < size) {
      raster.request = requestAnimationFrame(() => {
        const start = performance.now();
        this.work(raster);
        members.frames.push(performance.now() - start);
      });
    }
  }

  get done() {
    return this.raster.next >= this.members.size && this.shadow.next >= this.members.size;
  }

  drawAxes() {
    const { members, svg } = this;
    svg.replaceChildren();
    svg.setAttribute("width", this.width);
    svg.setAttribute("height", TOP + HEIGHT + BOTTOM);
    this.labels.replaceChildren();
    members.columns.forEach((column, c) => {
      const x = this.x[c], scale = this.scales[c];
      const label = element("button", `label ${column.kind}`, heading(column));
      label.type = "button";
      label.style.left = `${x - this.step / 2}px`;
      label.style.width = `${this.step}px`;
      const canLog = !column.words.length && column.low > 0 && column.high > column.low;
      label.title = `${column.name}${column.about ? `: ${column.about}` : ""}${canLog ? ". Click: linear or logarithmic axis" : ""}`;
      if (scale.log) label.append(element("span", "dim", " log"));
      label.onclick = () => {
        if (!canLog) return;
        column.log = !column.log;
        this.build();
        members.tell("scale");
      };
      this.labels.append(label);
      svg.append(drawn("line", { x1: x, x2: x, y1: TOP, y2: TOP + HEIGHT, class: "axis" }));
      for (const tick of ticksOf(column, scale, 5)) {
        const y = this.height(scale.to(tick));
        svg.append(drawn("line", { x1: x - 4, x2: x, y1: y, y2: y, class: "axis" }));
        const words = column.words.length ? shortWords(column.words[tick], this.step) : formatted(tick, digitsOf(scale));
        svg.append(drawn("text", { x: x - 6, y: y + 4, class: "tick", "text-anchor": "end" }, words));
      }
      if (column.missing) {
        const y = this.height(NaN);
        svg.append(drawn("line", { x1: x - 5, x2: x + 5, y1: y, y2: y, class: "axis" }));
        svg.append(drawn("text", { x: x - 7, y: y + 4, class: "tick", "text-anchor": "end" }, "none"));
      }
      svg.append(this.handle(column, c, x));
    });
    this.over = drawn("g", { "pointer-events": "none" });
    this.line = drawn("polyline", { class: "picked", "pointer-events": "none" });
    svg.append(this.over, this.line);
    this.drawBrushes();
    this.drawPicked();
  }

  drawPicked() {
    const row = this.members.picked;
    const points = row < 0 ? [] : this.lines.map((line, c) => `${this.x[c]},${line[row] / this.raster.ratio}`);
    this.line.setAttribute("points", points.join(" "));
  }

  drawBrushes() {
    this.over.replaceChildren();
    for (const [index, [low, high]] of this.members.brushes) {
      const { to } = this.scales[index];
      const top = this.height(Math.min(1, to(high))), bottom = this.height(Math.max(0, to(low)));
      const box = { x: this.x[index] - 8, width: 16, y: top, height: Math.max(2, bottom - top) };
      this.over.append(drawn("rect", { ...box, class: "brush" }));
    }
    for (const handle of this.svg.querySelectorAll(".handle")) {
      const column = this.members.columns[handle.dataset.column];
      const range = this.members.brushes.get(column.index);
      const words = range ? rangeWords(column, range) : "all members";
      handle.setAttribute("aria-valuetext", words);
      handle.setAttribute("aria-valuenow", range ? (range[0] + range[1]) / 2 : 0);
    }
  }

  // Where a pointer or the keyboard takes hold of an axis.
  handle(column, c, x) {
    const box = { x: x - 16, width: 32, y: 0, height: TOP + HEIGHT + 8, class: "handle" };
    const name = `select members by ${heading(column)}: arrows move a range, with Shift they widen it, Escape ends it`;
    const made = drawn("rect", { ...box, tabindex: 0, role: "slider", "aria-label": name, "data-column": c });
    const at = (event) => {
      const inside = event.clientY - this.svg.getBoundingClientRect().top;
      return Math.max(0, Math.min(1, 1 - (inside - TOP) / HEIGHT));
    };
    const set = (a, b) => {
      const { from } = this.scales[c];
      const [low, high] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))];
      this.members.brush(c, [low <= 0 ? -Infinity : from(low), high >= 1 ? Infinity : from(high)]);
    };
    const now = () => {
      const range = this.members.brushes.get(c);
      const { to } = this.scales[c];
      const inside = (v, end) => (Number.isFinite(v) ? to(v) : end);
      return range && [inside(range[0], 0), inside(range[1], 1)];
    };
    let held = null;
    made.onpointerdown = (event) => {
      made.setPointerCapture(event.pointerId);
      const t = at(event), range = now(), near = 7 / HEIGHT;
      if (range && Math.abs(t - range[0]) < near) held = { fixed: range[1] };
      else if (range && Math.abs(t - range[1]) < near) held = { fixed: range[0] };
      else if (range && t > range[0] && t < range[1]) held = { from: t, range };
      else held = { fixed: t, fresh: true };
    };
    made.onpointermove = (event) => {
      if (!held) return;
      const t = at(event);
      if (held.range) {
        const by = Math.max(-held.range[0], Math.min(1 - held.range[1], t - held.from));
        held.moved = held.moved || Math.abs(by) * HEIGHT > 2;
        if (held.moved) set(held.range[0] + by, held.range[1] + by);
      } else if (!held.fresh || Math.abs(t - held.fixed) * HEIGHT > 3) {
        held.fresh = false;
        set(held.fixed, t);
      }
    };
    made.onpointerup = () => {
      if (held && (held.fresh || (held.range && !held.moved))) this.members.brush(c, null);
      held = null;
    };
    made.onkeydown = (event) => {
      const sign = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (event.key === "Escape") this.members.brush(c, null);
      else if (sign) {
        event.preventDefault();
        const range = now() ?? (sign > 0 ? [0.5, 1] : [0, 0.5]);
        const by = now() ? 0.02 * sign : 0;
        if (event.shiftKey) set(range[0] - by / 2, Math.max(range[0] + 0.01, range[1] + by / 2));
        else {
          const free = Math.max(-range[0], Math.min(1 - range[1], by));
          set(range[0] + free, range[1] + free);
        }
      }
    };
    return made;
  }
}

function rangeWords(column, [low, high]) {
  if (column.words.length) return column.words.filter((_, i) => i >= low && i <= high).join(", ");
  const a = Number.isFinite(low) ? formatted(low, 4) : "", b = Number.isFinite(high) ? formatted(high, 4) : "";
  const unit = column.unit ? ` ${column.unit}` : "";
  return a && b ? `${a} to ${b}${unit}` : a ? `≥ ${a}${unit}` : b ? `≤ ${b}${unit}` : "all with a value";
}

function shortWords(words, room) {
  const most = Math.max(4, Math.floor((room - 20) / 6.5));
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}
