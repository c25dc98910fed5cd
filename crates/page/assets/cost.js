// Costs again with other prices, by the formula of `Cost::monthly`.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("cost-data").textContent);
  const form = document.getElementById("prices");
  const rows = [...document.querySelectorAll("#costs tbody tr")];
  const HOURS = 730, GIB = 2 ** 30, TB = 1e12;

  const grouped = (number, count) => {
    const [whole, rest] = number.toFixed(count).split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? "." + rest : "");
  };
  const range = (least, most) => (least === most ? least : `${least} – ${most}`);

  function monthly(load, of) {
    const busy = load.write_kib / of.writes + load.read_kib / of.reads + load.scan_mb / of.scan_mb;
    const nodes = (stored) => Math.ceil(Math.max(busy / of.target, stored / (of.stored_tb * TB), 1));
    const dollars = (stored) => of.clusters * (nodes(stored) * HOURS * of.node_hour + (stored / GIB) * of.gib_month);
    return { busy, nodes: load.stored.map(nodes), dollars: load.stored.map(dollars) };
  }

  function show() {
    const of = { ...data.capacity, ...data.prices };
    for (const input of form.elements) {
      if (!input.name) continue;
      const value = input.valueAsNumber, wrong = !(value >= Number(input.min));
      input.setAttribute("aria-invalid", String(wrong));
      if (wrong) return;
      of[input.name] = value;
    }
    data.loads.forEach((load, at) => {
      const found = monthly(load, of);
      const out = (name) => rows[at].querySelector(`[data-out="${name}"]`);
      out("load").textContent = grouped(found.busy, 3);
      out("nodes").textContent = range(...found.nodes.map((nodes) => grouped(nodes, 0)));
      out("dollars").textContent = range(...found.dollars.map((dollars) => "$" + grouped(dollars, 2)));
    });
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    show();
    const said = rows.map((row) => `${row.querySelector("bdi").textContent}: ${row.querySelector('[data-out="dollars"]').textContent}`);
    document.getElementById("cost-said").textContent = said.join("; ");
  });
  form.addEventListener("reset", () => setTimeout(show));
  show();
})();
