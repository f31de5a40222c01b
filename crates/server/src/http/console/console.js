// The console: asks the server for its figures every two seconds, draws them, and lists what runs.
'use strict';

const EVERY_MS = 2000;
/** Points of a chart: ten minutes. */
const KEPT = 300;
const NAMES = ['server', 'metrics', 'activity', 'statements', 'replication', 'tables', 'routes'];
const COLOURS = ['#1f77b4', '#d2691e', '#2e8b57', '#9467bd', '#b3261e', '#17a2b8', '#8c6d31', '#7f7f7f', '#c2185b', '#607d8b'];

/**
 * A chart: its title, the unit of its values, and for each line its label and how its value is read off the samples of now
 * and before, `seconds` apart; null where there is none.
 */
const CHARTS = [
  {
    title: 'Statements per second',
    lines: {
      all: rate('avocet_statements_total'),
      analytical: rate('avocet_analytic_queries_total'),
    },
  },
  {
    title: 'Connections',
    lines: { 'signed in': gauge('avocet_connections'), running: gauge('avocet_connections_running') },
  },
  {
    title: 'Commit wait, ms',
    lines: {
      median: quantile('avocet_commit_wait_seconds', 0.5, 1e3),
      p99: quantile('avocet_commit_wait_seconds', 0.99, 1e3),
    },
  },
  {
    title: 'Memory, MiB',
    lines: Object.fromEntries(
      ['hot_pages', 'indexes', 'versions', 'queries', 'clients', 'cache', 'rest'].map((use) => [
        use.replace('_', ' '),
        gauge(`avocet_memory_bytes{use="${use}"}`, 1 / 1048576),
      ]),
    ),
  },
  {
    title: 'Lag, seconds',
    when: 'avocet_replication_running',
    lines: { lag: gauge('avocet_replication_lag_seconds') },
  },
  {
    title: 'Lag, transactions',
    when: 'avocet_replication_running',
    lines: { transactions: gauge('avocet_replication_lag_transactions') },
  },
  {
    title: 'Applied per second',
    when: 'avocet_replication_running',
    lines: {
      transactions: rate('avocet_replication_transactions_total'),
      changes: rate('avocet_replication_changes_total'),
    },
  },
  {
    title: 'Freshness wait, ms',
    when: 'avocet_replication_running',
    lines: {
      median: quantile('avocet_freshness_wait_seconds', 0.5, 1e3),
      p99: quantile('avocet_freshness_wait_seconds', 0.99, 1e3),
    },
  },
  {
    title: 'Statements through the front, per second',
    when: 'avocet_replication_running',
    lines: {
      'here': rate('avocet_routed_total{ran_on="avocet"}'),
      'source': rate('avocet_routed_total{ran_on="source"}'),
    },
  },
];

function gauge(name, scale = 1) {
  return (now) => (now.has(name) ? now.get(name) * scale : null);
}

function rate(name) {
  return (now, before, seconds) =>
    now.has(name) && before?.has(name) ? Math.max(0, now.get(name) - before.get(name)) / seconds : null;
}

/** An upper bound of a quantile of what a histogram has counted between two samples. */
function quantile(name, q, scale) {
  const prefix = `${name}_bucket{le="`;
  return (now, before) => {
    if (!before) return null;
    const counts = [];
    for (const [key, value] of now) {
      if (key.startsWith(prefix)) {
        counts.push([Number(key.slice(prefix.length, -2).replace('+Inf', 'Infinity')), value - (before.get(key) ?? 0)]);
      }
    }
    counts.sort(([a], [b]) => a - b);
    const all = counts.at(-1)?.[1] ?? 0;
    if (all <= 0) return null;
    const bound = counts.find(([, count]) => count >= q * all)[0];
    return bound === Infinity ? null : bound * scale;
  };
}

const element = (id) => document.getElementById(id);

async function rows(name) {
  const response = await fetch(`/api/${name}`, { signal: AbortSignal.timeout(10 * EVERY_MS) });
  if (!response.ok) throw new Error((await response.text()).trim());
  const { columns, rows } = await response.json();
  return { columns, rows, objects: rows.map((row) => Object.fromEntries(row.map((value, at) => [columns[at], value]))) };
}

function samples({ objects }) {
  return new Map(objects.map(({ name, labels, value }) => [labels ? `${name}{${labels}}` : name, value]));
}

