(() => {
  "use strict";
  const node = (id) => document.getElementById(id);
  const drop = node("drop");
  let seen = 0;
  let waiting = null;

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
    node("run").disabled = busy || state.names.length === 0;
    if (state.names.length) node("name").textContent = state.names.join(", ");
    node("progress").hidden = !busy;
    const bar = node("bar");
    if (state.total > 0) {
      bar.value = state.done / state.total;
      const share = Math.floor((100 * state.done) / state.total);
      node("told").textContent = share < 100 ? `${share}% of the comparisons` : "Intervals and pictures";
    } else {
      bar.removeAttribute("value");
      node("told").textContent = "Reading and counting";
    }
    fail(state.stage === "failed" ? state.message : "");
    if (state.number > seen) {
      seen = state.number;
      verdicts(state.verdicts);
      const frame = node("report");
      frame.src = `report?${seen}`;
      frame.hidden = false;
      for (const id of ["own", "save"]) {
        node(id).href = `report?${seen}`;
        node(id).hidden = false;
      }
    }
    clearTimeout(waiting);
    if (busy) waiting = setTimeout(look, 300);
  };

  const look = async () => {
    try {
      show(await ask("state"));
    } catch (error) {
      fail(error.message);
    }
  };

  const run = async () => {
    const settings = Object.fromEntries(
      ["threshold", "far", "group", "claim", "title"].map((id) => [id, node(id).value]),
    );
    settings.distance = node("distance").checked;
    try {
      show(await ask("run", { method: "POST", body: JSON.stringify(settings) }));
    } catch (error) {
      fail(error.message);
    }
  };

  const take = async (file) => {
    if (!file) return;
    node("name").textContent = `${file.name} …`;
    node("run").disabled = true;
    try {
      show(await ask(`file?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }));
      await run();
    } catch (error) {
      fail(error.message);
      await look();
    }
  };

  node("file").addEventListener("change", (event) => take(event.target.files[0]));
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
    take(event.dataTransfer.files[0]);
  });
  node("form").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  look().then(() => {
    if (!node("run").disabled) run();
  });
})();
