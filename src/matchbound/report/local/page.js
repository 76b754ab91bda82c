(() => {
  "use strict";
  const node = (id) => document.getElementById(id);
  const drop = node("drop");
  const LARGEST = 8 * 2 ** 30;
  const told = Object.fromEntries(["", "second-", "people-"].map((role) => [role, node(`${role}name`).textContent]));
  let seen = 0;
  let waiting = null;
  let turn = 0;

  const fail = (text) => {
    node("error").textContent = text;
    node("error").hidden = !text;
  };

  const ask = async (path, options) => {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("matchbound does not answer: is it still running in its terminal?");
    }
    const document = await answer.json();
    if (document.error) throw new Error(document.error);
    return document;
  };

  const post = (path, body) => ask(path, { method: "POST", body: body ?? "" });

  const verdicts = (items) => {
    const list = node("verdicts");
    list.replaceChildren();
    for (const item of items) {
      const line = document.createElement("li");
      const word = document.createElement("b");
      line.className = item.verdict === "not shown" ? "open" : item.verdict;
      word.textContent = item.verdict[0].toUpperCase() + item.verdict.slice(1);
      line.append(word, `${item.claim}. ${item.reason}`);
      list.append(line);
    }
    list.hidden = items.length === 0;
  };

  const show = (state) => {
    const busy = state.stage === "working";
    node("run").disabled = busy || !state.names.file;
    for (const [role, prefix] of [["file", ""], ["second", "second-"], ["people", "people-"]]) {
      const names = state.names[role];
      node(`${prefix}name`).textContent = names ? names.join(", ") : told[prefix];
      if (prefix) node(`${prefix}remove`).hidden = !names;
    }
    if (node("try")) node("try").hidden = Boolean(state.names.file);
    node("progress").hidden = !busy;
    const bar = node("bar");
    if (state.total > 0) {
      bar.value = state.done / state.total;
      const share = Math.floor((100 * state.done) / state.total);
      node("told").textContent = share < 100 ? `Pass ${state.passes} over the data: ${share}%` : "Intervals and pictures";
    } else {
      bar.removeAttribute("value");
      node("told").textContent = "Reading and counting";
    }
    if (state.stage === "failed") fail(state.message);
    if (state.names.second || /Columns |Format|without a score/.test(state.message)) node("more").open = true;
    verdicts(state.verdicts);
    const frame = node("report");
    if (state.report && state.report !== seen) frame.src = `report?${state.report}`;
    if (!state.report && seen) frame.removeAttribute("src");
    seen = state.report;
    frame.hidden = !seen;
    for (const id of ["own", "save"]) {
      node(id).href = `report?${seen}`;
      node(id).hidden = !seen;
    }
    clearTimeout(waiting);
    if (busy) waiting = setTimeout(look, 300);
  };

  // What a person asks for: states that were asked for before are not shown any more.
  const attempt = async (steps) => {
    turn += 1;
    fail("");
    try {
      await steps();
    } catch (error) {
      await ask("state").then(show, () => {});
      fail(error.message);
    }
  };

  const look = async () => {
    const mine = turn;
    try {
      const state = await ask("state");
      if (mine === turn) show(state);
      return state;
    } catch (error) {
      fail(error.message);
      return {};
    }
  };

  const run = async () => {
    const words = ["threshold", "far", "group", "claim", "title", "reader", "columns", "missing", "similarity"];
    const settings = Object.fromEntries(words.map((id) => [id, node(id).value]));
    for (const id of ["distance", "iso"]) settings[id] = node(id).checked;
    show(await post("run", JSON.stringify(settings)));
  };

  const take = (file, role) =>
    attempt(async () => {
      if (!file) return;
      if (file.size > LARGEST) throw new Error(`${file.name} is larger than 8 GB; name it on the command line instead`);
      if (role === "file") node("name").textContent = `${file.name} …`;
      node("run").disabled = true;
      for (const id of ["report", "own", "save", "verdicts", "progress"]) node(id).hidden = true;
      const state = await post(`file?role=${role}&name=${encodeURIComponent(file.name)}`, file);
      show(state);
      if (state.names.file) await run();
    });

  for (const role of ["file", "second", "people"]) {
    node(role).addEventListener("change", (event) => {
      take(event.target.files[0], role);
      event.target.value = "";
    });
    if (role === "file") continue;
    node(`${role}-remove`).addEventListener("click", () => attempt(async () => show(await post(`remove?role=${role}`))));
  }
  node("example")?.addEventListener("click", () =>
    attempt(async () => {
      for (const [id, value] of [["threshold", "0.5"], ["group", "sex"], ["claim", "far < 5%"]]) {
        if (!node(id).value) node(id).value = value;
      }
      show(await post("example"));
      await run();
    }),
  );
  for (const kind of ["dragenter", "dragover"]) {
    addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0], "file");
  });
  node("form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(run);
  });
  look().then((state) => {
    if (state.stage === "ready") attempt(run);
  });
})();
