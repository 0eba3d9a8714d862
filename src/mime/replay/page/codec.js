// The numbers of the page: one gzip'd, base64'd block of whole numbers, see codec.py.
// A table of (rows, columns) stands in it as differences from row to row, zigzag, in four planes of
// bytes: smooth motions and neighbouring vertices are then mostly zeros.

export async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function wholeNumbers(block, table) {
  const [rows, columns] = table.shape;
  const count = rows * columns;
  const found = new Int32Array(count);
  const at = table.at;
  for (let i = 0; i < count; i++) {
    const z =
      block[at + i] |
      (block[at + count + i] << 8) |
      (block[at + 2 * count + i] << 16) |
      (block[at + 3 * count + i] << 24);
    const difference = (z >>> 1) ^ -(z & 1);
    found[i] = i < columns ? difference : (found[i - columns] + difference) | 0;
  }
  return found;
}

// lowest + step · k, column by column.
export function realNumbers(block, table) {
  const [rows, columns] = table.shape;
  const k = wholeNumbers(block, table);
  const found = new Float64Array(rows * columns);
  for (let c = 0; c < columns; c++) {
    const low = table.low[c];
    const step = table.step[c];
    for (let i = c; i < found.length; i += columns) found[i] = low + step * k[i];
  }
  return found;
}
