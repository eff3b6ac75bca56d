// What every part of the page does: find its place, count, act, and say what came of it.

export const byId = (id) => document.getElementById(id);

/** Seconds that never jump. */
export const now = () => performance.now() / 1000;

export function counted(name, count) {
  byId(`n-${name}`).textContent = String(count);
}

const timers = {};

/** Says something to whoever sees the page, and to whoever hears it. */
export function say(text, place = "said") {
  byId(place).textContent = text;
  clearTimeout(timers[place]);
  timers[place] = setTimeout(() => (byId(place).textContent = ""), place === "alarm" ? 12_000 : 5000);
}

/** Does what a button says; what was refused is told, and what is shown is asked for again either way. */
export async function act(deed, said, after = async () => {}) {
  let fault = null;
  for (const step of [deed, after]) {
    try {
      await step();
    } catch (error) {
      fault ??= error;
    }
  }
  if (fault) say(fault.message, "alarm");
  else if (said) say(said);
}

/** Puts a text on the clipboard. */
export async function copy(text, what) {
  await act(() => navigator.clipboard.writeText(text), `${what} is copied.`);
}
