// Any two columns against each other, the front of the two, and the member under the pointer.

class Scatter {
  constructor(members, place) {
    this.members = members;
    this.frame = new Frame(place.querySelector(".picture"), 330);
    this.told = place.querySelector("output");
    [this.x, this.xBetter, this.y, this.yBetter] = place.querySelectorAll("select");
    const { columns, figures, parameters, study } = members;
    const numeric = [...figures, ...parameters];
    const [first, second] = study.axes;
    chooser(this.x, numeric, first);
    chooser(this.y, numeric, second);
    const better = (select, axis) => (select.value = columns[axis.value].direction ?? "minimise");
    better(this.xBetter, this.x);
    better(this.yBetter, this.y);
    this.x.onchange = () => (better(this.xBetter, this.x), this.draw());
    this.y.onchange = () => (better(this.yBetter, this.y), this.draw());
    this.xBetter.onchange = this.yBetter.onchange = () => this.draw();
    const svg = this.frame.svg;
    svg.onpointermove = (event) => this.point(this.nearest(event));
    svg.onpointerleave = () => this.point(-1);
    svg.onclick = (event) => {
      const row = this.nearest(event);
      if (row >= 0) members.pick(row);
    };
    svg.onkeydown = (event) => this.move(event);
    members.listen((what) => {
      if (["brush", "colour", "scale"].some((w) => what.has(w))) this.draw();
      else if (what.has("pick")) this.mark();
    });
    new ResizeObserver(() => this.draw()).observe(this.frame.place);
  }

  draw() {
    if (!this.frame.measure()) return;
    const { members, frame } = this;
    const x = members.columns[this.x.value], y = members.columns[this.y.value];
    const inset = (scale) => ({ ...scale, to: (v) => 0.03 + 0.94 * scale.to(v) });
    this.xScale = inset(scaleOf(x));
    this.yScale = inset(scaleOf(y));
    if (!this.raster || this.raster.room !== frame.width) {
      this.raster = new Raster(frame.canvas, frame.width, frame.height);
      this.raster.room = frame.width;
    }
    const { raster } = this;
    raster.clear();
    const { ratio } = raster;
    const radius = ratio * Math.max(1.2, Math.min(3.5, 90 / Math.sqrt(Math.max(1, members.passing))));
    const shades = members.shades();
    const rows = [];
    for (const row of members.order) {
      if (!members.passes[row]) continue;
      const a = x.values[row], b = y.values[row];
      if (Number.isNaN(a) || Number.isNaN(b)) continue;
      rows.push(row);
      const px = this.xScale.to(a) * frame.width * ratio, py = (1 - this.yScale.to(b)) * frame.height * ratio;
      raster.dot(px, py, radius, Number.isNaN(shades[row]) ? 0 : shades[row]);
    }
    this.rows = rows;
    raster.show(Math.max(0.35, Math.min(0.95, 60 / Math.sqrt(Math.max(1, rows.length)))));
    frame.axes(x, y, this.xScale, this.yScale);
    this.drawFront(x, y);
    this.mark();
    this.told.textContent = `${counted(rows.length, "point")}, ${this.front.length.toLocaleString("en")} on the front${members.study.limited ? " of those that keep the limits" : ""}`;
  }

  at(row) {
    const x = this.members.columns[this.x.value], y = this.members.columns[this.y.value];
    return [LEFT + this.xScale.to(x.values[row]) * this.frame.width, ABOVE + (1 - this.yScale.to(y.values[row])) * this.frame.height];
  }

  // Who may be on a front: those that keep the limits, where there are limits that some member keeps.
  able() {
    const { study, outside } = this.members;
    return this.rows.filter((row) => !study.limited || !outside[row]);
  }

  drawFront(x, y) {
    const signs = { minimise: 1, maximise: -1 };
    const [sx, sy] = [signs[this.xBetter.value], signs[this.yBetter.value]];
    this.front = x === y ? [] : frontOf(x.values, y.values, this.able(), sx, sy);
    const points = this.front.map((row) => this.at(row));
    const { svg } = this.frame;
    // Between two members of the front, neither's corner is beaten: the line goes by steps.
    const steps = points.flatMap((p, k) => (k ? [[p[0], points[k - 1][1]], p] : [p]));
    svg.append(drawn("polyline", { class: "front", points: steps.map((p) => p.join(",")).join(" ") }));
    for (const [px, py] of points.slice(0, 400)) svg.append(drawn("circle", { cx: px, cy: py, r: 4, class: "front" }));
    const noted = this.members.study.search.front ?? [];
    for (const member of noted) {
      const row = this.members.rowOf.get(member);
      if (row === undefined || !this.members.passes[row]) continue;
      const [px, py] = this.at(row);
      if (Number.isNaN(px + py)) continue;
      svg.append(drawn("rect", { x: px - 5, y: py - 5, width: 10, height: 10, class: "found" }));
    }
  }

  mark() {
    const { svg } = this.frame;
    svg.querySelector(".picked")?.remove();
    const row = this.members.picked;
    if (row < 0 || !this.xScale) return;
    const [cx, cy] = this.at(row);
    if (!Number.isNaN(cx + cy)) svg.append(drawn("circle", { cx, cy, r: 7, class: "picked" }));
  }

  nearest(event) {
    const box = this.frame.svg.getBoundingClientRect();
    const [mx, my] = [event.clientX - box.left, event.clientY - box.top];
    let best = -1, least = 20 ** 2;
    for (const row of this.rows ?? []) {
      const [px, py] = this.at(row);
      const away = (px - mx) ** 2 + (py - my) ** 2;
      if (away < least) [best, least] = [row, away];
    }
    return best;
  }

  point(row) {
    if (row < 0) return;
    const x = this.members.columns[this.x.value], y = this.members.columns[this.y.value];
    const words = [x, y].map((c) => `${c.name} ${withUnit(c.values[row], c, 4)}`);
    this.told.textContent = `member ${this.members.number[row]}: ${words.join(", ")}. Click for all of it`;
  }

  // Along the front by arrows.
  move(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step || !this.front.length) return;
    event.preventDefault();
    const now = this.front.indexOf(this.members.picked);
    const next = now < 0 ? 0 : Math.max(0, Math.min(this.front.length - 1, now + step));
    this.members.pick(this.front[next]);
    this.point(this.front[next]);
  }
}
