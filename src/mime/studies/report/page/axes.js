// A frame with two axes for a picture: ticks and names, in the columns' own units.

const LEFT = 64, RIGHT = 12, ABOVE = 10, BELOW = 46;

class Frame {
  constructor(place, height) {
    this.place = place;
    this.canvas = place.querySelector("canvas");
    this.svg = place.querySelector("svg");
    this.fullHeight = height;
  }

  // Whether there is room; `width` and `height` are those inside of the axes.
  measure() {
    const room = this.place.clientWidth;
    if (!room) return false;
    this.width = Math.max(80, room - LEFT - RIGHT);
    this.height = this.fullHeight - ABOVE - BELOW;
    this.svg.setAttribute("width", LEFT + this.width + RIGHT);
    this.svg.setAttribute("height", this.fullHeight);
    this.canvas.style.left = `${LEFT}px`;
    this.canvas.style.top = `${ABOVE}px`;
    return true;
  }

  axes(x, y, xScale, yScale) {
    const { svg, width, height } = this;
    svg.replaceChildren();
    svg.append(drawn("rect", { x: LEFT, y: ABOVE, width, height, class: "frame" }));
    const across = x.words.length ? width / 60 : width / 75;
    for (const tick of ticksOf(x, xScale, Math.max(2, Math.floor(across)))) {
      const at = LEFT + xScale.to(tick) * width;
      svg.append(drawn("line", { x1: at, x2: at, y1: ABOVE + height, y2: ABOVE + height + 4, class: "axis" }));
      const words = x.words.length ? shortWords(x.words[tick], width / x.words.length + 20) : formatted(tick, digitsOf(xScale));
      svg.append(drawn("text", { x: at, y: ABOVE + height + 16, class: "tick", "text-anchor": "middle" }, words));
    }
    for (const tick of ticksOf(y, yScale, 5)) {
      const at = ABOVE + (1 - yScale.to(tick)) * height;
      svg.append(drawn("line", { x1: LEFT - 4, x2: LEFT, y1: at, y2: at, class: "axis" }));
      const words = y.words.length ? shortWords(y.words[tick], 66) : formatted(tick, digitsOf(yScale));
      svg.append(drawn("text", { x: LEFT - 6, y: at + 4, class: "tick", "text-anchor": "end" }, words));
    }
    const middle = ABOVE + height / 2;
    const fit = (column, scale, room) => shortWords(heading(column) + (scale.log ? ", log" : ""), room);
    svg.append(drawn("text", { x: LEFT + width / 2, y: this.fullHeight - 8, class: "name", "text-anchor": "middle" }, fit(x, xScale, width + 40)));
    const turned = `rotate(-90 12 ${middle})`;
    svg.append(drawn("text", { x: 12, y: middle, class: "name", "text-anchor": "middle", transform: turned }, fit(y, yScale, height + 60)));
  }
}
