// Calls: those in flight, those that wait for the operator, the last ones and their pulse. Is told events.

import { brief, clock, folded, h, parsed, seconds, short, sync, visible } from "./text.js";
import { get, post } from "./link.js";
import { act, byId, counted, now } from "./page.js";

const LAST = 100;
const FLYING = 200;
const BUCKETS = 60;
const BUCKET_S = 5;
/** Between two drawings of the pulse. */
const PULSE_S = 0.5;
const SVG = "http://www.w3.org/2000/svg";

/** By id; `since` is in the time of this page, which no jump of a clock changes. */
const flying = new Map();
const ended = [];
const pulse = [];
let waiting = [];
let pulsed = -1;

export const GOOD = { ok: "good", approved: "good", error: "bad", aborted: "bad", denied: "bad", cancelled: "warn", unfinished: "warn" };

/** Takes one event; says what else must be asked for. */
export function told(event, live) {
  if (event.kind === "call.start") {
    flying.set(event.call, { ...event, since: now() });
  } else if (event.kind === "call.done") {
    flying.delete(event.call);
    ended.unshift(event);
    ended.length = Math.min(ended.length, LAST);
    const age = live ? 0 : Math.max(0, (Date.now() - Date.parse(event.ts)) / 1000);
    pulse.push({ at: now() - age, seconds: event.seconds ?? 0 });
  }
}

/** What the daemon says of now counts more than what events said. */
export async function reconcile() {
  const calls = await get("calls");
  const ids = new Set(calls.map((call) => call.call_id));
  for (const [id, call] of flying) if (!ids.has(id) && now() - call.since > 1) flying.delete(id);
  for (const call of calls) {
    flying.set(call.call_id, {
      call: call.call_id, tool: call.tool, args: call.args, client: call.client, session: call.session_id,
      waiting: call.waiting, since: now() - call.elapsed_s,
    });
  }
}

export async function askWaiting() {
  waiting = (await get("approvals")).map((one) => ({ ...one, since: now() - one.waiting_s }));
  document.title = waiting.length ? `(${waiting.length}) a2mcp` : "a2mcp";
}

export function show() {
  const calls = [...flying.values()];
  counted("calls", calls.length);
  sync(byId("calls"), calls.slice(0, FLYING), (call) => call.call, flyingRow, elapse);
  counted("approvals", waiting.length);
  sync(byId("approvals"), waiting, (one) => one.id, waitingRow, elapse);
  sync(byId("last"), ended, (call) => call.call, endedRow);
  if (now() - pulsed < PULSE_S) return;
  pulsed = now();
  showPulse();
}

/** Once a second, and with each change. */
function elapse(row, item) {
  row.querySelector("[data-elapsed]").textContent = seconds(Math.max(0, now() - item.since));
  const state = row.querySelector("[data-state]");
  if (state) state.textContent = item.waiting ? "waits for you" : "runs";
}

function who(client, session) {
  const text = `${client ? brief(client, 60) : "unnamed client"} · ${short(session)}`;
  return h("span", { class: "meta", title: visible(session ?? "") }, text);
}

export function details(args) {
  const { head, whole } = folded(args);
  return h("details", {}, h("summary", {}, head || "no arguments"), h("pre", { tabindex: "0" }, whole));
}

function flyingRow(call) {
  const cancel = h("button", {
    type: "button", class: "danger", "aria-label": `Cancel ${visible(call.tool)}, ${short(call.call)}`,
    onclick: () => act(() => post("calls/cancel", { id: call.call }), `${visible(call.tool)} is being ended.`),
  }, "Cancel");
  return h("li", {},
    h("div", { class: "top" },
      h("span", { class: "name mono" }, visible(call.tool ?? "?")),
      h("span", { class: "meta", "data-state": "" }),
      h("span", { class: "meta", "data-elapsed": "" }),
      h("span", { class: "grow" }), who(call.client, call.session), cancel),
    details(call.args));
}

