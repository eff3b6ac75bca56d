// What is beside calls: sessions, jobs and their output, the share, the tunnel, grants, the log, what doctor finds.

import { brief, clock, h, seconds, short, size, sync, visible } from "./text.js";
import { del, get, post } from "./link.js";
import { act, byId, copy, counted, now } from "./page.js";
import { details, GOOD } from "./calls.js";

const TAIL = 16 * 1024;
const KEPT = 128 * 1024;
const TAIL_MS = 700;

// --- sessions and grants -----------------------------------------------------------------------------------------

export async function sessions() {
  const all = (await get("sessions")).map((one) => ({ ...one, since: now() - one.idle_s })).reverse();
  counted("sessions", all.length);
  sync(byId("sessions"), all.slice(0, 100), (one) => one.id, sessionRow, (row, one) => {
    row.querySelector("[data-facts]").textContent =
      one.calls ? `${one.calls} in flight` : `idle for ${seconds(one.idle_s)}`;
  });
}

function sessionRow(one) {
  return h("li", { class: "top" },
    h("code", { title: visible(one.id) }, short(one.id)), h("span", { class: "meta", "data-facts": "" }), h("span", { class: "grow" }),
    h("button", {
      type: "button", class: "danger", "aria-label": `End session ${short(one.id)}`,
      onclick: () => act(() => post("sessions/end", { id: one.id }), "The session has ended.", sessions),
    }, "End"));
}

export async function grants() {
  const all = await get("grants");
  counted("grants", all.length);
  sync(byId("grants"), all, (one) => one.id, (one) => h("li", { class: "top" },
    h("span", { class: "name mono" }, visible(one.tool)),
    h("span", { class: "meta" }, one.session_id ? `session ${short(one.session_id)}` : "everybody"),
    h("span", { class: "meta" }, one.until ? `until ${clock(one.until)}` : ""), h("span", { class: "grow" }),
    h("button", {
      type: "button", "aria-label": `Revoke ${visible(one.tool)}`,
      onclick: () => act(() => post("grants/revoke", { id: one.id }), `${visible(one.tool)} is asked about again.`, grants),
    }, "Revoke")));
}

// --- jobs --------------------------------------------------------------------------------------------------------

const RUNNING = new Set(["running", "background", "orphan"]);
export let jobsRun = false;

export async function jobs() {
  const all = (await get("jobs")).sort((a, b) => (a.started_at < b.started_at ? 1 : -1));
  jobsRun = all.some((job) => RUNNING.has(job.state));
  counted("jobs", all.filter((job) => RUNNING.has(job.state)).length);
  sync(byId("jobs"), all, (job) => job.id, jobRow, (row, job) => {
    const code = job.exit_code === null ? "" : ` · exit code ${job.exit_code}`;
    row.querySelector("[data-facts]").textContent = `${visible(job.state)}${code} · ${job.output_bytes} bytes`;
    row.querySelector("button").disabled = !RUNNING.has(job.state);
  });
}

function jobRow(job) {
  const out = h("pre", { tabindex: "0", "aria-label": "Output" });
  const err = h("pre", { tabindex: "0", "aria-label": "Errors", hidden: true });
  const output = h("details", { ontoggle: () => output.open && tail(output, job.id, { stdout: out, stderr: err }) },
    h("summary", {}, brief(job.command)), h("pre", { tabindex: "0", "aria-label": "Command" }, visible(job.command, { lines: true })), out, err);
  return h("li", { "data-job": visible(job.id) },
    h("div", { class: "top" },
      h("code", {}, visible(job.id)), h("span", { class: "meta", "data-facts": "" }), h("span", { class: "grow" }),
      h("button", {
        type: "button", class: "danger", "aria-label": `Stop job ${visible(job.id)}`,
        onclick: () => act(() => post("jobs/stop", { id: job.id }), "The command is being ended.", jobs),
      }, "Stop")),
    output);
}

/** Reads on for as long as the details are open. */
async function tail(open, id, places) {
  if (open.tailing) return;
  open.tailing = true;
  const at = { stdout: -TAIL, stderr: -TAIL };
  for (const place of Object.values(places)) place.textContent = "";
  try {
    while (open.open && open.isConnected) {
      for (const [stream, place] of Object.entries(places)) at[stream] = await more(id, stream, at[stream], place);
      await new Promise((go) => setTimeout(go, TAIL_MS));
    }
  } catch (error) {
    places.stdout.append(`\n${error.message}`);
  } finally {
    open.tailing = false;
  }
}

