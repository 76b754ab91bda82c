(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("panel-data").textContent);
  const slider = document.getElementById("threshold");
  const shown = [...document.querySelectorAll("[data-show]")];
  const jumps = [...document.querySelectorAll("[data-jump]")];
  const node = (id) => document.getElementById(id);

  const set = (element, values) => {
    for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
  };

  const cross = (plot, k) => {
    const at = data.moves[plot];
    set(node(plot + "-h"), { x1: at.left[k], x2: at.right[k], y1: at.y[k], y2: at.y[k] });
    set(node(plot + "-v"), { x1: at.x[k], x2: at.x[k], y1: at.top[k], y2: at.bottom[k] });
    set(node(plot + "-dot"), { cx: at.x[k], cy: at.y[k] });
  };

  const scores = (k) => {
    const { left, right, distance } = data.plot;
    const x = data.moves.scores.x[k];
    const below = { x: left, width: x - left };
    const above = { x, width: right - x };
    set(node("scores-v"), { x1: x, x2: x });
    set(node("scores-far-rect"), distance ? below : above);
    set(node("scores-frr-rect"), distance ? above : below);
  };

  const show = () => {
    const k = Number(slider.value);
    for (const element of shown) element.textContent = data.text[element.dataset.show][k];
    for (const button of jumps) button.setAttribute("aria-pressed", String(Number(button.dataset.jump) === k));
    const { threshold, far, far_interval, frr, frr_interval } = data.text;
    const [accepts, rejects] = data.names;
    const words = `threshold ${threshold[k]}, ${accepts} ${far[k]}, interval ${far_interval[k]}, ${rejects} ${frr[k]}, interval ${frr_interval[k]}`;
    slider.setAttribute("aria-valuetext", words);
    cross("roc", k);
    cross("det", k);
    scores(k);
  };

  slider.addEventListener("input", show);
  for (const button of jumps) {
    button.addEventListener("click", () => {
      slider.value = button.dataset.jump;
      show();
    });
  }
  // A print shows the threshold of the summary, wherever the slider stands.
  let left = null;
  addEventListener("beforeprint", () => {
    left = slider.value;
    slider.value = data.start;
    show();
  });
  addEventListener("afterprint", () => {
    if (left !== null) slider.value = left;
    show();
  });

  const hint = () => {
    for (const table of document.querySelectorAll(".scroll")) {
      const told = table.previousElementSibling;
      if (told && told.classList.contains("hint")) told.hidden = table.scrollWidth <= table.clientWidth + 1;
    }
  };
  addEventListener("resize", hint);
  hint();
  document.documentElement.classList.add("live");
  show();
})();