function waitingRow(one) {
  const tool = visible(one.tool);
  const args = parsed(one.args);
  const command = typeof args?.command === "string" ? args.command : null;
  const reason = h("input", { autocomplete: "off", maxlength: "500", id: `reason-${one.id}` });
  const answer = (word, said) => () => act(async () => {
    await post("approvals", { id: one.id, ...word });
  }, said, askWaiting);
  const button = (label, kind, word, said, more = {}) =>
    h("button", { type: "button", class: kind, "aria-label": `${label}: ${tool}, ${visible(one.id)}`, onclick: answer(word, said), ...more }, label);
  return h("li", { "data-approval": visible(one.id) },
    h("div", { class: "top" },
      h("span", { class: "name mono" }, tool), who(one.client, one.session_id), h("span", { class: "grow" }),
      h("span", { class: "meta" }, "waits ", h("span", { "data-elapsed": "" }))),
    command === null ? null : h("pre", { tabindex: "0", "aria-label": "Command" }, visible(command, { lines: true })),
    command !== null && Object.keys(args).length === 1 ? null
      : h("pre", { tabindex: "0", "aria-label": "Arguments" }, folded(args).whole),
    h("div", { class: "buttons" },
      button("Approve once", "main", { approve: true }, `${tool} goes on.`),
      button("For this session", "", { approve: true, scope: "session" }, `${tool} is not asked about again in this session.`, { disabled: !one.session_id }),
      button("Always for this tool", "", { approve: true, scope: "always" }, `${tool} is not asked about again.`)),
    h("div", { class: "buttons" },
      h("label", { class: "reason" }, "Reason, for the caller", reason),
      h("button", {
        type: "button", class: "danger", "aria-label": `Deny: ${tool}, ${visible(one.id)}`,
        onclick: () => answer({ approve: false, reason: reason.value }, `${tool} was denied.`)(),
      }, "Deny")));
}

function endedRow(call) {
  return h("li", {},
    h("div", { class: "top" },
      h("span", { class: "meta" }, clock(call.ts)),
      h("span", { class: "name mono" }, visible(call.tool ?? "?")),
      h("span", { class: GOOD[call.status] ?? "meta" }, visible(call.status ?? "")),
      h("span", { class: "meta" }, seconds(call.seconds)),
      h("span", { class: "grow" }), who(call.client, call.session)),
    details(call.args));
}

// --- the pulse ---------------------------------------------------------------------------------------------------

function quantile(sorted, q) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] : null;
}

function showPulse() {
  const end = now();
  while (pulse.length > 20_000 || (pulse.length && end - pulse[0].at > BUCKETS * BUCKET_S)) pulse.shift();
  const buckets = Array.from({ length: BUCKETS }, () => []);
  for (const { at, seconds: took } of pulse) {
    const place = BUCKETS - 1 - Math.floor((end - at) / BUCKET_S);
    if (place >= 0 && place < BUCKETS) buckets[place].push(took);
  }
  for (const bucket of buckets) bucket.sort((a, b) => a - b);
  draw(buckets);
  const all = pulse.map((call) => call.seconds).sort((a, b) => a - b);
  const text = byId("pulse-text");
  if (!all.length) return text.replaceChildren("No calls in five minutes.");
  return text.replaceChildren(
    `${all.length} calls in five minutes · `,
    h("span", { class: "good" }, `p50 ${seconds(quantile(all, 0.5))}`), " · ",
    h("span", { class: "warn" }, `p99 ${seconds(quantile(all, 0.99))}`));
}

function draw(buckets) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.length));
  const slowest = Math.max(1e-6, ...buckets.map((bucket) => quantile(bucket, 0.99) ?? 0));
  const bars = buckets.map((bucket, n) => {
    const height = (bucket.length / most) * 44;
    return shape("rect", { x: n * 5, y: 48 - height, width: 4, height });
  });
  const line = (q, name) => shape("polyline", {
    class: name,
    points: buckets.flatMap((bucket, n) => (bucket.length ? [`${n * 5 + 2},${46 - (quantile(bucket, q) / slowest) * 42}`] : [])).join(" "),
  });
  byId("spark").replaceChildren(...bars, line(0.99, "p99"), line(0.5, "p50"));
}

function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
