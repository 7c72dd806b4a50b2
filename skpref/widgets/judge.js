// The page of skpref.widgets.Judge and of `skpref judge`. It shows two values of the model,
// `question` and `status`, and sends messages:
// {type: "answer" | "skip" | "undo" | "go_on" | "look", number, ...}. The model is anywidget's in a
// notebook, and one that speaks to a server on a page of its own.

const SVG = "http://www.w3.org/2000/svg";
const NARROW = 520; // pixels
const STEP = 0.25; // of the slider, in points of the line
const PATIENCE = 20000; // milliseconds without a word from the kernel
const ORDINALS = ["Best", "2nd", "3rd"];
const SCALES = [1, 2, 4]; // of pictures, one after the other
const MOST_CELLS = 4e6; // pairs of words that are compared: some 50 milliseconds
const DIFFERENCES = "skpref-differences"; // name of the highlight in style sheets

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

/** A document in which no script runs, as high as what is in it. */
function sandboxed(html) {
  const frame = element("iframe", { sandbox: "allow-same-origin", tabindex: "-1" });
  frame.srcdoc =
    `<style>body{margin:8px;font:15px/1.45 system-ui,sans-serif}img{max-width:100%}` +
    `::highlight(${DIFFERENCES}){background:#ffe08a;color:#1b1f24;text-decoration:underline}</style>${html}`;
  frame.addEventListener("load", () => {
    const fit = () => {
      const inside = frame.contentDocument;
      if (inside && inside.documentElement) {
        frame.style.height = "0";
        frame.style.height = `${inside.documentElement.scrollHeight}px`;
      }
    };
    fit();
    new ResizeObserver(fit).observe(frame.parentElement ?? frame);
  });
  return frame;
}

/** What `show` gave of an item, as an element; addresses of its content are kept to be freed. */
function shown(stimulus, label, addresses) {
  const { mime, data, text, url } = stimulus;
  if (mime === "text/plain") return element("div", { class: "text" }, text);
  if (mime === "text/html") {
    const frame = sandboxed(text);
    frame.title = label;
    return frame;
  }
  const address = url ?? URL.createObjectURL(new Blob([data], { type: mime }));
  if (!url) addresses.push(address);
  if (mime.startsWith("audio/") || mime.startsWith("video/")) {
    return element(mime.slice(0, 5), { controls: true, src: address, "aria-label": label, preload: "auto" });
  }
  if (mime === "application/pdf") {
    const open = element("a", { href: address, target: "_blank", rel: "noopener" }, `Open ${label} in a tab`);
    return element("div", { class: "pdf" }, element("iframe", { src: address, title: label }), open);
  }
  return element("img", { src: address, alt: label, draggable: false });
}

/** The words that are seen of an element, each with its place. */
function words_of(root) {
  const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const words = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (["STYLE", "SCRIPT"].includes(node.parentElement.tagName)) continue;
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
      words.push({ word, node, start: index, end: index + word.length });
    }
  }
  return words;
}

/** The words of two texts that are outside their longest common subsequence; none of long texts and
 * of those that share less than half, where nearly all differs. */
function differing_words(first, second) {
  let [start, ends] = [0, [first.length, second.length]];
  const longest = Math.max(...ends);
  const codes = new Map(); // of words, as numbers are compared faster
  const code = ({ word }) => codes.get(word) ?? codes.set(word, codes.size).get(word);
  const [a, b] = [first, second].map((words) => Int32Array.from(words, code));
  const is_same = (i, j) => a[i] === b[j];
  while (start < Math.min(...ends) && is_same(start, start)) start += 1;
  while (start < Math.min(...ends) && is_same(ends[0] - 1, ends[1] - 1)) ends = ends.map((each) => each - 1);
  const [n, m] = ends.map((each) => each - start);
  if (n * m > MOST_CELLS) return [];
  // lengths[i * (m + 1) + j]: of the words from i and j on.
  const lengths = new Uint16Array((n + 1) * (m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const at = i * (m + 1) + j;
      lengths[at] = is_same(start + i, start + j)
        ? lengths[at + m + 2] + 1
        : Math.max(lengths[at + m + 1], lengths[at + 1]);
    }
  }
  if (2 * (longest - Math.max(n, m) + lengths[0]) < longest) return [];
  const words = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    const at = i * (m + 1) + j;
    if (i < n && j < m && is_same(start + i, start + j)) [i, j] = [i + 1, j + 1];
    else if (j === m || (i < n && lengths[at + m + 1] >= lengths[at + 1])) words.push(first[start + i++]);
    else words.push(second[start + j++]);
  }
  return words;
}