function shown(value) {
  if (value === null) return '';
  if (typeof value !== 'number') return String(value);
  return Number.isInteger(value) ? value.toLocaleString('en') : value.toLocaleString('en', { maximumSignificantDigits: 4 });
}

function list(id, pairs) {
  element(id).replaceChildren(
    ...pairs.map(([name, value]) => {
      const pair = document.createElement('div');
      const [term, definition] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = name;
      definition.textContent = shown(value);
      pair.append(term, definition);
      return pair;
    }),
  );
}

const TEXTS = new Set(['statement', 'query', 'why', 'state']);

function table(id, { columns, rows }) {
  const kinds = columns.map((column, at) =>
    rows.length && rows.every((row) => row[at] === null || typeof row[at] === 'number') ? 'number' : TEXTS.has(column) ? 'text' : '',
  );
  const line = (cells, tag) => {
    const row = document.createElement('tr');
    row.append(
      ...cells.map((cell, at) => {
        const box = document.createElement(tag);
        box.className = kinds[at];
        box.textContent = tag === 'th' ? String(cell).replaceAll('_', ' ') : shown(cell);
        return box;
      }),
    );
    return row;
  };
  const [head, body] = [document.createElement('thead'), document.createElement('tbody')];
  head.append(line(columns, 'th'));
  body.append(...rows.map((row) => line(row, 'td')));
  element(id).replaceChildren(head, body);
}

class Chart {
  constructor({ title, when, lines }) {
    this.when = when;
    this.readers = Object.values(lines);
    this.data = [[], ...this.readers.map(() => [])];
    this.figure = document.createElement('figure');
    this.figure.hidden = Boolean(when);
    const caption = document.createElement('figcaption');
    caption.textContent = title;
    this.figure.append(caption);
    element('charts').append(this.figure);
    const ink = getComputedStyle(document.documentElement).getPropertyValue('--soft');
    const axis = { stroke: ink, grid: { stroke: 'rgba(128, 128, 128, 0.2)' }, ticks: { stroke: 'rgba(128, 128, 128, 0.2)' } };
    this.plot = new uPlot(
      {
        width: 400,
        height: 160,
        series: [
          {},
          ...Object.keys(lines).map((label, at) => ({
            label,
            stroke: COLOURS[at % COLOURS.length],
            width: 1.5,
            spanGaps: false,
            value: (_, value) => shown(value ?? null),
          })),
        ],
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, 1e-3) * 1.1] } },
        axes: [axis, { ...axis, size: 60 }],
      },
      this.data,
      this.figure,
    );
    new ResizeObserver(() => this.plot.setSize({ width: Math.max(200, this.figure.clientWidth - 20), height: 160 })).observe(this.figure);
  }

  add(at, now, before, seconds) {
    this.figure.hidden = Boolean(this.when) && !now.has(this.when);
    [at, ...this.readers.map((read) => read(now, before, seconds))].forEach((value, line) => {
      this.data[line].push(value);
      if (this.data[line].length > KEPT) this.data[line].shift();
    });
    this.plot.setData(this.data);
  }
}

async function start() {
  const charts = CHARTS.map((chart) => new Chart(chart));
  let before = null;
  let before_at = 0;
  const refresh = async () => {
    // One after the other, so that one connection is enough.
    const answers = {};
    for (const name of NAMES) answers[name] = await rows(name);
    const { server, metrics, activity, statements, replication, tables, routes } = answers;
    const [now, at] = [samples(metrics), Date.now() / 1000];
    charts.forEach((chart) => chart.add(at, now, before, at - before_at));
    [before, before_at] = [now, at];
    list('server', [...Object.entries(server.objects[0]), ['uptime, s', Math.floor(now.get('avocet_uptime_seconds'))]]);
    table('activity', activity);
    table('statements', statements);
    element('routes-section').hidden = routes.rows.length === 0;
    table('routes', routes);
    const [replica] = replication.objects;
    element('replication-section').hidden = !replica;
    if (replica) {
      const { last_error, ...figures } = replica;
      list('replication', Object.entries(figures).map(([name, value]) => [name.replaceAll('_', ' '), value]));
      element('replication-error').textContent = last_error ?? '';
      table('tables', tables);
    }
  };
  for (;;) {
    try {
      await refresh();
      element('notice').textContent = '';
    } catch (error) {
      element('notice').textContent = `The server does not answer: ${error.message}`;
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

start();
