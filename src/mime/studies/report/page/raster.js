// Lines and dots, added up in an array of our own: thousands of lines in a few milliseconds, in any
// order, each pixel with how many there are and the mean of what they are coloured by.

class Raster {
  constructor(canvas, width, height) {
    this.ratio = window.devicePixelRatio || 1;
    this.width = Math.max(1, Math.round(width * this.ratio));
    this.height = Math.max(1, Math.round(height * this.ratio));
    canvas.width = this.width;
    canvas.height = this.height;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.context = canvas.getContext("2d", { willReadFrequently: true }); // pixels are ours: keep them in memory
    this.image = this.context.createImageData(this.width, this.height);
    this.count = new Float32Array(this.width * this.height);
    this.sum = new Float32Array(this.width * this.height);
  }

  clear() {
    this.count.fill(0);
    this.sum.fill(0);
  }

  // A line of one pixel: along its longer side, shared between the two pixels across it.
  line(x0, y0, x1, y1, t) {
    const { count, sum, width, height } = this;
    const dx = x1 - x0, dy = y1 - y0;
    const steep = Math.abs(dy) > Math.abs(dx);
    const length = Math.max(1, Math.round(steep ? Math.abs(dy) : Math.abs(dx)));
    const along = steep ? (dy < 0 ? -width : width) : 1;
    const across = steep ? 1 : width;
    const slope = (steep ? dx : dy) / length;
    let side = steep ? x0 : y0;
    let base = steep ? Math.round(y0) * width : Math.round(x0);
    const end = steep ? width - 1 : height - 1;
    for (let k = 0; k < length; k++) {
      const whole = side | 0;
      const part = side - whole;
      if (whole >= 0 && whole < end) {
        const at = base + whole * across;
        count[at] += 1 - part;
        sum[at] += (1 - part) * t;
        count[at + across] += part;
        sum[at + across] += part * t;
      }
      side += slope;
      base += along;
    }
  }

  dot(x, y, radius, t) {
    const { count, sum, width, height } = this;
    const left = Math.max(0, Math.round(x - radius)), right = Math.min(width - 1, Math.round(x + radius));
    const top = Math.max(0, Math.round(y - radius)), bottom = Math.min(height - 1, Math.round(y + radius));
    for (let row = top; row <= bottom; row++) {
      for (let column = left; column <= right; column++) {
        const away = (column - x) ** 2 + (row - y) ** 2;
        if (away > radius * radius + 0.5) continue;
        const at = row * width + column;
        count[at] += 1;
        sum[at] += t;
      }
    }
  }

  // As a picture: what n lines hide is 1 - (1 - alpha)^n, in the colour of their mean, or in grey.
  show(alpha, grey) {
    const { count, sum, image } = this;
    const pixels = new Uint32Array(image.data.buffer);
    const levels = new Uint8Array(1024);
    for (let i = 0; i < 1024; i++) levels[i] = Math.round(255 * (1 - (1 - alpha) ** (i / 16)));
    for (let i = 0; i < pixels.length; i++) {
      const n = count[i];
      if (n === 0) {
        pixels[i] = 0;
        continue;
      }
      const cover = levels[Math.min(1023, (n * 16) | 0)];
      if (grey !== undefined) {
        pixels[i] = (cover << 24) | (grey << 16) | (grey << 8) | grey;
      } else {
        const c = 3 * Math.max(0, Math.min(255, ((sum[i] / n) * 255 + 0.5) | 0));
        pixels[i] = (cover << 24) | (RAMP[c + 2] << 16) | (RAMP[c + 1] << 8) | RAMP[c];
      }
    }
    this.context.putImageData(image, 0, 0);
  }
}