function button(label, key, act, kind = "") {
  const hint = key ? element("kbd", { "aria-hidden": "true" }, key) : null;
  const made = element("button", { type: "button" }, label, hint);
  if (kind) made.className = kind;
  if (key) made.setAttribute("aria-keyshortcuts", key);
  made.addEventListener("click", act);
  return made;
}

/** Ticks at round numbers. */
function ticks(low, high, n) {
  const rough = (high - low) / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9 * step; at += step) found.push(at);
  return found.map((at) => Number(at.toPrecision(6)));
}

/** The course of the run: the best so far with its band, and what was shown at each answer. */
function course(numbers, width) {
  const { shown: every, chosen, best, lower, upper } = numbers;
  const [height, left, right, top, bottom] = [130, 44, 10, 6, 34];
  const values = [...every.flat(), ...best, ...lower, ...upper].filter(Number.isFinite);
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (high - low < 1e-9) [low, high] = [low - 1, high + 1];
  const room = 0.06 * (high - low);
  [low, high] = [low - room, high + room];
  const n = best.length;
  const x = (step) => left + ((width - left - right) * (step - 0.5)) / n;
  const y = (value) =>
    top + (height - top - bottom) * (1 - (Math.min(Math.max(value, low), high) - low) / (high - low));
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute(
    "aria-label",
    `Course of the run: utilities of the items shown in ${n} answers. The best so far has ` +
      `${best[n - 1].toFixed(1)}, in units of noise above the mean of all items shown.`
  );
  const edges = (bounds) =>
    bounds.flatMap((value, k) => [`${x(k + 0.5)},${y(value)}`, `${x(k + 1.5)},${y(value)}`]);
  svg.append(
    drawn("path", { class: "frame", d: `M${left},${top}V${height - bottom}H${width - right}` }),
    drawn("polygon", { class: "band", points: [...edges(upper), ...edges(lower).reverse()].join(" ") })
  );
  every.forEach((utilities, k) =>
    utilities.forEach((value, position) => {
      if (position !== chosen[k]) {
        svg.append(drawn("circle", { class: "other", cx: x(k + 1), cy: y(value), r: 2.6 }));
      }
    })
  );
  svg.append(drawn("polyline", { class: "best", points: edges(best).join(" ") }));
  every.forEach((utilities, k) => {
    if (chosen[k] === null) return;
    const [cx, cy] = [x(k + 1), y(utilities[chosen[k]])];
    svg.append(drawn("rect", { class: "won", x: cx - 3, y: cy - 3, width: 6, height: 6 }));
  });
  for (const at of ticks(low, high, 3)) {
    svg.append(drawn("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end" }, String(at)));
  }
  for (const at of ticks(1, Math.max(n, 2), Math.min(n, 8)).filter((each) => each % 1 === 0 && each <= n)) {
    svg.append(drawn("text", { x: x(at), y: height - bottom + 15, "text-anchor": "middle" }, String(at)));
  }
  svg.append(drawn("text", { x: width - right, y: height - 3, "text-anchor": "end" }, "answers"));
  const mark = (sign, kind, meaning) =>
    element("span", {}, element("span", { class: kind, "aria-hidden": "true" }, sign), ` ${meaning}`);
  const legend = element(
    "div",
    { class: "legend" },
    element("span", {}, "Utility, in units of noise:"),
    mark("■", "won", "chosen"),
    mark("○", "other", "not chosen"),
    mark("▬", "best", "best so far, with its 90 % interval")
  );
  return [legend, svg];
}

