// The model behind the page of skpref.widgets where a server stands in for a notebook: what the
// server shows is `question` and `status`, and messages go to it by HTTP.

import page from "./judge.js";

const AGAIN = 3000; // milliseconds until a message is sent again that did not arrive
const owner = document.documentElement.dataset.role === "owner";
const address = new URL(location.href);
let judge = owner ? address.searchParams.get("judge") ?? "" : "";

const values = { question: {}, status: {} };
const listeners = {};
let since = performance.now();

function show(answer) {
  since = performance.now();
  judge = answer.judge ?? judge;
  for (const name of ["question", "status"]) {
    values[name] = answer[name];
    for (const act of listeners[`change:${name}`] ?? []) act();
  }
  for (const { mime, url } of answer.question.ahead ?? []) {
    // In the browser's own store before it is asked about.
    if (mime.startsWith("image/")) new Image().src = url;
    else if (url) fetch(url);
  }
}

async function post(message) {
  const seconds = (performance.now() - since) / 1000;
  const response = await fetch("message", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...message, seconds, judge }),
  });
  const answer = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw Object.assign(new Error(answer.error), { final: response.status !== 429 });
  return answer;
}

function tell(notice) {
  values.status = { ...values.status, notice };
  for (const act of listeners["change:status"] ?? []) act();
}

async function send(message) {
  try {
    const answer = await post(message);
    if (message.type === "look") {
      for (const act of listeners["msg:custom"] ?? []) act({ ...message, stimulus: answer.stimulus }, []);
    } else show(answer);
  } catch (error) {
    if (error.final) return tell(error.message);
    tell("The server does not answer. Your answer is sent again until it does.");
    setTimeout(() => send(message), AGAIN);
  }
}

const model = {
  get: (name) => values[name],
  on: (name, act) => (listeners[name] ??= []).push(act),
  off: () => {},
  send,
};

page.render({ model, el: document.getElementById("page") });
const prompt = document.querySelector(".prompt"); // which heads no more than a cell in a notebook
prompt.setAttribute("role", "heading");
prompt.setAttribute("aria-level", "1");
await send({ type: "show" });
const form = document.getElementById("who");
form.judge.value = judge === "judge" ? "" : judge;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  address.searchParams.set("judge", form.judge.value.trim());
  location.assign(address);
});
document.querySelector(".skpref-judge").focus({ preventScroll: true });