async function more(id, stream, offset, place) {
  const page = await get("jobs/output", { id, stream, offset });
  if (page.text) {
    const follows = place.scrollHeight - place.scrollTop - place.clientHeight < 20;
    place.textContent = (place.textContent + visible(page.text, { lines: true })).slice(-KEPT);
    place.hidden = false;
    if (follows) place.scrollTop = place.scrollHeight;
  }
  return page.next;
}

// --- the share and the tunnel ------------------------------------------------------------------------------------

export async function share() {
  const one = await get("share");
  sync(byId("share"), one ? [one] : [], (it) => it.started_at, (it) => h("li", {},
    h("div", { class: "top" }, h("code", {}, visible(it.path)), h("span", { class: "meta" }, it.is_file ? "a file" : "a folder"),
      h("span", { class: "meta", "data-left": "" })),
    h("div", { class: "meta" }, visible(it.url)), h("div", { class: "meta", "data-public": "" }),
    h("ul", { class: "rows tight", "aria-label": "Transfers" }),
    h("p", { class: "buttons" }, h("button", {
      type: "button", class: "danger",
      onclick: () => act(() => del("share"), "Nothing is shared any more.", share),
    }, "Stop sharing"))), (row, it) => {
    row.querySelector("[data-left]").textContent = `ends in ${seconds(it.left_s)}`;
    row.querySelector("[data-public]").textContent = visible(it.public_url ?? "");
    sync(row.querySelector("ul"), it.transfers, (one) => one.id, transferRow, moved);
  });
}

function transferRow(one) {
  const name = visible(one.name) || "the folder";
  return h("li", {},
    h("div", { class: "top" },
      h("span", { class: "name" }, one.direction === "upload" ? "↑ upload" : "↓ download"), h("code", {}, name),
      h("span", { class: "meta", "data-moved": "" }), h("span", { class: "grow" }),
      h("button", {
        type: "button", class: "danger", "aria-label": `Stop the ${one.direction} of ${name}`,
        onclick: () => act(() => post("share/stop", { id: one.id }), `The ${one.direction} is being ended.`, share),
      }, "Stop")),
    h("progress", { "aria-label": `Progress of ${name}` }));
}

function moved(row, one) {
  const of = one.total === null ? "" : ` of ${size(one.total)}`;
  row.querySelector("[data-moved]").textContent = `${size(one.moved)}${of} · ${seconds(one.seconds)}`;
  const bar = row.querySelector("progress");
  if (one.total === null) return bar.removeAttribute("value");
  bar.max = Math.max(one.total, 1);
  bar.value = one.moved;
}

/** Whether its state will change by itself. */
export let tunnelMoves = false;

export async function tunnel() {
  const facts = await get("tunnel");
  tunnelMoves = ["obtaining", "opening", "closing"].includes(facts.state);
  const line = (name, value, kind) => [h("dt", {}, name), h("dd", { class: kind }, h("span", {}, visible(value)))];
  byId("tunnel").replaceChildren(
    ...line("State", facts.state + (facts.provider ? ` (${facts.provider})` : "")),
    ...(facts.url ? line("Public address", facts.url) : []),
    ...(facts.error ? line("Why", facts.error, "bad") : []));
  byId("tunnel-open").disabled = facts.state !== "closed";
  byId("tunnel-close").disabled = facts.state === "closed" || facts.state === "closing";
}

export function tunnelButtons() {
  byId("tunnel-open").addEventListener("click", () => act(() => post("tunnel", {}), "The tunnel begins to open.", tunnel));
  byId("tunnel-close").addEventListener("click", () => act(() => del("tunnel"), "The tunnel begins to close.", tunnel));
}

// --- the host's models --------------------------------------------------------------------------------------------

export async function inference() {
  const facts = await get("host-llm");
  const line = (name, value, kind) => [h("dt", {}, name), h("dd", { class: kind }, h("span", {}, visible(value)))];
  byId("inference").replaceChildren(
    ...line("Chosen", facts.model ?? "none"),
    ...line("State", facts.enabled ? "allowed" : facts.degraded ? "denied, by the tripwire only" : "denied", facts.degraded ? "bad" : ""),
    ...line("Refused requests", String(facts.denied)));
  byId("inference-switch").setAttribute("aria-checked", String(facts.enabled));
}

