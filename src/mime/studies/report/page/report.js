// The page: all parts, one set of members.

async function start() {
  const study = JSON.parse(document.getElementById("study").textContent);
  const block = await unpack(document.getElementById("numbers").textContent);
  const members = new Members(study, block);
  const get = (name) => document.getElementById(name);
  const part = (name, is) => (get(name).hidden = !is);
  const hasFigures = members.figures.length > 0;

  const colours = [...members.figures, ...members.parameters];
  chooser(get("colour"), colours, study.first);
  const colour = () => {
    members.colourBy(get("colour").value);
    colourBar(get("colour-bar"), members.colour, scaleOf(members.colour));
  };
  get("colour").onchange = colour;
  get("clear").onclick = () => members.clear();
  const tell = () => {
    const all = counted(members.size);
    get("count").textContent = members.brushes.size ? `${members.passing.toLocaleString("en")} of ${all} selected` : all;
    get("clear").hidden = !members.brushes.size;
    get("ranges").replaceChildren(
      ...Array.from(members.brushes, ([index, range]) => {
        const column = members.columns[index];
        const chip = element("button", "chip", `${column.name} ${rangeWords(column, range)} ×`);
        chip.type = "button";
        chip.title = "end this selection";
        chip.onclick = () => members.brush(index, null);
        return chip;
      }),
    );
  };
  members.listen((what) => {
    if (what.has("brush")) tell();
    if (what.has("scale")) colour();
  });
  tell();
  colour();

  const parallel = new Parallel(members, get("parallel"));
  const mapped = hasFigures && members.parameters.length > 1;
  part("heat", mapped);
  get("scatter").classList.toggle("wide", !mapped);
  const heat = mapped ? new Heat(members, get("heat"), block) : null;
  const numeric = [...members.figures, ...members.parameters].length > 1;
  part("scatter", numeric);
  const scatter = numeric ? new Scatter(members, get("scatter")) : null;
  const member = new Member(members, get("member"));
  member.draw();
  const table = new Table(members, get("members"));
  part("sensitivity", hasFigures);
  if (hasFigures) new Sensitivity(members, get("sensitivity"));
  for (const button of document.querySelectorAll("button[data-member]")) {
    const row = members.rowOf.get(Number(button.dataset.member));
    button.onclick = () => {
      members.pick(row);
      get("member").scrollIntoView({ block: "nearest" });
    };
  }
  window.mimeStudy = { members, parallel, heat, scatter, table, member };
}

start().catch((error) => {
  const place = document.getElementById("failure");
  place.hidden = false;
  place.textContent = `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`;
  console.error(error);
});
