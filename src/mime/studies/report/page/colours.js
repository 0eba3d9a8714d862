// One scale of colours, even in lightness and sound for the colour-blind: violet is low, yellow high.

const ANCHORS = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

const RAMP = new Uint8Array(256 * 3);
for (let i = 0; i < 256; i++) {
  const at = (i / 255) * (ANCHORS.length - 1);
  const k = Math.min(Math.floor(at), ANCHORS.length - 2);
  for (let c = 0; c < 3; c++) {
    RAMP[3 * i + c] = Math.round(ANCHORS[k][c] + (at - k) * (ANCHORS[k + 1][c] - ANCHORS[k][c]));
  }
}

function rampIndex(t) {
  return Math.max(0, Math.min(255, Math.round(t * 255)));
}

function rampColour(t) {
  const i = 3 * rampIndex(t);
  return `rgb(${RAMP[i]} ${RAMP[i + 1]} ${RAMP[i + 2]})`;
}

// The bar that says which colour is which value.
function colourBar(place, column, scale) {
  place.replaceChildren();
  const low = element("span", "", withUnit(scale.low, column, digitsOf(scale)));
  const bar = element("i", "ramp");
  bar.style.background = `linear-gradient(90deg, ${[0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1].map(rampColour).join(",")})`;
  place.append(low, bar, element("span", "", withUnit(scale.high, column, digitsOf(scale))));
  if (scale.log) place.append(element("span", "dim", "logarithmic"));
}

function element(kind, name = "", words = "") {
  const made = document.createElement(kind);
  if (name) made.className = name;
  if (words !== "") made.textContent = words;
  return made;
}

function drawn(kind, attributes = {}, words = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (words !== "") made.textContent = words;
  return made;
}

// A choice among columns; the value is the column's place.
function chooser(select, columns, chosen) {
  select.replaceChildren();
  columns.forEach((column) => {
    const option = element("option", "", heading(column));
    option.value = column.index;
    select.append(option);
  });
  if (chosen !== undefined) select.value = chosen;
}
