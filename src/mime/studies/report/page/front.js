// Pareto's front: the rows that no other one beats in both columns; see front.py.

function frontOf(x, y, rows, xSign, ySign) {
  const there = rows.filter((row) => !Number.isNaN(x[row]) && !Number.isNaN(y[row]));
  there.sort((a, b) => xSign * (x[a] - x[b]) || ySign * (y[a] - y[b]));
  const found = [];
  for (const row of there) {
    const last = found.at(-1);
    const beats = last === undefined || ySign * (y[row] - y[last]) < 0;
    if (beats || (x[row] === x[last] && y[row] === y[last])) found.push(row);
  }
  return found;
}
