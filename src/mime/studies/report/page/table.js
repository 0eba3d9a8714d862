// The brushed members as a table, a part at a time, sorted by any column; and as a CSV file.

const ROWS = 25;

class Table {
  constructor(members, place) {
    this.members = members;
    this.table = place.querySelector("table");
    this.told = place.querySelector("output");
    [this.back, this.on, this.save] = place.querySelectorAll("button");
    this.sorted = { column: -1, falling: false };
    this.first = 0;
    this.back.onclick = () => this.turn(-ROWS);
    this.on.onclick = () => this.turn(ROWS);
    this.save.onclick = () => this.download();
    this.head();
    members.listen((what) => {
      if (what.has("brush")) this.first = 0;
      if (what.has("brush") || what.has("pick")) this.draw();
    });
    this.sort();
    this.draw();
  }

  head() {
    const row = this.table.createTHead().insertRow();
    const names = ["member", ...this.members.columns.map(heading)];
    names.forEach((name, at) => {
      const cell = element("th");
      cell.scope = "col";
      const button = element("button", "", name);
      button.type = "button";
      button.onclick = () => {
        const column = at - 1;
        this.sorted = { column, falling: this.sorted.column === column && !this.sorted.falling };
        this.first = 0;
        this.sort();
        this.draw();
      };
      cell.append(button);
      row.append(cell);
    });
    this.body = this.table.createTBody();
  }

  // Rows in order, those without a value last.
  sort() {
    const { column, falling } = this.sorted;
    const values = column < 0 ? this.members.number : this.members.columns[column].values;
    const sign = falling ? -1 : 1;
    const rows = Array.from({ length: this.members.size }, (_, i) => i);
    rows.sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    });
    this.rows = rows;
    const heads = this.table.tHead.rows[0].cells;
    for (const cell of heads) cell.removeAttribute("aria-sort");
    heads[column + 1].setAttribute("aria-sort", falling ? "descending" : "ascending");
  }

  turn(by) {
    this.first = Math.max(0, this.first + by);
    this.draw();
  }

  draw() {
    const { members } = this;
    const shown = [];
    let count = 0;
    for (const row of this.rows) {
      if (!members.passes[row]) continue;
      if (count >= this.first && shown.length < ROWS) shown.push(row);
      count += 1;
    }
    this.body.replaceChildren(
      ...shown.map((row) => {
        const line = element("tr", row === members.picked ? "picked" : "");
        const name = element("button", "", String(members.number[row]));
        name.type = "button";
        name.onclick = () => members.pick(row);
        const first = element("td", "n");
        first.append(name);
        if (members.diverged[row]) first.append(element("span", "bad", " diverged"));
        else if (members.outside[row]) first.append(element("span", "bad", " outside"));
        line.append(first);
        for (const column of members.columns) {
          const value = column.values[row];
          const words = column.words.length ? column.words[value] : formatted(value);
          line.append(element("td", column.words.length ? "" : "n", words));
        }
        return line;
      }),
    );
    const last = Math.min(this.first + ROWS, count);
    this.told.textContent = count ? `${(this.first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${count.toLocaleString("en")}` : "no member";
    this.back.disabled = this.first === 0;
    this.on.disabled = last >= count;
  }

  csv() {
    const { members } = this;
    const quoted = (words) => (/[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
    const lines = [["member", "address", ...members.columns.map(heading), "diverged", "outside"].map(quoted).join(",")];
    for (const row of this.rows) {
      if (!members.passes[row]) continue;
      const cells = members.columns.map((c) => {
        const value = c.values[row];
        return c.words.length ? quoted(c.words[value]) : Number.isNaN(value) ? "" : String(value);
      });
      const failed = quoted(members.study.diverged.named[members.number[row]] ?? (members.diverged[row] ? "yes" : ""));
      lines.push([members.number[row], members.addressOf(row), ...cells, failed, members.outside[row]].join(","));
    }
    return `${lines.join("\n")}\n`;
  }

  download() {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
    link.download = "members.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}