export function inferenceSwitch() {
  const button = byId("inference-switch");
  button.addEventListener("click", () => {
    const enabled = button.getAttribute("aria-checked") !== "true";
    return act(() => post("host-llm", { enabled }), enabled ? "The host may ask models." : "The host asks no model.", inference);
  });
}

// --- the log and doctor ------------------------------------------------------------------------------------------

export function search() {
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = Object.fromEntries(new FormData(event.target));
    act(async () => {
      const found = (await get("audit", { ...asked, last: 100 })).reverse();
      const list = byId("audit");
      sync(list, [], () => "", () => null);
      sync(list, found, (call) => call.id + call.started + call.ended, logged);
      list.previousElementSibling.textContent = "Nothing in the log is like that.";
      event.target.dataset.found = String(found.length);
    });
  });
}

function logged(call) {
  return h("li", {},
    h("div", { class: "top" },
      h("span", { class: "meta" }, brief((call.started ?? call.ended ?? "").replace("T", " ").slice(0, 19))),
      h("span", { class: "name mono" }, visible(call.tool)),
      h("span", { class: GOOD[call.outcome] ?? "meta" }, visible(call.outcome)),
      h("span", { class: "meta" }, seconds(call.seconds)), h("span", { class: "grow" }),
      h("span", { class: "meta" }, `${brief(call.client ?? "", 60)} ${call.session ? short(call.session) : ""}`)),
    details(call.args));
}

export async function doctor() {
  const found = (await get("doctor")).filter((one) => one.verdict !== "ok");
  sync(byId("doctor"), found, (one) => `${one.name} ${one.fact}`, (one) => h("li", {},
    h("span", { class: one.verdict === "warn" ? "warn" : "bad" }, one.verdict === "warn" ? "Warning" : "Fault"),
    ` ${visible(one.name)}: ${visible(one.fact)}`, one.mend ? h("div", { class: "meta" }, `→ ${visible(one.mend)}`) : null));
}

// --- connecting clients ------------------------------------------------------------------------------------------

const CLIENTS = {
  "claude-code": "Claude Code", "claude-desktop": "Claude Desktop", codex: "Codex", cursor: "Cursor", vscode: "VS Code",
  gemini: "Gemini CLI", opencode: "OpenCode", omp: "omp", json: "Any other client",
};

export function connect(status) {
  const line = (name, value) => [h("dt", {}, name), h("dd", {}, h("code", {}, visible(value)),
    h("button", { type: "button", "aria-label": `Copy ${name}`, onclick: () => copy(value, name) }, "Copy"))];
  byId("addresses").replaceChildren(...line("Address", status.url), ...line("Bridge address", status.bridge_url));
  const choice = byId("client");
  if (choice.options.length) return;
  choice.append(...Object.entries(CLIENTS).map(([value, name]) => h("option", { value }, name)));
  const show = () => {
    const server = { type: "http", url: status.url, headers: { Authorization: "Bearer TOKEN" } };
    const text = choice.value === "json"
      ? JSON.stringify({ mcpServers: { a2mcp: server } }, null, 2) : `a2mcp connect ${choice.value}`;
    byId("recipe").replaceChildren(h("pre", { tabindex: "0" }, text), h("button", { type: "button", onclick: () => copy(text, "It") }, "Copy"));
  };
  choice.addEventListener("change", show);
  show();
}

export function tokenButtons() {
  const shown = byId("token-show");
  const code = byId("token").firstElementChild;
  let timer = null;
  const hide = () => {
    clearTimeout(timer);
    code.textContent = "••••••••";
    shown.textContent = "Show token";
    shown.setAttribute("aria-expanded", "false");
  };
  shown.addEventListener("click", () => {
    if (shown.getAttribute("aria-expanded") === "true") return hide();
    return act(async () => {
      code.textContent = (await get("token")).token;
      shown.textContent = "Hide token";
      shown.setAttribute("aria-expanded", "true");
      timer = setTimeout(hide, 30_000);
    });
  });
  byId("token-copy").addEventListener("click", () => act(async () => {
    await navigator.clipboard.writeText((await get("token")).token);
  }, "The token is copied."));
}
