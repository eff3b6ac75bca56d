// The page: begins the visit, follows the events, and asks again for what they may have changed.

import { enter, follow, get, leave, Refused } from "./link.js";
import * as calls from "./calls.js";
import * as things from "./things.js";
import { act, byId, now, say } from "./page.js";
import { seconds, visible } from "./text.js";

const HISTORY = 200;
const SLOW_MS = 5000;
const SECOND_MS = 1000;
const GAPS_S = 10;

/** What an event makes out of date, by the part of its kind before the dot. */
const TOUCHES = {
  call: [],
  approval: ["waiting", "grants", "inflight"],
  session: ["sessions"],
  job: ["jobs"],
  record: ["share", "tunnel", "inference", "grants", "waiting"],
  warning: ["doctor"],
  gap: ["inflight", "waiting", "sessions", "jobs", "share", "tunnel", "inference", "grants"],
};

const PARTS = {
  inflight: calls.reconcile, waiting: calls.askWaiting, sessions: things.sessions, jobs: things.jobs,
  share: things.share, tunnel: things.tunnel, inference: things.inference, grants: things.grants, doctor: things.doctor, status,
};

const stale = new Set();
let asking = false;
let drawing = false;
let began = 0;
let passedOver = 0;
let saidSo = -Infinity;

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    calls.show();
  });
}

/** Asks for parts again, each once however often it was touched meanwhile. */
async function refresh(...parts) {
  for (const part of parts) stale.add(part);
  if (asking) return;
  asking = true;
  try {
    while (stale.size) {
      const parts_ = [...stale];
      stale.clear();
      await Promise.all(parts_.map((part) => PARTS[part]()));
      draw();
    }
  } catch (error) {
    failed(error);
  } finally {
    asking = false;
  }
}

function failed(error) {
  if (error instanceof Refused && error.status === 401) closed();
  else if (error instanceof Refused) say(error.message, "alarm");
  // What did not get through at all is for the stream to notice, which begins everything anew.
}

async function status() {
  const facts = await get("status");
  byId("facts").textContent =
    `${visible(facts.version)} · up ${seconds(facts.uptime_s)} · ${facts.audit.written} records` +
    (facts.audit.failures ? ` · ${facts.audit.failures} records failed` : "");
  things.connect(facts);
}

function linked(state) {
  const pill = byId("link");
  pill.className = `pill ${state}`;
  const text = state === "live" ? "live" : "not connected, trying again";
  if (pill.textContent !== text) pill.textContent = text;
  if (state === "live") {
    began = now();
    refresh(...Object.keys(PARTS));
  }
}

/** Says how many events were passed over, but not with every one of a storm. */
function missed(count) {
  passedOver += count;
  if (now() - saidSo < GAPS_S) return;
  say(`${passedOver} events came too fast to be told.`);
  saidSo = now();
  passedOver = 0;
}

function told(event) {
  calls.told(event, now() - began > 1);
  if (event.kind === "gap") missed(event.args.last - event.args.first + 1);
  if (event.kind === "warning") say(visible(event.args?.text ?? ""), "alarm");
  const touched = TOUCHES[event.kind.split(".")[0]] ?? [];
  if (touched.length) refresh(...touched);
  draw();
}

function closed(why) {
  byId("main").hidden = true;
  byId("leave").hidden = true;
  byId("closed").hidden = false;
  byId("link").className = "pill off";
  byId("link").textContent = "no visit";
  if (why) byId("why").textContent = why;
}

function tick(turn) {
  if (document.hidden || byId("main").hidden) return;
  draw();
  if (things.jobsRun) refresh("jobs");
  if (things.tunnelMoves) refresh("tunnel");
  if (byId("share").children.length) refresh("share");
  if (turn % (SLOW_MS / SECOND_MS) === 0) refresh("inflight", "waiting", "sessions", "inference", "status");
}

async function main() {
  for (const heading of document.querySelectorAll("h2")) heading.tabIndex = -1;
  things.search();
  things.tunnelButtons();
  things.inferenceSwitch();
  things.tokenButtons();
  byId("doctor-again").addEventListener("click", () => act(things.doctor, "The doctor has looked again."));
  byId("leave").addEventListener("click", async () => {
    await leave();
    closed("This visit has ended.");
  });
  try {
    await enter();
    await get("status");
  } catch (error) {
    closed(error instanceof Refused && error.status === 403 ? error.message : "");
    return;
  }
  byId("main").hidden = false;
  byId("leave").hidden = false;
  let turn = 0;
  setInterval(() => tick((turn += 1)), SECOND_MS);
  try {
    await follow({ history: HISTORY, on: told, state: linked });
  } catch {
    closed();
  }
}

main();
