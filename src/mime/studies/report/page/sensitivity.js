// Which parameters a figure depends on: Sobol's indices as bars with their intervals, and slopes.

class Sensitivity {
  constructor(members, place) {
    this.members = members;
    this.select = place.querySelector("select");
    this.bars = place.querySelector(".bars");
    this.words = place.querySelector(".words");
    this.slopes = place.querySelector(".slopes");
    chooser(this.select, members.figures, members.study.first);
    this.select.onchange = () => this.draw();
    this.draw();
  }

  draw() {
    const { study, columns } = this.members;
    const figure = columns[this.select.value];
    const found = study.sensitivity[figure.name];
    this.bars.replaceChildren();
    this.words.textContent = found.words;
    const rows = found.indices.slice().sort((a, b) => (b.total ?? b.first)[0] - (a.total ?? a.first)[0]);
    if (rows.length) this.table(rows);
    this.drawSlopes(study.slopes[figure.name], figure);
  }

  table(rows) {
    const table = element("table", "indices");
    const head = table.createTHead().insertRow();
    const hasTotal = rows.some((row) => row.total);
    const names = ["parameter", "share of the variance, alone (first order)", ...(hasTotal ? ["with all that it does together with others (total)"] : [])];
    for (const name of names) head.append(element("th", "", name));
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      line.append(element("td", "", row.name), barCell(row.first));
      if (hasTotal) line.append(barCell(row.total));
    }
    this.bars.append(table);
  }

  drawSlopes(found, figure) {
    this.slopes.replaceChildren();
    if (!found) return;
    this.slopes.append(element("h3", "", `Slopes of ${figure.name} at member ${found.member}`), element("p", "dim", found.words));
    if (!found.rows.length) return;
    const table = element("table", "indices");
    const head = table.createTHead().insertRow();
    for (const name of ["parameter", "slope", "percent for one percent"]) head.append(element("th", "", name));
    const body = table.createTBody();
    for (const row of found.rows) {
      const line = body.insertRow();
      line.append(element("td", "", row.name));
      if (row.why) {
        const cell = element("td", "dim", row.why);
        cell.colSpan = 2;
        line.append(cell);
      } else {
        line.append(element("td", "n", `${formatted(row.slope)} ${row.unit}`), element("td", "n", row.elasticity === null ? "–" : formatted(row.elasticity, 3)));
      }
    }
    this.slopes.append(table);
  }
}

// A bar from 0 to 1 with its 95 % interval.
function barCell([value, low, high]) {
  const cell = element("td");
  const box = element("span", "index");
  const at = (v) => `${100 * Math.max(0, Math.min(1, v))}%`;
  const bar = element("i", "bar-value");
  bar.style.width = at(value);
  const range = element("i", "bar-range");
  range.style.left = at(low);
  range.style.width = `calc(${at(high)} - ${at(low)})`;
  box.append(bar, range);
  const words = (v) => v.toFixed(3).replace("-0.000", "0.000").replace("-", "−");
  cell.append(box, element("span", "number", ` ${words(value)} `), element("span", "dim", `${words(low)} to ${words(high)}`));
  return cell;
}