function render({ model, el }) {
  const prompt = element("p", { class: "prompt", id: `skpref-${crypto.getRandomValues(new Uint32Array(1))[0]}` });
  const context = element("div", { class: "context" });
  const ending = element("div", { class: "ending" });
  const items = element("div", { class: "items" });
  const below = element("div");
  const notice = element("div", { class: "notice", role: "alert" });
  const told = element("span", { class: "told", role: "status" });
  const tools = element("div", { class: "toolbar" });
  const chart = element("div", { class: "course" });
  const strip = element("ol", { class: "history", "aria-label": "Last answers, the newest first" });
  // Without the last attribute JupyterLab takes keys that mean nothing here: x would cut the cell.
  const root = element(
    "div",
    { class: "skpref-judge", role: "group", tabindex: "0", "aria-labelledby": prompt.id, "data-lm-suppress-shortcuts": "true" },
    prompt, context, ending, items, below, tools, notice, strip, chart
  );
  el.append(root);

  let addresses = [];
  let marks = []; // of a set: what was chosen so far
  let keys = {}; // what each key does
  let waiting = null;
  let highlighted = []; // ranges of words, each with the highlight that it is in
  let shows_differences = true;
  let undos = 0; // that were asked for while an answer was on its way

  const question = () => model.get("question");

  function send(type, more = {}) {
    if (waiting !== null) {
      undos += type === "undo";
      return;
    }
    root.classList.add("waiting");
    root.setAttribute("aria-busy", "true");
    notice.textContent = "";
    waiting = setTimeout(() => {
      rest();
      notice.textContent =
        "The kernel has not answered. If it is busy, wait; if the notebook was reopened, run the cell again.";
    }, PATIENCE);
    model.send({ type, number: question().number, ...more });
  }

  function rest() {
    clearTimeout(waiting);
    waiting = null;
    root.classList.remove("waiting");
    root.removeAttribute("aria-busy");
  }

  const tell = (outcome) => {
    const comment = below.querySelector("textarea")?.value.trim();
    send("answer", comment ? { outcome, comment } : { outcome });
  };

  // -- what is asked ---------------------------------------------------------------------

  function card(stimulus, position, choose) {
    const label = `Item ${position + 1}`;
    const content = element("div", { class: "content" }, shown(stimulus, label, addresses));
    if (stimulus.mime.startsWith("image/")) {
      content.classList.add("picture");
      if (choose) content.addEventListener("click", choose);
    }
    return element("figure", { class: "item", "aria-label": label }, content);
  }

  function duel({ items: two, choices }) {
    two.forEach((stimulus, side) => {
      const own = choices.filter((each) => each.side === side);
      const only = own.length === 1 ? () => tell(own[0].outcome) : null;
      const figure = card(stimulus, side, only);
      const buttons = own.map((each) => {
        const key = String(choices.filter((one) => one.side !== null).indexOf(each) + 1);
        keys[key] = () => tell(each.outcome);
        const made = button(each.label, key, keys[key], "choice");
        made.setAttribute("aria-label", `Item ${side + 1}: ${each.label}`);
        return made;
      });
      figure.append(element("div", { class: "buttons" }, ...buttons));
      items.append(figure);
      // The slightest win is next to the other item, the clearest one outside.
      const [slight, clear] = side ? [own[0], own.at(-1)] : [own.at(-1), own[0]];
      keys[side ? "ArrowRight" : "ArrowLeft"] = () => tell(slight.outcome);
      keys[side ? "Shift+ArrowRight" : "Shift+ArrowLeft"] = () => tell(clear.outcome);
    });
    const tie = choices.find((each) => each.side === null);
    if (tie) {
      keys["0"] = keys.t = () => tell(tie.outcome);
      tools.prepend(button(tie.label, "0", keys["0"]));
    }
  }

  function set({ items: several, answer }) {
    const mark = (position) => {
      if (waiting !== null) return;
      if (answer === "best") return tell({ chosen: position });
      marks = marks.includes(position) ? marks.filter((each) => each !== position) : [...marks, position];
      if (answer === "best_worst" && marks.length === 2) return tell({ chosen: marks[0], worst: marks[1] });
      if (answer === "ranking" && marks.length === several.length - 1) {
        marks.push(several.findIndex((_, k) => !marks.includes(k)));
        return tell({ ranking: marks });
      }
      name();
    };
    const n = several.length;
    items.style.setProperty("--columns", n < 4 ? n : n === 4 ? 2 : n < 7 ? 3 : 4);
    const figures = several.map((stimulus, position) => {
      const figure = card(stimulus, position, () => mark(position));
      figure.append(element("div", { class: "buttons" }, button("", "", () => mark(position), "choice")));
      if (position < 9) keys[String(position + 1)] = () => mark(position);
      items.append(figure);
      return figure;
    });
    const name = () =>
      figures.forEach((figure, position) => {
        const [place, chosen] = [marks.indexOf(position), figure.querySelector("button.choice")];
        const next = answer === "best_worst" && marks.length ? "Worst" : answer === "ranking" && marks.length ? "Next best" : "Best";
        const label = place < 0 ? next : `✓ ${ORDINALS[place] ?? `${place + 1}th`}`;
        const hint = position < 9 ? element("kbd", { "aria-hidden": "true" }, String(position + 1)) : "";
        chosen.replaceChildren(label, hint);
        chosen.setAttribute("aria-label", `Item ${position + 1}: ${label}`);
        chosen.setAttribute("aria-pressed", String(place >= 0));
        figure.classList.toggle("marked", place >= 0);
      });
    name();
    if (answer === "ranking") {
      keys.Enter = () => marks.length >= 2 && tell({ ranking: marks });
      tools.prepend(button("Leave out the rest", "Enter", keys.Enter));
    }
  }

  function plane({ items: several }) {
    const across = Math.ceil(Math.sqrt(several.length)); // points may have been left out
    items.style.setProperty("--columns", across);
    const buttons = several.map((stimulus, position) => {
      const choose = () => tell({ position });
      if (position < 9) keys[String(position + 1)] = choose;
      const picture = stimulus.mime.startsWith("image/");
      const figure = card(stimulus, position, null);
      const made = button(picture ? "" : String(position + 1), "", choose, picture ? "cell" : "choice");
      made.setAttribute("aria-label", `Item ${position + 1} is the best`);
      if (picture) made.append(figure.firstChild); // the picture itself is the button
      figure.append(made);
      items.append(figure);
      return made;
    });
    const move = (by) => () => {
      const at = buttons.indexOf(document.activeElement);
      const next = at < 0 ? 0 : at + by;
      if (next >= 0 && next < buttons.length) buttons[next].focus();
    };
    Object.assign(keys, { ArrowLeft: move(-1), ArrowRight: move(1), ArrowUp: move(-across), ArrowDown: move(across) });
  }

  function line({ items: points }) {
    const middle = Math.floor((points.length - 1) / 2);
    const looks = new Map(points.map((stimulus, position) => [position, stimulus]));
    const slider = element("input", {
      class: "slider", type: "range", min: "0", max: String(points.length - 1), step: String(STEP),
      value: String(middle), "aria-label": "Place on the line",
    });
    const place = () => Number(slider.value);
    const look = () => {
      slider.setAttribute("aria-valuetext", `${place() + 1} of ${points.length}`);
      const stimulus = looks.get(place());
      if (stimulus) items.replaceChildren(card(stimulus, place(), null));
      else if (!looks.has(place())) {
        looks.set(place(), null); // it is on its way
        model.send({ type: "look", number: question().number, position: place() });
      }
    };
    slider.addEventListener("input", look);
    slider.skprefSeen = (position, stimulus) => {
      looks.set(position, stimulus);
      if (position === place()) look();
    };
    keys.Enter = () => tell({ position: place() });
    const choose = button("This is the best place", "Enter", keys.Enter, "choice");
    below.append(slider, element("div", { class: "buttons centred" }, choose));
    const move = (by) => () => {
      slider.value = String(place() + by); // which stays on the line
      look();
    };
    // Also while the slider is in focus, whose own keys a notebook may take away.
    const [back, forth] = [move(-STEP), move(STEP)];
    const far = { PageDown: move(-1), PageUp: move(1), Home: move(-points.length), End: move(points.length) };
    Object.assign(keys, { ArrowLeft: back, ArrowDown: back, ArrowRight: forth, ArrowUp: forth, ...far });
    look();
  }

  function end({ items: [best], facts }) {
    if (best) items.append(card(best, 0, null));
    if (facts) {
      const text = element("pre", { class: "facts" }, facts);
      const copy = button("Copy", "", async () => {
        await navigator.clipboard.writeText(facts);
        copy.textContent = "Copied";
      });
      below.append(text, copy);
    }
    tools.prepend(button("Go on", "", () => send("go_on")));
  }

  const kinds = { duel, set, plane, line, end, broken: () => {} };

  function ask() {
    const asked = question();
    if (!asked.kind) return;
    const held = root.contains(document.activeElement);
    addresses.forEach((each) => URL.revokeObjectURL(each));
    addresses = [];
    marks = [];
    keys = {};
    hide_differences();
    prompt.textContent = asked.prompt;
    context.textContent = asked.context ?? "";
    items.className = `items ${asked.kind}`;
    items.style.removeProperty("--scale");
    const wide = (each) => !each.mime.startsWith("image/");
    items.classList.toggle("long", asked.items.some(wide) || asked.choices?.length > 3);
    for (const part of [items, below, tools]) part.replaceChildren();
    kinds[asked.kind](asked);
    join_sounds();
    if (["duel", "set"].includes(asked.kind)) offer_scales();
    if (asked.kind === "duel") offer_differences();
    if (asked.comment) {
      const words = element("textarea", { rows: "1", maxlength: "2000" });
      below.append(element("label", { class: "comment" }, "Comment, sent with your answer", words));
    }
    if (asked.kind !== "end") {
      keys.s = () => send("skip");
      tools.append(button("Skip", "s", keys.s));
    }
    keys.u = () => send("undo");
    tools.append(button("Undo", "u", keys.u), element("span", { class: "spring" }), told);
    if (held) root.focus({ preventScroll: true });
    rest();
    if (undos) {
      undos -= 1;
      send("undo");
    }
  }

  /** The sound that is started goes on where the last one was, which stops. */
  function join_sounds() {
    const players = [...items.querySelectorAll("audio, video")];
    for (const player of players) {
      player.addEventListener("play", () => {
        const before = players.find((each) => each !== player && !each.paused);
        if (!before) return;
        player.currentTime = before.currentTime;
        before.pause();
      });
    }
  }

  /** A button for larger pictures, all of which show the place that is looked at in one. */
  function offer_scales() {
    const frames = [...items.querySelectorAll(".content.picture")];
    if (!frames.length) return;
    let turn = 0;
    const places = (frame) => [frame.scrollWidth - frame.clientWidth, frame.scrollHeight - frame.clientHeight];
    const scroll_to = (frame, x, y) => {
      const [across, down] = places(frame);
      // A pixel apart is no news: otherwise two frames would answer each other.
      if (Math.abs(frame.scrollLeft - x * across) > 1) frame.scrollLeft = x * across;
      if (Math.abs(frame.scrollTop - y * down) > 1) frame.scrollTop = y * down;
    };
    for (const frame of frames) {
      frame.addEventListener("scroll", () => {
        const [across, down] = places(frame);
        const [x, y] = [frame.scrollLeft / (across || 1), frame.scrollTop / (down || 1)];
        frames.forEach((each) => each !== frame && scroll_to(each, x, y));
      });
      frame.addEventListener("mousemove", (event) => {
        const box = frame.getBoundingClientRect();
        if (turn) scroll_to(frame, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
      });
    }
    keys.z = () => {
      if (!turn) {
        const heights = frames.map((frame) => [frame.offsetHeight, frame.firstChild.offsetHeight]);
        frames.forEach((frame, k) => {
          frame.style.setProperty("--frame", `${heights[k][0]}px`);
          frame.style.setProperty("--picture", `${heights[k][1]}px`);
        });
      }
      turn = (turn + 1) % SCALES.length;
      items.style.setProperty("--scale", SCALES[turn]);
      items.classList.toggle("zoomed", turn > 0);
      made.firstChild.data = turn ? `Zoom ×${SCALES[turn]}` : "Zoom";
      for (const frame of frames) {
        if (turn) frame.tabIndex = 0; // where the arrows move the pictures
        else frame.removeAttribute("tabindex");
        scroll_to(frame, 0.5, 0.5);
      }
    };
    const made = button("Zoom", "z", keys.z);
    tools.append(made);
  }

  function hide_differences() {
    for (const [highlight, range] of highlighted) highlight.delete(range);
    highlighted = [];
  }

  /** A button for the words that differ, which are marked unless it was used to hide them. */
  async function offer_differences() {
    const asked = question();
    const frames = [...items.querySelectorAll("iframe[srcdoc]")];
    await Promise.all(frames.map((frame) => new Promise((rest) => frame.addEventListener("load", rest))));
    const texts = [...items.querySelectorAll(".text, iframe[srcdoc]")].map((each) => each.contentDocument?.body ?? each);
    if (asked !== question() || texts.length !== 2 || !globalThis.CSS?.highlights) return;
    const words = differing_words(...texts.map(words_of));
    if (!words.length) return;
    const show = () => {
      for (const { node, start, end } of words) {
        const view = node.ownerDocument.defaultView;
        const range = node.ownerDocument.createRange();
        range.setStart(node, start);
        range.setEnd(node, end);
        const all = view.CSS.highlights;
        if (!all.has(DIFFERENCES)) all.set(DIFFERENCES, new view.Highlight());
        highlighted.push([all.get(DIFFERENCES).add(range), range]);
      }
    };
    const made = button("Differences", "d", () => keys.d());
    const report_use = () => made.setAttribute("aria-pressed", String(shows_differences));
    keys.d = () => {
      shows_differences = !shows_differences;
      hide_differences();
      if (shows_differences) show();
      report_use();
    };
    if (shows_differences) show();
    report_use();
    tools.insertBefore(made, tools.querySelector(".spring"));
  }

  // -- how things stand ------------------------------------------------------------------

  function chart_course() {
    root.classList.toggle("narrow", root.clientWidth < NARROW);
    const numbers = model.get("status").course;
    chart.replaceChildren(...(numbers ? course(numbers, Math.max(240, chart.clientWidth)) : []));
  }

  function report() {
    const status = model.get("status");
    if (!("told" in status)) return;
    const goal = status.goal === null ? "" : ` of ${status.goal}`;
    told.textContent = `${status.told}${goal} ${status.told === 1 && !goal ? "answer" : "answers"}`;
    if (status.goal_of_all) told.textContent += `; ${status.of_all} of ${status.goal_of_all} in all`;
    strip.replaceChildren(...(status.history ?? []).toReversed().map(remember));
    ending.textContent = status.end;
    notice.textContent = status.notice;
    chart_course();
    rest();
  }

  function remember({ text, url }) {
    const picture = url ? element("img", { src: url, alt: "", loading: "lazy" }) : null;
    return element("li", { title: text }, picture, element("span", {}, text));
  }

  function looked(message, buffers) {
    if (message.type !== "look" || message.number !== question().number) return;
    const stimulus = { ...message.stimulus, ...(buffers.length ? { data: buffers[0] } : {}) };
    below.querySelector(".slider")?.skprefSeen(message.position, stimulus);
  }

  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !event.key.startsWith("Arrow")) return;
    const at = event.target;
    if (["AUDIO", "VIDEO", "TEXTAREA"].includes(at.tagName)) return; // which have keys of their own
    if (at.classList.contains("picture") && event.key.startsWith("Arrow")) return; // it scrolls
    if (event.key === "Enter" && at.tagName === "BUTTON") return;
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = keys[event.shiftKey && name.startsWith("Arrow") ? `Shift+${name}` : name];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });

  const size = new ResizeObserver(chart_course);
  size.observe(root);
  model.on("change:question", ask);
  model.on("change:status", report);
  model.on("msg:custom", looked);
  ask();
  report();
  return () => {
    size.disconnect();
    clearTimeout(waiting);
    model.off("change:question", ask);
    model.off("change:status", report);
    model.off("msg:custom", looked);
    addresses.forEach((each) => URL.revokeObjectURL(each));
  };
}

export default { render };
