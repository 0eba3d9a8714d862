// The members of the page, which of them are brushed, and who wants to know.

class Members {
  constructor(study, block) {
    this.study = study;
    this.columns = study.columns.map((column, index) => ({
      ...column,
      index,
      values: arrayOf(block, column.place),
    }));
    this.parameters = this.columns.filter((c) => c.kind === "parameter");
    this.figures = this.columns.filter((c) => c.kind === "figure");
    this.number = arrayOf(block, study.number);
    this.outside = arrayOf(block, study.outside);
    this.diverged = arrayOf(block, study.failed);
    this.address = study.address ? arrayOf(block, study.address) : null;
    this.size = this.number.length;
    this.rowOf = new Map(Array.from(this.number, (member, row) => [member, row]));
    this.brushes = new Map(); // column -> [low, high], in the column's own numbers
    this.passes = new Uint8Array(this.size).fill(1);
    this.passing = this.size;
    this.colour = null;
    this.picked = -1; // a row
    this.listeners = [];
    this.waiting = false;
    this.changed = new Set();
    this.frames = [];
    this.order = shuffled(this.size);
  }

  brush(column, range) {
    if (range) this.brushes.set(column, range);
    else this.brushes.delete(column);
    this.passes.fill(1);
    for (const [index, [low, high]] of this.brushes) {
      const values = this.columns[index].values;
      for (let i = 0; i < this.size; i++) {
        if (!(values[i] >= low && values[i] <= high)) this.passes[i] = 0;
      }
    }
    this.passing = 0;
    for (let i = 0; i < this.size; i++) this.passing += this.passes[i];
    this.tell("brush");
  }

  clear() {
    this.brushes.clear();
    this.brush(0, null);
  }

  pick(row) {
    this.picked = row;
    this.tell("pick");
  }

  colourBy(index) {
    this.colour = this.columns[index] ?? null;
    this.tell("colour");
  }

  // What members are coloured by, 0 ... 1; NaN where there is no value.
  shades() {
    const found = new Float32Array(this.size).fill(0.35);
    if (!this.colour) return found;
    const scale = scaleOf(this.colour);
    const values = this.colour.values;
    for (let i = 0; i < this.size; i++) found[i] = scale.to(values[i]);
    return found;
  }

  addressOf(row) {
    if (!this.address) return "";
    const bytes = this.address.subarray(16 * row, 16 * row + 16);
    return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  // All listeners are told once a frame, of all that has changed since.
  tell(what) {
    this.changed.add(what);
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      const began = performance.now();
      const what = this.changed;
      this.changed = new Set();
      this.waiting = false;
      for (const listener of this.listeners) listener(what);
      this.frames.push(performance.now() - began);
      if (this.frames.length > 500) this.frames.shift();
    });
  }
}

// The same order each time: any first part of it is a fair sample.
function shuffled(size) {
  const order = Uint32Array.from({ length: size }, (_, i) => i);
  let state = 12345;
  for (let i = size - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
