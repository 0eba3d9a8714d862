// One member: what it is, what came out, and how to run it again.

class Member {
  constructor(members, place) {
    this.members = members;
    this.place = place;
    members.listen((what) => what.has("pick") && this.draw());
  }

  draw() {
    const { members, place } = this;
    const row = members.picked;
    place.replaceChildren();
    if (row < 0) {
      place.append(element("p", "dim", "Click a point, or a number in the table."));
      return;
    }
    const member = members.number[row];
    place.append(element("h3", "", `Member ${member}`));
    const failed = members.study.diverged.named[member];
    if (members.diverged[row]) place.append(element("p", "bad", `diverged${failed ? `: ${failed}` : ""}`));
    else if (members.outside[row]) place.append(element("p", "bad", "outside of its limits"));
    const list = element("dl");
    for (const column of members.columns) {
      list.append(element("dt", column.kind, column.name), element("dd", "", withUnit(column.values[row], column, 7)));
    }
    place.append(list);
    const address = members.addressOf(row);
    if (address) {
      const line = element("p", "dim", "address ");
      line.append(element("code", "", address));
      place.append(line);
    }
    const replay = members.study.replays[member];
    if (replay) {
      const link = element("a", "", "Watch its replay");
      link.href = replay.file;
      const line = element("p");
      line.append(link);
      place.append(line);
    }
    place.append(element("p", "dim", "Run it again:"), element("pre", "", this.command(row)));
  }

  command(row) {
    const { members } = this;
    const { command } = members.study;
    const values = members.parameters.map((c) => [c.name, c.words.length ? c.settings[c.values[row]] : String(c.values[row])]);
    if (!command.length) return `result.study.run(${members.number[row]})   # in Python`;
    const words = [...command, ...values.flatMap(([name, value]) => ["--set", `${name}=${value}`])];
    return words.map(shellWord).join(" ");
  }
}

function shellWord(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`;
}
