// The way to the daemon: the visit, questions, and the stream of events with its reconnecting. Shows nothing.

const KEY = "a2mcp-page";
const HEADER = "X-A2MCP-Page";
const LINGER_MS = 10_000;
/** The daemon is never silent for longer than fifteen seconds. */
const SILENT_MS = 40_000;

export class Refused extends Error {
  constructor(status, text, hint = "") {
    super(hint ? `${text} ${hint}` : text);
    this.status = status;
  }
}

/** Begins a visit with the code of the link, if there is one, and takes the code out of the address. */
export async function enter() {
  const code = location.hash.slice(1);
  if (!code || code === "main") return;
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("enter", { method: "POST", body: code });
  if (!answer.ok) throw await refusal(answer);
  localStorage.setItem(KEY, (await answer.json()).key);
}

export async function leave() {
  await fetch("leave", { method: "POST", headers: headers() });
  localStorage.removeItem(KEY);
}

export const get = (path, query = {}) => ask("GET", path, query);
export const post = (path, body) => ask("POST", path, {}, body);
export const del = (path) => ask("DELETE", path);

async function ask(method, path, query = {}, body) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  const answer = await fetch(`api/${path}${search}`, {
    method,
    headers: headers(),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

function headers(more = {}) {
  return { [HEADER]: localStorage.getItem(KEY) ?? "", ...more };
}

async function refusal(answer) {
  let error = {};
  try {
    error = (await answer.json()).error ?? {};
  } catch {
    // A refusal without a body says it by its status.
  }
  return new Refused(answer.status, error.text ?? error.message ?? `The daemon refused (${answer.status}).`, error.hint);
}

/**
 * Follows the events for ever. One that broke off goes on behind the last event that was seen, so nothing is missed.
 * A page that nobody looks at lets go of its connection: a browser has few for one host.
 */
export async function follow({ history, on, state }) {
  let last = null;
  let pause = 250;
  for (;;) {
    await shown();
    const leaving = new AbortController();
    const ending = new AbortController();
    const stopWatching = whenHidden(() => leaving.abort());
    leaving.signal.addEventListener("abort", () => ending.abort());
    try {
      const more = last === null ? {} : { "Last-Event-ID": String(last) };
      const answer = await fetch(`api/events${last === null ? `?history=${history}` : ""}`, {
        headers: headers(more),
        signal: ending.signal,
      });
      if (!answer.ok) throw await refusal(answer);
      state("live");
      pause = 250;
      for await (const event of events(answer.body, () => ending.abort())) {
        last = event.sequence;
        on(event);
      }
    } catch (error) {
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) throw error;
    } finally {
      stopWatching();
      ending.abort();
    }
    if (!leaving.signal.aborted) {
      state("off");
      await new Promise((go) => setTimeout(go, pause));
      pause = Math.min(pause * 2, 5000);
    }
  }
}

/** Reads events for as long as they come; a stream that has gone silent is given up. */
async function* events(stream, giveUp) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const timer = setTimeout(giveUp, SILENT_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const line = block.split("\n").find((each) => each.startsWith("data: {"));
      if (line) yield JSON.parse(line.slice(6));
    }
  }
}

function shown() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((go) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      go();
    };
    document.addEventListener("visibilitychange", look);
  });
}

function whenHidden(act) {
  let timer = null;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(act, LINGER_MS);
  };
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}
