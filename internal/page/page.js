"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var plots = [];

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function short(v) {
    var a = Math.abs(v), units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    for (var i = 0; i < units.length; i++) if (a >= units[i][0]) return trim(v / units[i][0]) + units[i][1];
    return trim(v);
  }
  function trim(v) { return String(Number(v.toPrecision(3))); }
  function seconds(v) {
    if (v >= 1) return trim(v) + " s";
    if (v >= 1e-3) return trim(v * 1e3) + " ms";
    return trim(v * 1e6) + " µs";
  }
  function clock(v) {
    if (v < 600) return trim(v) + " s";
    var m = Math.floor(v / 60), s = Math.round(v % 60);
    return m < 60 ? m + "m" + (s ? s + "s" : "") : Math.floor(m / 60) + "h" + (m % 60 ? m % 60 + "m" : "");
  }
  function format(unit) {
    return function (v) {
      if (v == null) return "–";
      return unit === "s" ? seconds(v) : unit === "B" ? short(v) + "B" : short(v);
    };
  }

  function axis(extra) {
    return Object.assign({ stroke: css("--soft"), font: "12px system-ui, sans-serif", grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 } }, extra);
  }
  function lines(series, write, points) {
    return series.map(function (s, i) {
      return { label: s.name, stroke: css("--s" + i % 6), width: 1.8, spanGaps: false, points: { show: points || s.values.indexOf(null) >= 0, size: 4 }, value: function (u, v) { return write(v); } };
    });
  }
  function positive(values, log) { return log ? values.map(function (v) { return v > 0 ? v : null; }) : values; }
  function vertical(log) {
    if (!log) return { range: function (u, low, high) { return [0, high > 0 ? high * 1.08 : 1]; } };
    return { distr: 3, range: function (u, low, high) {
      if (!(low > 0)) return [1e-3, 1];
      return [Math.pow(10, Math.floor(Math.log10(low))), Math.pow(10, Math.ceil(Math.log10(high) + 1e-9))];
    } };
  }
  // On a logarithmic axis, label only 1, 2 and 5, or fewer if there is no room.
  function logSplits(u, at, low, high) {
    var all = [], decades = Math.log10(high / low);
    for (var e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
      (decades > 3 ? [1] : [1, 2, 5]).forEach(function (m) { var v = m * Math.pow(10, e); if (v >= low * 0.999 && v <= high * 1.001) all.push(v); });
    return all;
  }
  var logAxis = { splits: logSplits, filter: function (u, all) { return all; } };
  function draw(el, options, values) {
    options.width = Math.max(280, el.clientWidth);
    options.height = 230;
    var plot = new uPlot(options, values, el);
    plots.push({ plot: plot, el: el });
  }
  function drawChart(el, c) {
    var write = format(c.unit), count = Math.max.apply(null, c.series.map(function (s) { return s.values.length; }).concat(0)), x = [];
    for (var i = 0; i < count; i++) x.push((i + 0.5) * c.every);
    draw(el, {
      scales: { x: { time: false, range: [0, Math.max(count * c.every, 1e-3)] }, y: vertical(c.log) },
      axes: [axis({ values: function (u, all) { return all.map(clock); } }), axis(Object.assign({ size: 64, values: function (u, all) { return all.map(write); } }, c.log ? logAxis : {}))],
      series: [{ label: "at", value: function (u, v) { return v == null ? "–" : clock(v); } }].concat(lines(c.series, write, count < 2)),
      cursor: { sync: { key: "time" }, points: { size: 6 } },
    }, [x].concat(c.series.map(function (s) { return positive(s.values, c.log); })));
  }
  function drawHeat() {
    var h = data.heat, box = document.getElementById("heat");
    if (!h || !box) return;
    var canvas = box.querySelector("canvas"), rows = h.partitions.length, cells = atob(h.cells), g = canvas.getContext("2d");
    canvas.width = h.columns; canvas.height = rows;
    canvas.style.height = Math.min(26, Math.max(3, rows * 1.1)) + "rem";
    document.getElementById("most").textContent = short(h.most) + " " + h.unit + " or more";
    document.getElementById("end").textContent = clock(h.columns * h.every);
    var stops = [0, 1, 2, 3].map(function (i) { return css("--heat" + i).split(",").map(Number); }), image = g.createImageData(h.columns, rows);
    for (var x = 0; x < h.columns; x++) for (var y = 0; y < rows; y++) {
      var t = cells.charCodeAt(x * rows + y) / 255 * 3, i = Math.min(2, Math.floor(t)), f = t - i, at = 4 * ((rows - 1 - y) * h.columns + x);
      for (var k = 0; k < 3; k++) image.data[at + k] = stops[i][k] + (stops[i + 1][k] - stops[i][k]) * f;
      image.data[at + 3] = 255;
    }
    g.putImageData(image, 0, 0);
    canvas.onmousemove = function (e) {
      var r = canvas.getBoundingClientRect(), x = Math.min(h.columns - 1, Math.max(0, Math.floor((e.clientX - r.left) / r.width * h.columns)));
      var y = rows - 1 - Math.min(rows - 1, Math.max(0, Math.floor((e.clientY - r.top) / r.height * rows)));
      var level = cells.charCodeAt(x * rows + y), from = h.partitions[y] === "" ? "the first key" : h.partitions[y];
      document.getElementById("tip").textContent = "at " + clock(x * h.every) + ", " + (h.each > 1 ? h.each + " partitions" : "partition " + y) + " from " + from + ": " + (level === 255 ? "at least " : level ? "about " : "") + short(level / 255 * h.most) + " " + h.unit;
    };
  }

  function paint() {
    plots.forEach(function (p) { p.plot.destroy(); });
    plots = [];
    document.querySelectorAll("[data-chart]").forEach(function (el) { drawChart(el, data.charts[el.dataset.chart]); });
    drawHeat();
  }
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  var wide = document.body.clientWidth;
  addEventListener("resize", function () {
    if (document.body.clientWidth === wide) return;
    wide = document.body.clientWidth;
    plots.forEach(function (p) { p.plot.setSize({ width: Math.max(280, p.el.clientWidth), height: 230 }); });
  });
})();
