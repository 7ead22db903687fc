// SPDX-License-Identifier: Apache-2.0
// See report_page.h. Colours are variables, so that a dark page has other ones. The colours of
// results are those of viridis, which stays in order for colour-blind readers and in grey: on a
// light page the best are dark, on a dark page they are bright. States have the colours of Okabe
// and Ito. The script puts texts into the page as text alone, never as HTML.
#include "sweep/report_page.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "sweep/results.h"

namespace mete::sweep {

namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--page:#f6f6f4;--card:#fff;--text:#14130f;--soft:#5b5a54;--line:#e6e5e0;--mark:#2a78d6;
--ok:#0b7a5b;--failed:#c2410c;--stopped:#8a8880;--running:#2a78d6;--pending:#dcdbd5;--code:#f1f0ec}
@media(prefers-color-scheme:dark){:root{--page:#151514;--card:#1e1e1d;--text:#f3f2ee;--soft:#b0afa7;--line:#33332f;--mark:#5ba3f2;
--ok:#2fb38a;--failed:#f0824a;--stopped:#8f8d84;--running:#5ba3f2;--pending:#3d3d39;--code:#2a2a28}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1240px;margin:0 auto;padding:28px 20px 48px}h1{font-size:25px;font-weight:660;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:16px;font-weight:620;margin:0 0 2px}p{margin:0 0 10px;color:var(--soft)}
.top{display:flex;flex-wrap:wrap;align-items:center;gap:6px 12px;margin-bottom:2px}
.chip{display:inline-block;border-radius:99px;padding:1px 10px;font-size:13px;font-weight:560;border:1px solid var(--line);background:var(--card);white-space:nowrap}
.chip.ok{color:var(--ok)}.chip.failed{color:var(--failed)}.chip.running{color:var(--running)}.chip.stopped,.chip.pending,.chip.paused{color:var(--soft)}
.meta{font-size:13.5px;margin-bottom:12px}
.progress{display:flex;gap:2px;height:9px;border-radius:5px;overflow:hidden;background:var(--pending);margin:0 0 8px}.progress i{display:block;min-width:3px}
.key{display:flex;flex-wrap:wrap;gap:3px 16px;font-size:13px;color:var(--soft);margin:0 0 8px}
.key i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.key i[class^="k"]{background:var(--k)}.b-ok{background:var(--ok)}.b-failed{background:var(--failed)}.b-stopped{background:var(--stopped)}.b-running{background:var(--running)}.b-pending{background:var(--pending)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(148px,1fr));gap:12px;margin:14px 0 16px}
.figure,section{background:var(--card);border:1px solid var(--line);border-radius:10px;min-width:0}.figure{padding:12px 16px}
.figure b{display:block;font-size:22px;line-height:1.35;font-weight:640;letter-spacing:-.01em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.figure span{display:block;color:var(--soft);font-size:13px}section{padding:16px 20px 14px}
.rows{display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}.cols{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:16px}
.value{font-size:30px;font-weight:660;letter-spacing:-.015em;line-height:1.25;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.params{display:flex;flex-wrap:wrap;gap:6px;margin:10px 0}.params span{background:var(--code);border-radius:6px;padding:2px 9px;font-size:13.5px;overflow-wrap:anywhere}
.params b{font-weight:620}code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--code);border-radius:8px;margin:0;padding:10px 12px;white-space:pre-wrap;overflow-wrap:anywhere;max-height:190px;overflow-y:auto}
.copy{display:flex;gap:8px;align-items:flex-start}.copy pre{flex:1;min-width:0}
button{font:inherit;font-size:13px;color:var(--text);background:var(--card);border:1px solid var(--line);border-radius:7px;padding:5px 11px;cursor:pointer;white-space:nowrap}
button:hover{border-color:var(--soft)}button:disabled{opacity:.4;cursor:default}:focus-visible{outline:2px solid var(--mark);outline-offset:1px}
.scroll{overflow-x:auto;margin:0 -20px;padding:0 20px}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}
table.fit{width:auto}th{font-weight:500;color:var(--soft);font-size:13px}td,th{text-align:left;padding:6px 14px 6px 0;border-bottom:1px solid var(--line);white-space:nowrap}
td.num,th.num{text-align:right}td:last-child,th:last-child{padding-right:0}tr:last-child td{border-bottom:0}td.long{max-width:340px;overflow:hidden;text-overflow:ellipsis}
th button{border:0;background:none;padding:2px 0;color:inherit;font-size:13px}th[aria-sort=ascending] button:after{content:" ▲";font-size:9px}th[aria-sort=descending] button:after{content:" ▼";font-size:9px}
td button{padding:1px 8px;font-size:12px}
.dot{display:inline-block;width:9px;height:9px;border-radius:50%;background:var(--k,transparent);margin-right:7px}
.tools{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center;margin:8px 0}.tools input{flex:1 1 240px;max-width:420px;min-width:0;font:inherit;font-size:14px;padding:6px 11px;border:1px solid var(--line);border-radius:7px;background:var(--page);color:var(--text)}
.tools span{font-size:13px;color:var(--soft)}.pages{margin-left:auto;display:flex;gap:8px;align-items:center}
.imp{display:grid;grid-template-columns:minmax(60px,max-content) 1fr max-content max-content;gap:9px 12px;align-items:center;font-size:14px;font-variant-numeric:tabular-nums;margin-top:10px}
.imp .h{font-size:13px;color:var(--soft)}.imp .n{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;max-width:150px}.imp .r{text-align:right}
.track{position:relative;height:14px;border-radius:4px;background:var(--code)}.track i{position:absolute;left:0;top:0;bottom:0;border-radius:4px;background:var(--mark)}
.track u{position:absolute;top:6px;height:2px;background:var(--text);opacity:.75}.track u:before,.track u:after{content:"";position:absolute;top:-3px;width:2px;height:8px;background:inherit;opacity:1}.track u:before{left:0}.track u:after{right:0}
.ramp{display:inline-flex;flex-wrap:wrap;align-items:center;gap:8px;font-size:13px;color:var(--soft)}.ramp .cells i{display:inline-block;width:14px;height:11px;margin:0;border-radius:0;background:var(--k)}.ramp .cells{display:flex;border-radius:3px;overflow:hidden}
svg{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-variant-numeric:tabular-nums}
svg text{fill:var(--soft)}svg .name text{fill:var(--text);font-weight:540}.grid{stroke:var(--line);stroke-width:1;fill:none}
circle{fill:var(--k);stroke:var(--card);stroke-width:.6}circle.hollow{fill:var(--card);stroke:var(--k);stroke-width:1.4}circle:hover{stroke:var(--text);stroke-width:1.5}
svg rect{fill:var(--k)}svg rect:hover{opacity:.8}.bestline{fill:none;stroke:var(--failed);stroke-width:1.8;stroke-linejoin:round}.failed{stroke:var(--failed);stroke-width:1.2;fill:none}
svg rect.bar{fill:var(--mark)}.curve{fill:none;stroke:var(--soft);stroke-opacity:.28;stroke-width:1.1;stroke-linejoin:round}.curve.best{stroke:var(--k);stroke-opacity:1;stroke-width:2}.curve:hover{stroke:var(--text);stroke-opacity:1;stroke-width:2.4}
.k0{--k:#0072b2}.k1{--k:#d55e00}.k2{--k:#009e73}.k3{--k:#cc79a7}.k4{--k:#b58900}
.box path{stroke:var(--soft);fill:none;stroke-width:1.2}.box rect{fill:var(--mark);fill-opacity:.3;stroke:var(--mark);stroke-width:1.2}.box path.median{stroke:var(--text);stroke-width:2}
.s-ok{--k:var(--ok)}.s-failed{--k:var(--failed)}.s-stopped{--k:var(--stopped)}.s-running{--k:var(--running)}svg text.in{fill:#fff;font-size:11px;pointer-events:none}
@media(prefers-color-scheme:dark){svg text.in{fill:#151514}}
.course{fill:var(--mark);fill-opacity:.45;stroke:var(--mark);stroke-width:1}
polyline{fill:none;stroke:var(--k);stroke-width:1.5;stroke-opacity:.55;stroke-linejoin:round}polyline:hover{stroke-width:3.5;stroke-opacity:1}polyline.off{stroke:var(--soft);stroke-opacity:.07;pointer-events:none}.many polyline{stroke-width:1;stroke-opacity:.26}.many polyline:hover{stroke-width:3;stroke-opacity:1}.many polyline.off{stroke-opacity:.03}.brushed polyline:not(.off){stroke-opacity:.8}
.axis path{stroke:var(--soft);stroke-width:1.2}.axis text{paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
svg rect.hit{fill:transparent;cursor:ns-resize;touch-action:none}svg rect.brush{fill:var(--mark);fill-opacity:.25;stroke:var(--mark);pointer-events:none}
.axis:focus{outline:none}.axis:focus-visible path{stroke:var(--mark);stroke-width:3}
.empty{padding:26px 0 30px;text-align:center}footer{color:var(--soft);font-size:13px;margin-top:18px}
@media(max-width:640px){main{padding:18px 12px 36px}section{padding:14px 14px 12px}.scroll{margin:0 -14px;padding:0 14px}svg{font-size:15px}svg.wide{min-width:760px;font-size:16px}.value{font-size:26px}
.figures{grid-template-columns:1fr 1fr;gap:8px}.figure{padding:10px 12px}.figure b{font-size:19px}.copy{display:block}.copy button{margin-top:8px}.pages{margin-left:0}}
@media print{body{background:#fff}.tools,.copy button{display:none}section{break-inside:avoid}}
)css";

constexpr std::string_view kScript = R"js(
'use strict';
(function () {
  function copied(button) {
    const old = button.textContent;
    button.textContent = 'Copied';
    setTimeout(function () { button.textContent = old; }, 1500);
  }
  function copyOld(text) {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.appendChild(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  document.querySelectorAll('[data-copy]').forEach(function (button) {
    button.addEventListener('click', function () {
      const text = button.getAttribute('data-copy');
      const done = function () { copied(button); };
      const other = function () { copyOld(text); done(); };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, other);
      else other();
    });
  });

  // ---- parallel coordinates ----
  document.querySelectorAll('svg.parallel').forEach(function (svg) {
    const lines = Array.from(svg.querySelectorAll('polyline'));
    const axes = Array.from(svg.querySelectorAll('.axis'));
    const places = lines.map(function (line) {
      return line.getAttribute('points').split(' ').map(function (p) { return +p.split(',')[1]; });
    });
    const ranges = axes.map(function () { return null; });
    const count = document.getElementById('brushed');
    const clear = document.getElementById('unbrush');
    function show() {
      let left = 0;
      lines.forEach(function (line, i) {
        const off = ranges.some(function (r, k) { return r && (places[i][k] < r[0] || places[i][k] > r[1]); });
        line.classList.toggle('off', off);
        if (!off) left++;
      });
      const any = ranges.some(Boolean);
      svg.classList.toggle('brushed', any);
      clear.disabled = !any;
      count.textContent = any ? left + ' of ' + lines.length + ' lines are selected' : '';
      axes.forEach(function (axis, k) {
        const r = ranges[k], rect = axis.querySelector('.brush');
        rect.setAttribute('y', r ? r[0] : 0);
        rect.setAttribute('height', r ? Math.max(1, r[1] - r[0]) : 0);
      });
    }
    let waiting = false;
    function soon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(function () { waiting = false; show(); });
    }
    axes.forEach(function (axis, k) {
      const hit = axis.querySelector('.hit');
      const top = +hit.getAttribute('y'), bottom = top + +hit.getAttribute('height');
      let from = null, before = null;
      function at(event) {
        const p = svg.createSVGPoint();
        p.x = event.clientX;
        p.y = event.clientY;
        const y = p.matrixTransform(svg.getScreenCTM().inverse()).y;
        return Math.max(top, Math.min(bottom, y));
      }
      hit.addEventListener('pointerdown', function (event) {
        if (event.button) return;
        from = at(event);
        before = ranges[k];
        hit.setPointerCapture(event.pointerId);
      });
      hit.addEventListener('pointermove', function (event) {
        if (from === null) return;
        const y = at(event);
        if (Math.abs(y - from) < 4 && ranges[k] === before) return;
        ranges[k] = [Math.min(from, y), Math.max(from, y)];
        soon();
      });
      hit.addEventListener('pointerup', function () { from = null; });
      hit.addEventListener('pointercancel', function () { from = null; });
      hit.addEventListener('dblclick', function () { ranges[k] = null; show(); });
      axis.addEventListener('keydown', function (event) {
        const part = (bottom - top) / 4, step = part / 4;
        const r = ranges[k];
        if (event.key === 'Escape' || event.key === 'Delete') ranges[k] = null;
        else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
          const move = event.key === 'ArrowDown' ? step : -step;
          const y = r ? Math.max(top, Math.min(bottom - (r[1] - r[0]), r[0] + move)) : top;
          ranges[k] = [y, y + (r ? r[1] - r[0] : part)];
        } else return;
        event.preventDefault();
        show();
      });
    });
    function clearAll() { ranges.fill(null); show(); }
    clear.addEventListener('click', clearAll);
    svg.addEventListener('dblclick', function (event) {
      if (!event.target.classList.contains('hit')) clearAll();
    });
    show();
  });
)js"
                                     R"js(
  // ---- all results ----
  const source = document.getElementById('data');
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const columns = data.columns, rows = data.rows, perPage = 50;
  const head = document.getElementById('head'), body = document.getElementById('body');
  const filter = document.getElementById('filter'), shown = document.getElementById('shown');
  const previous = document.getElementById('previous'), next = document.getElementById('next');
  const where = document.getElementById('where');
  let order = rows.map(function (_, i) { return i; });
  let page = 0, sortedBy = -1, down = false;
  function pad(n) { return (n < 10 ? '0' : '') + n; }
  function duration(s) {
    if (s < 60) return s.toFixed(s < 10 ? 2 : 1) + ' s';
    const t = Math.round(s), h = Math.floor(t / 3600), m = Math.floor(t / 60) % 60;
    return (h ? h + ':' + pad(m) : m) + ':' + pad(t % 60);
  }
  function text(row, k) {
    const cell = row[k];
    if (cell === null || cell === undefined) return '';
    switch (columns[k][1]) {
      case 'state': return data.states[cell];
      case 'mib': return cell >= 1024 ? (cell / 1024).toFixed(2) + ' GiB' : cell + ' MiB';
      case 's': return duration(cell);
      default: return String(cell);
    }
  }
  function number(cell) {
    if (cell === null || cell === undefined || cell === '') return NaN;
    return cell === 'inf' ? Infinity : cell === '-inf' ? -Infinity : Number(cell);
  }
  // Numbers first, then texts, then NaN and nothing, whatever the direction.
  function compare(k) {
    return function (a, b) {
      const x = rows[a][k], y = rows[b][k];
      const none = function (v) { return v === null || v === undefined || v === 'NaN'; };
      if (none(x) || none(y)) return none(x) - none(y) || a - b;
      const u = number(x), v = number(y);
      if (isNaN(u) !== isNaN(v)) return isNaN(u) - isNaN(v);
      const d = isNaN(u) ? (x < y ? -1 : x > y ? 1 : 0) : u < v ? -1 : u > v ? 1 : 0;
      return (down ? -d : d) || a - b;
    };
  }
  function tests(words) {
    return words.split(/\s+/).filter(Boolean).map(function (word) {
      const parts = /^([^<>=!]+)(<=|>=|!=|=|<|>)(.*)$/.exec(word);
      const k = parts ? columns.findIndex(function (c) { return c[0].toLowerCase() === parts[1]; }) : -1;
      if (k < 0)
        return function (row) {
          return columns.some(function (_, i) { return text(row, i).toLowerCase().includes(word); });
        };
      const wanted = parts[3], op = parts[2];
      return function (row) {
        const have = text(row, k).toLowerCase();
        const x = number(columns[k][1] === 'state' ? null : row[k]), y = number(wanted);
        const equal = have === wanted || x === y;
        if (op === '=') return equal;
        if (op === '!=') return !equal;
        return op === '<' ? x < y : op === '>' ? x > y : op === '<=' ? x <= y : x >= y;
      };
    });
  }
  function draw() {
    const pages = Math.max(1, Math.ceil(order.length / perPage));
    page = Math.max(0, Math.min(page, pages - 1));
    const list = document.createDocumentFragment();
    order.slice(page * perPage, (page + 1) * perPage).forEach(function (i) {
      const row = rows[i], line = document.createElement('tr');
      columns.forEach(function (column, k) {
        const cell = document.createElement('td');
        const words = text(row, k);
        if (column[1] === 'state') {
          const chip = document.createElement('span');
          chip.className = 'chip ' + words;
          chip.textContent = words;
          cell.appendChild(chip);
        } else {
          if (k === data.metric) {
            const dot = document.createElement('span');
            dot.className = 'dot' + (row[columns.length] >= 0 ? ' c' + row[columns.length] : '');
            cell.appendChild(dot);
          }
          cell.appendChild(document.createTextNode(words));
          cell.className = column[1] === '' ? 'long' : 'num';
          if (words.length > 40) cell.title = words;
        }
        line.appendChild(cell);
      });
      list.appendChild(line);
    });
    body.replaceChildren(list);
    shown.textContent = order.length.toLocaleString('en') + ' of ' + rows.length.toLocaleString('en') + ' rows';
    where.textContent = 'page ' + (page + 1) + ' of ' + pages;
    previous.disabled = page === 0;
    next.disabled = page >= pages - 1;
  }
  function choose() {
    const all = tests(filter.value.toLowerCase());
    order = [];
    rows.forEach(function (row, i) {
      if (all.every(function (test) { return test(row); })) order.push(i);
    });
    if (sortedBy >= 0) order.sort(compare(sortedBy));
    page = 0;
    draw();
  }
  columns.forEach(function (column, k) {
    const cell = document.createElement('th'), button = document.createElement('button');
    cell.scope = 'col';
    if (column[1] !== '' && column[1] !== 'state') cell.className = 'num';
    button.type = 'button';
    button.textContent = column[0];
    button.title = 'Sort by ' + column[0];
    button.addEventListener('click', function () {
      down = sortedBy === k && !down;
      sortedBy = k;
      Array.from(head.children).forEach(function (other) { other.removeAttribute('aria-sort'); });
      cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      choose();
    });
    cell.appendChild(button);
    head.appendChild(cell);
  });
  let timer = 0;
  filter.addEventListener('input', function () { clearTimeout(timer); timer = setTimeout(choose, 120); });
  previous.addEventListener('click', function () { page--; draw(); });
  next.addEventListener('click', function () { page++; draw(); });
  draw();
})();
)js";

// ---- colours -----------------------------------------------------------------------------------

struct Colour {
  double red, green, blue;
};
// Viridis at even distances.
constexpr std::array<Colour, 10> kViridis{{{0x44, 0x01, 0x54},
                                           {0x48, 0x28, 0x78},
                                           {0x3e, 0x4a, 0x89},
                                           {0x31, 0x68, 0x8e},
                                           {0x26, 0x82, 0x8e},
                                           {0x1f, 0x9e, 0x89},
                                           {0x35, 0xb7, 0x79},
                                           {0x6e, 0xce, 0x58},
                                           {0xb5, 0xde, 0x2b},
                                           {0xfd, 0xe7, 0x25}}};

std::string viridis(double part) {
  const double at = part * (kViridis.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
  const double rest = at - static_cast<double>(below);
  const auto mixed = [&](double Colour::*of) {
    const double value = kViridis[below].*of * (1 - rest) + kViridis[below + 1].*of * rest;
    return static_cast<char>(static_cast<unsigned char>(std::lround(value)));
  };
  const char bytes[]{mixed(&Colour::red), mixed(&Colour::green), mixed(&Colour::blue)};
  return "#" + base::to_hex({bytes, 3});
}

std::string levels(double worst, double best) {
  std::string style;
  for (std::size_t i = 0; i < kLevels; ++i) {
    const double part = static_cast<double>(i) / (kLevels - 1);
    style += ".c" + std::to_string(i) + "{--k:" + viridis(worst + (best - worst) * part) + "}";
  }
  return style;
}

}  // namespace

std::string report_style() {
  return std::string(kStyle) + levels(0.9, 0) + "\n@media(prefers-color-scheme:dark){" +
         levels(0.16, 1) + "}\n";
}

std::string_view report_script() { return kScript; }

}  // namespace mete::sweep
