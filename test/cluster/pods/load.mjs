// Sends requests at a steady rate over kept connections, and counts the answers. Each target is asked one after another. Its own port 9000
// answers with the counts so far: for each target how many of each status or error, and the last bad ones with their time.
// Usage: node load.mjs '[{"name":"good","url":"http://…","headers":{},"method":"GET","expect":200}]' RATE_PER_SECOND SECONDS
import { Agent, createServer, request } from "node:http";

const [targetsJson, rate, seconds] = process.argv.slice(2);
const targets = JSON.parse(targetsJson);
const agent = new Agent({ keepAlive: true, maxSockets: 20 });
const counts = Object.fromEntries(targets.map(({ name, expect }) => [name, { sent: 0, expect, answers: {}, bad: [] }]));

function count({ name, expect }, answer, said = "") {
  const { answers, bad } = counts[name];
  answers[answer] = (answers[answer] ?? 0) + 1;
  if (answer === String(expect)) return;
  bad.push({ at: new Date().toISOString(), answer: `${answer} ${said.slice(0, 400)}`.trim() });
  if (bad.length > 50) bad.shift();
}

function send(target) {
  const { url, headers = {}, method = "GET" } = target;
  counts[target.name].sent += 1;
  const sent = request(url, { agent, headers, method, timeout: 10_000 });
  sent.on("response", (response) => {
    let said = "";
    response.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    response.on("end", () => count(target, String(response.statusCode), said));
    response.on("error", (error) => count(target, error.code ?? error.message));
  });
  sent.on("timeout", () => sent.destroy(Object.assign(new Error("no answer"), { code: "TIMEOUT" })));
  sent.on("error", (error) => count(target, error.code ?? error.message));
  sent.end();
}

let next = 0;
const sending = setInterval(() => send(targets[next++ % targets.length]), 1000 / Number(rate));
setTimeout(() => clearInterval(sending), 1000 * Number(seconds));
createServer((_, response) => response.end(JSON.stringify(counts))).listen(9000);
process.on("SIGTERM", () => process.exit(0));
