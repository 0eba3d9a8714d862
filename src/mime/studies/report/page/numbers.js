// The numbers of the page: one gzip'd, base64'd row of bytes (see page.py), and how they are shown.

async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// An array whose bytes stand in planes: all lowest bytes, then all second ones, ...
function arrayOf(block, place) {
  const Kind = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u1: Uint8Array }[place.kind];
  const found = new Kind(place.count);
  const bytes = new Uint8Array(found.buffer);
  const width = Kind.BYTES_PER_ELEMENT;
  for (let plane = 0; plane < width; plane++) {
    const from = place.at + plane * place.count;
    for (let i = 0; i < place.count; i++) bytes[i * width + plane] = block[from + i];
  }
  return found;
}

function formatted(value, digits = 5) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const words =
    size !== 0 && (size >= 1e6 || size < 1e-3)
      ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(digits)));
  return words.replace("-", "−").replace("e−", "e-");
}

// So many digits that the ends of a scale and what lies between them differ.
function digitsOf({ low, high }) {
  const size = Math.max(Math.abs(low), Math.abs(high)), span = high - low;
  return span > 0 ? Math.max(4, Math.min(14, Math.ceil(Math.log10(size / span)) + 3)) : 4;
}

function counted(number, what = "member") {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

function withUnit(value, column, digits) {
  if (column.words.length) return column.words[value] ?? "–";
  if (Number.isNaN(value)) return "no value";
  return column.unit ? `${formatted(value, digits)} ${column.unit}` : formatted(value, digits);
}

function heading(column) {
  return column.unit ? `${column.name} [${column.unit}]` : column.name;
}

// From a column's values to 0 ... 1 and back; words stand at the middles of equal parts.
function scaleOf(column) {
  if (column.words.length) {
    const count = column.words.length;
    return { log: false, to: (v) => (v + 0.5) / count, from: (t) => t * count - 0.5, low: 0, high: count - 1 };
  }
  let { low, high } = column;
  if (!(low <= high)) [low, high] = [0, 1];
  if (low === high) {
    const margin = Math.abs(low) * 0.5 || 1;
    return { log: false, to: (v) => 0.5 + (v - low) / (2 * margin), from: (t) => low + (t - 0.5) * 2 * margin, low, high };
  }
  if (column.log && low > 0) {
    const a = Math.log(low), span = Math.log(high) - a;
    return { log: true, to: (v) => (Math.log(v) - a) / span, from: (t) => Math.exp(a + t * span), low, high };
  }
  return { log: false, to: (v) => (v - low) / (high - low), from: (t) => low + t * (high - low), low, high };
}

// Round numbers inside of a scale: about `count` of them.
function ticksOf(column, scale, count) {
  if (!scale.listed && column.cells?.values?.length <= 6) return column.cells.values;
  if (scale.listed) {
    const step = Math.ceil(scale.listed.length / Math.max(count, 2));
    return scale.listed.filter((_, i) => i % step === 0);
  }
  if (column.words.length) {
    const step = Math.ceil(column.words.length / Math.max(count * 2, 2));
    return column.words.map((_, i) => i).filter((i) => i % step === 0);
  }
  const { low, high } = scale;
  if (low === high) return [low];
  if (scale.log) {
    const decades = Math.log10(high / low);
    const factors = decades > count ? [1] : decades > count / 3 ? [1, 3] : [1, 2, 5];
    const found = [];
    const stride = Math.max(1, Math.ceil(decades / count));
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      if (factors.length === 1 && e % stride) continue;
      for (const f of factors) {
        const tick = Number(`${f}e${e}`);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) found.push(tick);
      }
    }
    if (found.length >= 2) return found;
  }
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((f) => f * power >= raw * 0.999) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}
