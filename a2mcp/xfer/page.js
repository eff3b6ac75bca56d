"use strict";
(() => {
  const base = document.body.dataset.base;
  const list = document.getElementById("transfers");
  const input = document.getElementById("files");
  const queue = [];
  let busy = false;
  let failed = false;

  document.getElementById("upload").hidden = false;

  function row(name) {
    const item = document.createElement("li");
    const what = document.createElement("span");
    const said = document.createElement("span");
    what.className = "what";
    what.textContent = name;
    item.append(what, said);
    list.append(item);
    return { item, said };
  }

  function fail(shown, text) {
    failed = true;
    shown.said.className = "failed";
    shown.said.textContent = text;
  }

  function add(files) {
    for (const file of files) {
      queue.push({ file, ...row(file.name) });
    }
    if (!busy) next();
  }

  function next() {
    const job = queue.shift();
    if (!job) {
      busy = false;
      if (!failed) location.reload();
      return;
    }
    busy = true;
    send(job);
  }

  function send(job) {
    const request = new XMLHttpRequest();
    const bar = document.createElement("progress");
    const cancel = document.createElement("button");
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", "Progress of " + job.file.name);
    cancel.type = "button";
    cancel.textContent = "Cancel";
    cancel.addEventListener("click", () => request.abort());
    job.said.replaceChildren(cancel);
    job.item.append(bar);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = event.total ? event.loaded / event.total : 1;
    });
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) job.said.textContent = "done";
      else fail(job, request.responseText.split("\n")[0].slice(0, 200) || "refused (" + request.status + ")");
    });
    request.addEventListener("error", () => fail(job, "the connection was closed"));
    request.addEventListener("abort", () => fail(job, "cancelled"));
    request.addEventListener("loadend", () => {
      bar.remove();
      next();
    });
    request.open("PUT", base + encodeURIComponent(job.file.name));
    request.send(job.file);
  }

  input.addEventListener("change", () => {
    add([...input.files]);
    input.value = "";
  });

  let depth = 0;
  const holdsFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  const mark = () => document.body.classList.toggle("dropping", depth > 0);
  addEventListener("dragenter", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth += 1;
    mark();
  });
  addEventListener("dragover", (event) => {
    if (holdsFiles(event)) event.preventDefault();
  });
  addEventListener("dragleave", (event) => {
    if (!holdsFiles(event)) return;
    depth = Math.max(0, depth - 1);
    mark();
  });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth = 0;
    mark();
    const files = [];
    for (const item of event.dataTransfer.items) {
      const entry = item.webkitGetAsEntry && item.webkitGetAsEntry();
      if (entry && entry.isDirectory) fail(row(entry.name), "a folder: open it and drop its files");
      else if (item.kind === "file") files.push(item.getAsFile());
    }
    add(files);
  });
})();
