// Heatmaps: axes, zoom and cursors by uPlot, the raster by us. Without this script the pictures and tables remain.
(async () => {
  "use strict";
  if (!window.DecompressionStream) return;
  const { palette, span, maps } = JSON.parse(document.getElementById("maps").textContent);
  const colours = new Uint32Array(palette.map((rgb) => 0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)));
  const [FROM, UNTIL] = span.map((micros) => micros / 1e6);
  const narrow = () => window.innerWidth < 640;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const grouped = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 3 });
  // A key may be written from right to left: isolated, it does not turn its neighbours round.
  const isolated = (text) => "\u2068" + text + "\u2069";
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function valuesOf(map) {
    const bytes = await inflate(map.values);
    const count = map.slices * map.keys.length;
    if (map.encoding === "f64") return new Float64Array(bytes.buffer, 0, count);
    const values = new Float64Array(count);
    for (let at = 0, from = 0; at < count; at++) {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[from++];
        value += (byte & 0x7f) * scale;
        scale *= 128;
      } while (byte & 0x80);
      values[at] = value;
    }
    return values;
  }

  // The index of a value's colour: how many colours begin at or below it.
  function level(value, least) {
    let low = 0, high = least.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (least[middle] <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Which cells lie under each of `pixels`, from `min` to `max`: where several do, all, so that none is lost.
  function covered(pixels, min, max, count) {
    const first = new Int32Array(pixels), end = new Int32Array(pixels), step = (max - min) / pixels;
    for (let at = 0; at < pixels; at++) {
      const from = Math.floor(min + at * step + 1e-6), until = Math.ceil(min + (at + 1) * step - 1e-6);
      first[at] = clamp(from, 0, count);
      end[at] = until <= 0 || from >= count ? first[at] : clamp(Math.max(until, from + 1), 0, count);
    }
    return { first, end };
  }

  const time = (seconds) => {
    const text = new Date(Math.round(seconds * 1e3)).toISOString();
    return `${text.slice(0, 10)} ${text.slice(11, text.slice(17, 19) === "00" ? 16 : 19)}`;
  };

  const charts = [];
  let spreading = false;
  function spread(from) {
    if (spreading) return;
    spreading = true;
    const { min, max } = from.scales.x;
    for (const { plot, line } of charts)
      for (const other of [plot, line]) if (other && other !== from) other.setScale("x", { min, max });
    spreading = false;
  }

  const font = "12px system-ui, sans-serif";
  const timeAxis = () => ({
    stroke: () => css("--muted"), font, size: 40, gap: 4,
    grid: { show: false }, ticks: { stroke: () => css("--line"), width: 1, size: 5 }, border: { show: false },
    space: 70,
    values: [
      [3600 * 24 * 365, "{YYYY}", null, null, null, null, null, null, 1],
      [3600 * 24 * 28, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
      [3600 * 24, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
      [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
      [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
      [0.001, "{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, null, null, null, null, 1],
    ],
  });
  const labels = () => (narrow() ? 76 : 168);

  function chart(map, values) {
    const article = document.querySelector(`[data-map="${maps.indexOf(map)}"]`);
    const holder = article.querySelector(".chart"), readout = article.querySelector(".readout");
    const live = article.querySelector("[aria-live]");
    const buckets = map.keys.length, { slices } = map;
    const start = map.start / 1e6, slice = map.slice / 1e6;
    const levels = Uint8Array.from(values, (value) => level(value, map.least));
    const mark = map.sampled ? "~" : "";
    const chosen = { slice: 0, bucket: 0 };

    const sliceOf = (seconds) => clamp(Math.floor((seconds - start) / slice + 1e-9), 0, slices - 1);
    function words(s, b) {
      const from = start + s * slice, keys = map.counts[b];
      const share = map.top_share[s];
      const parts = [
        `${time(from)} to ${time(from + slice).slice(11)} UTC`,
        `${mark}${grouped(values[s * buckets + b])} ${map.metric}`,
        `keys from ${isolated(map.keys[b])} (range ${grouped(b + 1)} of ${grouped(buckets)}, ${grouped(keys)} ${keys === 1 ? "key" : "keys"})`,
      ];
      if (share != null) parts.push(`fullest range of the slice ${mark}${share.toFixed(3)}`);
      return parts.join(" · ");
    }

    function raster(u) {
      const { left, top, width, height } = u.bbox;
      const x = covered(width, (u.scales.x.min - start) / slice, (u.scales.x.max - start) / slice, slices);
      const y = covered(height, u.scales.y.min, u.scales.y.max, buckets);
      const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
      // The most of each bucket in a column of pixels first, then of the buckets in a row of pixels.
      const column = new Uint8Array(buckets);
      for (let px = 0; px < width; px++) {
        column.fill(0);
        for (let s = x.first[px]; s < x.end[px]; s++)
          for (let b = 0; b < buckets; b++) {
            const found = levels[s * buckets + b];
            if (found > column[b]) column[b] = found;
          }
        for (let py = 0; py < height; py++) {
          let most = 0;
          for (let b = y.first[py]; b < y.end[py]; b++) if (column[b] > most) most = column[b];
          pixels[py * width + px] = colours[most];
        }
      }
      u.ctx.putImageData(image, Math.round(left), Math.round(top));
    }

    // Labels where the outermost segments change that leave room; else keys at even distances.
    function splits(u, axis, min, max) {
      const room = Math.max(2, Math.floor(u.bbox.height / devicePixelRatio / 20));
      let found = [];
      for (const changes of map.changes) {
        const seen = changes.filter(([at, label]) => at >= min && at < max && label !== "");
        if (seen.length <= room && seen.length > found.length) found = seen;
      }
      const least = (max - min) / room;
      if (found.length >= 2) {
        const kept = [];
        for (const [at] of found) if (!kept.length || at - kept.at(-1) >= least) kept.push(at);
        return kept;
      }
      const count = Math.min(room, Math.ceil(max - min), 8), even = [];
      for (let at = 0; at < count; at++) even.push(Math.floor(min + (at * (max - min)) / count));
      return [...new Set(even)];
    }
    function label(u, at) {
      const level = map.changes.findLast((changes) => changes.some(([place]) => place === at) && changes.length > 1);
      const full = map.keys[clamp(at, 0, buckets - 1)];
      const text = level && u.scales.y.max - u.scales.y.min > 1 && labelled(u, level) ? level.find(([place]) => place === at)[1] : full;
      u.ctx.font = font.replace("12px", `${12 * devicePixelRatio}px`);
      const room = (labels() - 14) * devicePixelRatio;
      if (u.ctx.measureText(text).width <= room) return isolated(text);
      const letters = [...text];
      while (letters.length > 1 && u.ctx.measureText(letters.join("") + "…").width > room) letters.pop();
      return isolated(letters.join("") + "…");
    }
    const labelled = (u, changes) => changes.filter(([at]) => at >= u.scales.y.min && at < u.scales.y.max).length >= 2;

    const sync = { key: "time", setSeries: false, scales: ["x", null] };
    const size = () => ({ width: holder.clientWidth, height: narrow() ? 280 : clamp(buckets, 320, 420) });
    const hasShare = map.top_share.length > 0;
    const cell = () => [start + (chosen.slice + 0.5) * slice, chosen.bucket + 0.5];

    const box = document.createElement("div");
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-label", `Heatmap of ${map.layout}`);
    box.setAttribute("aria-describedby", "map-keys");
    holder.append(box);
    article.classList.add("live");
    readout.hidden = false;

    const plot = new uPlot({
      ...size(), legend: { show: false }, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      padding: [6, 8, 0, 0],
      cursor: { sync, drag: { x: true, y: true, uni: 24 }, points: { show: false } },
      scales: { x: { time: true }, y: { auto: false, dir: -1, range: (u, min, max) => [min ?? 0, max ?? buckets] } },
      axes: [{ ...timeAxis(), show: !hasShare }, {
        stroke: () => css("--muted"), font, size: labels, gap: 4, splits, values: (u, all) => all.map((at) => label(u, at)),
        grid: { show: false }, ticks: { stroke: () => css("--line"), width: 1, size: 5 },
      }],
      series: [{}, { scale: "y", paths: () => null, points: { show: false } }],
      hooks: {
        draw: [raster],
        setScale: [(u, key) => key === "x" && u.status === 1 && spread(u)],
        setCursor: [(u) => {
          const { left, top } = u.cursor;
          if (left == null || left < 0 || top < 0 || !box.matches(":hover")) return;
          chosen.slice = sliceOf(u.posToVal(left, "x"));
          chosen.bucket = clamp(Math.floor(u.posToVal(top, "y")), 0, buckets - 1);
          readout.textContent = words(chosen.slice, chosen.bucket);
        }],
      },
    }, [[FROM, UNTIL], [null, null]], box);
    plot.setScale("y", { min: 0, max: buckets });

    let line = null;
    if (hasShare) {
      const below = document.createElement("div");
      below.className = "share";
      holder.append(below);
      const xs = [FROM], ys = [null];
      map.top_share.forEach((share, at) => { xs.push(start + at * slice); ys.push(share); });
      xs.push(start + slices * slice); ys.push(map.top_share.at(-1));
      xs.push(Math.max(UNTIL, xs.at(-1))); ys.push(null);
      line = new uPlot({
        width: holder.clientWidth, height: 110, legend: { show: false }, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
        padding: [10, 8, 0, 0],
        cursor: { sync, y: false, drag: { x: true, y: false }, points: { show: false } },
        scales: { x: { time: true, range: (u, min, max) => [min, max] }, y: { auto: false, range: [0, 1] } },
        axes: [timeAxis(), {
          stroke: () => css("--muted"), font, size: labels, gap: 4, splits: () => [0, 0.5, 1],
          values: () => ["0", narrow() ? "0.5" : "top share  0.5", "1"],
          grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false },
        }],
        series: [{}, { stroke: () => css("--link"), width: 1.5, spanGaps: false, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }],
        hooks: { setScale: [(u, key) => key === "x" && u.status === 1 && spread(u)] },
      }, [xs, ys], below);
    }

    const whole = () => {
      plot.setScale("x", { min: FROM, max: UNTIL });
      plot.setScale("y", { min: 0, max: buckets });
    };
    for (const drawn of [plot, line]) drawn?.over.addEventListener("dblclick", whole);

    // Keeps the chosen cell in sight, draws the crosshair on it and says it.
    function show() {
      const [x, y] = cell(), scale = plot.scales;
      const moved = (value, { min, max }, step) => {
        if (value - step / 2 < min) return [value - step / 2, value - step / 2 + (max - min)];
        if (value + step / 2 > max) return [value + step / 2 - (max - min), value + step / 2];
        return [min, max];
      };
      const [x0, x1] = moved(x, scale.x, slice), [y0, y1] = moved(y, scale.y, 1);
      if (x0 !== scale.x.min) plot.setScale("x", { min: x0, max: x1 });
      if (y0 !== scale.y.min) plot.setScale("y", { min: y0, max: y1 });
      plot.setCursor({ left: plot.valToPos(x, "x"), top: plot.valToPos(y, "y") });
      live.textContent = readout.textContent = words(chosen.slice, chosen.bucket);
    }
    function zoom(factor) {
      const [x, y] = cell(), { x: xs, y: ys } = plot.scales;
      const part = (value, { min, max }, least, first, last) => {
        const length = clamp((max - min) * factor, least, last - first);
        const from = clamp(value - length / 2, first, last - length);
        return { min: from, max: from + length };
      };
      plot.setScale("x", part(x, xs, Math.min(4 * slice, UNTIL - FROM), FROM, UNTIL));
      plot.setScale("y", part(y, ys, Math.min(4, buckets), 0, buckets));
    }
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = event.shiftKey ? 10 : 1;
      const keys = {
        ArrowLeft: () => (chosen.slice -= step), ArrowRight: () => (chosen.slice += step),
        ArrowUp: () => (chosen.bucket -= step), ArrowDown: () => (chosen.bucket += step),
        Home: () => (chosen.slice = 0), End: () => (chosen.slice = slices - 1),
        PageUp: () => (chosen.bucket -= 10), PageDown: () => (chosen.bucket += 10),
        Enter: () => {
          const at = values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
          chosen.slice = Math.floor(at / buckets);
          chosen.bucket = at % buckets;
        },
        "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Escape: whole,
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
      chosen.slice = clamp(chosen.slice, 0, slices - 1);
      chosen.bucket = clamp(chosen.bucket, 0, buckets - 1);
      show();
    });
    readout.textContent = "Point at the map, or choose it and use the arrow keys.";
    charts.push({ plot, line, holder, size, whole, values, map });
  }

  for (const map of maps) {
    if (map.slices === 0 || map.keys.length === 0) continue;
    const values = await valuesOf(map);
    chart(map, values);
  }
  document.getElementById("reset").addEventListener("click", () => charts.forEach(({ whole }) => whole()));
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (width === window.innerWidth) return;
    width = window.innerWidth;
    for (const { plot, line, holder, size } of charts) {
      plot.setSize(size());
      line?.setSize({ width: holder.clientWidth, height: 110 });
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { plot, line } of charts) for (const drawn of [plot, line]) drawn?.redraw(false, true);
  });
  window.tidetable = { charts };
  document.documentElement.classList.add("drawn");
})();
