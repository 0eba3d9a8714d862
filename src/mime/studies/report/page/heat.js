// A heat map of any two parameters: a figure's mean, smallest or largest value in each cell.

class Heat {
  constructor(members, place, block) {
    this.members = members;
    this.frame = new Frame(place.querySelector(".picture"), 330);
    this.bar = place.querySelector(".bar");
    this.told = place.querySelector("output");
    this.block = block;
    [this.x, this.y, this.figure, this.statistic] = place.querySelectorAll("select");
    const { parameters, figures } = members;
    chooser(this.x, parameters, parameters[0].index);
    chooser(this.y, parameters, parameters[1].index);
    chooser(this.figure, figures, members.study.first);
    for (const select of [this.x, this.y, this.figure, this.statistic]) select.onchange = () => this.draw();
    this.cell = null;
    const svg = this.frame.svg;
    svg.onpointermove = (event) => this.point(event);
    svg.onpointerleave = () => this.tell(null);
    svg.onkeydown = (event) => this.move(event);
    members.listen((what) => (what.has("brush") || what.has("scale")) && this.draw());
    new ResizeObserver(() => this.draw()).observe(this.frame.place);
  }

  // The cells' values, with the members that are brushed; of all members when none is.
  values() {
    const { members } = this;
    const [x, y] = [members.columns[this.x.value], members.columns[this.y.value]];
    const figure = members.columns[this.figure.value];
    const statistic = this.statistic.value;
    const width = cellCount(x), height = cellCount(y);
    const known = !members.brushes.size && this.prepared(x, y, figure, statistic, width, height);
    if (known) return { x, y, figure, width, height, found: known };
    const count = new Float64Array(width * height);
    const found = new Float64Array(width * height);
    const start = { min: Infinity, max: -Infinity }[statistic] ?? 0;
    found.fill(start);
    for (let row = 0; row < members.size; row++) {
      const value = statistic === "count" ? 0 : figure.values[row];
      if (!members.passes[row] || Number.isNaN(value)) continue;
      const cell = cellOf(y, y.values[row]) * width + cellOf(x, x.values[row]);
      count[cell] += 1;
      if (statistic === "mean") found[cell] += value;
      else if (statistic === "min") found[cell] = Math.min(found[cell], value);
      else if (statistic === "max") found[cell] = Math.max(found[cell], value);
    }
    for (let i = 0; i < found.length; i++) {
      if (statistic === "count") found[i] = count[i] || NaN;
      else if (!count[i]) found[i] = NaN;
      else if (statistic === "mean") found[i] /= count[i];
    }
    return { x, y, figure, width, height, found };
  }

  prepared(x, y, figure, statistic, width, height) {
    const maps = this.members.study.maps;
    if (!maps || x === y) return null;
    const turned = x.index > y.index;
    const [a, b] = turned ? [y, x] : [x, y];
    const map = maps.find((m) => m.x === a.name && m.y === b.name);
    const size = width * height;
    let flat;
    if (statistic === "count") flat = Float64Array.from(arrayOf(this.block, map.count), (n) => n || NaN);
    else {
      const at = { mean: 0, min: 1, max: 2 }[statistic] * size;
      flat = Float64Array.from(arrayOf(this.block, map.figures[figure.name]).subarray(at, at + size));
    }
    if (!turned) return flat;
    return Float64Array.from({ length: size }, (_, i) => flat[(i % width) * height + Math.floor(i / width)]);
  }

  draw() {
    if (!this.frame.measure()) return;
    this.shown = this.values();
    const { x, y, figure, width, height, found } = this.shown;
    const { frame } = this;
    const raster = frame.canvas;
    const ratio = window.devicePixelRatio || 1;
    raster.width = frame.width * ratio;
    raster.height = frame.height * ratio;
    raster.style.width = `${frame.width}px`;
    raster.style.height = `${frame.height}px`;
    const context = raster.getContext("2d");
    const there = Array.from(found).filter((v) => !Number.isNaN(v));
    const counted = this.statistic.value === "count";
    const about = { name: counted ? "members" : figure.name, unit: counted ? "" : figure.unit, words: [], log: figure.log && !counted };
    about.low = there.reduce((a, b) => Math.min(a, b), Infinity);
    about.high = there.reduce((a, b) => Math.max(a, b), -Infinity);
    const scale = scaleOf(about);
    this.xScale = cellScale(x);
    this.yScale = cellScale(y);
    for (let j = 0; j < height; j++) {
      for (let i = 0; i < width; i++) {
        const value = found[j * width + i];
        if (Number.isNaN(value)) continue;
        const left = Math.round((i / width) * raster.width), right = Math.round(((i + 1) / width) * raster.width);
        const top = Math.round((1 - (j + 1) / height) * raster.height), bottom = Math.round((1 - j / height) * raster.height);
        context.fillStyle = rampColour(scale.to(value));
        context.fillRect(left, top, right - left, bottom - top);
      }
    }
    frame.axes(x, y, this.xScale, this.yScale);
    if (there.length) colourBar(this.bar, about, scale);
    else this.bar.replaceChildren(element("span", "dim", "no member here has a value"));
    this.tell(null);
  }

  point(event) {
    const box = this.frame.svg.getBoundingClientRect();
    const { width, height } = this.shown;
    const i = Math.floor(((event.clientX - box.left - LEFT) / this.frame.width) * width);
    const j = Math.floor((1 - (event.clientY - box.top - ABOVE) / this.frame.height) * height);
    this.tell(i >= 0 && i < width && j >= 0 && j < height ? [i, j] : null);
  }

  move(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const { width, height } = this.shown;
    const [i, j] = this.cell ?? [-step[0], -step[1]];
    this.tell([Math.max(0, Math.min(width - 1, i + step[0])), Math.max(0, Math.min(height - 1, j + step[1]))]);
  }

  tell(cell) {
    this.cell = cell;
    const { svg } = this.frame;
    svg.querySelector(".cursor")?.remove();
    if (!cell) {
      this.told.textContent = "";
      return;
    }
    const { x, y, figure, width, height, found } = this.shown;
    const [i, j] = cell;
    const box = { width: this.frame.width / width, height: this.frame.height / height };
    svg.append(drawn("rect", { x: LEFT + i * box.width, y: ABOVE + (height - 1 - j) * box.height, ...box, class: "cursor" }));
    const value = found[j * width + i];
    const counted = this.statistic.value === "count";
    const words = Number.isNaN(value) ? "no member" : counted ? counted(value) : withUnit(value, figure, 5);
    this.told.textContent = `${cellWords(x, i)}, ${cellWords(y, j)}: ${words}`;
  }
}

function cellCount(column) {
  return column.cells.values ? column.cells.values.length : column.cells.edges.length - 1;
}

function cellOf(column, value) {
  const { values, edges } = column.cells;
  const sorted = values ?? edges;
  let low = 0, high = sorted.length; // the first entry above the value
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, Math.min(low - 1, cellCount(column) - 1));
}

// Where values stand along a row of equal cells.
function cellScale(column) {
  const { values, edges } = column.cells;
  if (!values) return scaleOf({ ...column, low: edges[0], high: edges.at(-1), log: column.cells.log });
  if (column.words.length) return scaleOf(column);
  const count = values.length;
  return { low: values[0], high: values.at(-1), log: false, listed: values, to: (v) => (values.indexOf(v) + 0.5) / count };
}

function cellWords(column, index) {
  const { values, edges } = column.cells;
  if (values) return `${column.name} ${withUnit(values[index], column, 4)}`;
  return `${column.name} ${formatted(edges[index], 4)} to ${withUnit(edges[index + 1], column, 4)}`;
}
