// All trials of a study that has more than can be drawn: packed_column.h says how their columns are packed.
function unpacked(column, count) {
  if (Array.isArray(column)) return column;
  const read = (text, Type) => new Type(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  if (column.of) {
    const places = column.u1 ? read(column.u1, Uint8Array) : column.u2 ? read(column.u2, Uint16Array) : new Uint8Array(count);
    return Array.from(places, (place) => column.of[place]);
  }
  // Seven digits are what four bytes have: those behind them are noise.
  const tidied = column.f4 ? (v) => Number(v.toPrecision(7)) : (v) => v;
  return Array.from(column.f4 ? read(column.f4, Float32Array) : read(column.f8, Float64Array), (v) => (Number.isNaN(v) ? null : tidied(v)));
}

/// As trials are, less what is known of the drawn ones alone; those stand among them.
function rowsOf(table, drawn) {
  const named = (columns) => Object.entries(columns).map(([name, column]) => [name, unpacked(column, table.count)]);
  const fields = named(table.fields), config = named(table.config), metrics = named(table.metrics);
  const whole = new Map(drawn.map((t) => [t.n, t]));
  const known = (columns, row) => Object.fromEntries(columns.filter(([, c]) => c[row] !== null && c[row] !== undefined).map(([k, c]) => [k, c[row]]));
  return Array.from({ length: table.count }, (_, row) => {
    const t = { ...known(fields, row), config: known(config, row), metrics: known(metrics, row) };
    return whole.get(t.n) || { ...t, brief: true, why: '', error: '', curves: {}, runs: [], values: [], files: [] };
  });
}
