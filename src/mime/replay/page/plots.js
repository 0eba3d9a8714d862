// Curves over time. The cursor of all plots stands at the page's time; dragging in one moves it.
import uPlot from "uplot";

const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8833", "#7f7f7f"];

export class Plots {
  constructor(place, scene, motion, onTime) {
    this.place = place;
    this.motion = motion;
    this.onTime = onTime;
    this.range = null;
    this.items = (scene.plots || []).map((plot) => this.section(plot));
    new ResizeObserver(() => this.resize()).observe(place);
  }

  section(plot) {
    const box = document.createElement("details");
    box.className = "plot";
    box.open = Boolean(plot.open);
    const heading = document.createElement("summary");
    heading.textContent = plot.title;
    const inside = document.createElement("div");
    box.append(heading, inside);
    this.place.append(box);
    const item = { plot, box, inside, u: null };
    box.addEventListener("toggle", () => this.show(item));
    return item;
  }

  showAll() {
    this.items.forEach((item) => this.show(item));
  }

  // A plot is made when it is first seen.
  show(item) {
    if (item.u) {
      item.u.destroy();
      item.u = null;
    }
    item.inside.textContent = "";
    if (!item.box.open) return;
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue("--ink").trim();
    const faint = css.getPropertyValue("--line").trim();
    const axis = { stroke: ink, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 } };
    const value = (u, x) => (x === null || x === undefined ? "–" : Number(x).toPrecision(5));
    const options = {
      width: Math.max(this.place.clientWidth - 8, 200),
      height: 170,
      scales: { x: { time: false, range: (u, low, high) => this.range || [low, high] } },
      axes: [
        { ...axis, size: 30, values: (u, at) => at.map((x) => `${+x.toPrecision(6)} s`) },
        { ...axis, size: 62, values: (u, at) => at.map((x) => `${+x.toPrecision(4)}`) },
      ],
      series: [
        { label: "t", value: (u, x) => (x === null ? "–" : `${Number(x).toFixed(3)} s`) },
        ...item.plot.curves.map((curve, i) => ({
          label: curve.label,
          stroke: COLOURS[(curve.colour ?? i) % COLOURS.length],
          width: 1.5,
          dash: curve.dashed ? [6, 4] : undefined,
          points: { show: false },
          value,
        })),
      ],
      cursor: { drag: { x: false, y: false, setScale: false }, y: false, bind: still() },
      legend: { live: true, isolate: false },
      hooks: { draw: [(u) => this.follow(u)] }, // places are known only then
    };
    item.u = new uPlot(options, this.data(item.plot), item.inside);
    this.handle(item.u);
  }

  data(plot) {
    const { motion } = this;
    const samples = motion.time.length;
    return [
      motion.time,
      ...plot.curves.map((curve) => {
        const y = new Float64Array(samples);
        for (let s = 0; s < samples; s++) {
          y[s] = curve.scale * motion.raw(curve.field, curve.index, motion.member, s);
          if (curve.minus) y[s] -= curve.scale * motion.raw(curve.minus.field, curve.minus.index, motion.member, s);
        }
        return y;
      }),
    ];
  }

  memberChanged() {
    this.items.forEach((item) => item.u && item.u.setData(this.data(item.plot), false));
    this.items.forEach((item) => item.u && item.u.redraw());
  }

  handle(u) {
    const timeAt = (event) => u.posToVal(event.clientX - u.over.getBoundingClientRect().left, "x");
    let from = null;
    u.over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      u.over.setPointerCapture(event.pointerId);
      from = { x: timeAt(event), zooms: event.shiftKey };
      if (!from.zooms) this.onTime(from.x);
    });
    u.over.addEventListener("pointermove", (event) => {
      if (from && !from.zooms) this.onTime(timeAt(event));
    });
    const release = (event) => {
      if (from && from.zooms) {
        const to = timeAt(event);
        if (Math.abs(to - from.x) > 0) this.zoom(Math.min(from.x, to), Math.max(from.x, to));
      }
      from = null;
    };
    u.over.addEventListener("pointerup", release);
    u.over.addEventListener("pointercancel", () => (from = null));
    u.over.addEventListener("dblclick", () => this.zoom(null, null));
    u.over.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
        event.preventDefault();
        const at = timeAt(event);
        const by = Math.exp(0.002 * (event.deltaY || event.deltaX));
        const { min, max } = u.scales.x;
        this.zoom(at - (at - min) * by, at + (max - at) * by);
      },
      { passive: false },
    );
  }

  // All plots show the same span; null: the whole run.
  zoom(low, high) {
    const { begin, end } = this.motion;
    const whole = low === null || (low <= begin && high >= end);
    this.range = whole ? null : [Math.max(low, begin), Math.min(high, end)];
    const [min, max] = this.range || [begin, end];
    this.items.forEach((item) => item.u && item.u.setScale("x", { min, max }));
    this.followAll();
  }

  followAll() {
    this.items.forEach((item) => item.u && this.follow(item.u));
  }

  follow(u) {
    u.setCursor({ left: u.valToPos(this.motion.t, "x"), top: 0 }, false);
  }

  resize() {
    const width = Math.max(this.place.clientWidth - 8, 200);
    this.items.forEach((item) => item.u && item.u.setSize({ width, height: 170 }));
    this.followAll();
  }
}

// The cursor stands at the page's time: the mouse does not move it by itself.
function still() {
  const none = () => null;
  return { mousemove: none, mouseenter: none, mouseleave: none, mousedown: none, mouseup: none, dblclick: none };
}
