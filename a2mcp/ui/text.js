// What callers say, as text that shows what it is. Knows no elements but those it makes.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029\u115f\u1160\u3164\uffa0\ufe00-\ufe0f]/gu;

/** Makes control, direction and invisible characters visible; line ends and tabs stay where there is room for them. */
export function visible(text, { lines = false } = {}) {
  return String(text).replace(HIDDEN, (c) => {
    if (lines && (c === "\n" || c === "\t")) return c;
    const code = c.codePointAt(0);
    return `«U+${code.toString(16).toUpperCase().padStart(4, "0")}»`;
  });
}

/** The start of a text on one line. */
export function brief(text, most = 160) {
  const start = visible(String(text).slice(0, most * 2).replaceAll("\n", " ↵ "));
  return start.length > most ? `${start.slice(0, most)}…` : start;
}

/** Arguments as a person reads them: the most telling one first, then all of it. */
export function folded(args) {
  if (args === undefined || args === null) return { head: "", whole: "" };
  if (typeof args !== "object") return { head: brief(args), whole: visible(args, { lines: true }) };
  const telling = ["command", "path", "pattern", "uri", "action", "text", "id"].find((name) => typeof args[name] === "string");
  const whole = visible(JSON.stringify(args, null, 2), { lines: true });
  return { head: brief(telling ? args[telling] : JSON.stringify(args)), whole };
}

/** A JSON text as a value; what is none, as it is. */
export function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

export function seconds(s) {
  if (s === null || s === undefined) return "";
  if (s < 0.0995) return `${(s * 1000).toFixed(s < 0.00995 ? 1 : 0)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Bytes as a person reads them. */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  const step = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** step).toFixed(1)} ${["", "KiB", "MiB", "GiB"][step]}`;
}

export function clock(ts) {
  const at = new Date(ts ?? NaN);
  return Number.isNaN(at.valueOf()) ? "" : at.toLocaleTimeString([], { hour12: false });
}

/** The start of an id; the whole is in the details. */
export function short(id) {
  return id ? brief(id, 8) : "no session";
}

/** Makes an element. Strings become text and nothing else; `on…` are listeners. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Makes a list show these items: rows that stay are kept with their focus and what is open in them. */
export function sync(list, items, key, make, update = () => {}) {
  const rows = (list.rows ??= new Map());
  const wanted = new Set(items.map(key));
  for (const [name, row] of rows) {
    if (wanted.has(name)) continue;
    if (row.contains(document.activeElement)) list.closest("section")?.querySelector("h2")?.focus();
    row.remove();
    rows.delete(name);
  }
  let before = null;
  for (const item of items) {
    const name = key(item);
    let row = rows.get(name);
    if (!row) {
      row = make(item);
      rows.set(name, row);
    }
    update(row, item);
    const place = before ? before.nextSibling : list.firstChild;
    if (row !== place) list.insertBefore(row, place);
    before = row;
  }
}
