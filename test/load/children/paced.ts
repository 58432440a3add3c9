import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { percentile } from "../measure.ts";

/*
 * Sends requests at a steady rate, whether or not answers come, and prints how long they took. A request is due at a tick of a
 * millisecond; it takes a free connection, or waits for one, and its time counts from when it was due. Standard input has the
 * Authorization headers, one a line, which the requests use in turn.
 * Usage: node paced.ts URL REQUESTS-PER-SECOND CONNECTIONS MILLISECONDS
 */
const [url = "", ...numbers] = process.argv.slice(2);
const [rate = 0, connections = 0, durationMs = 0] = numbers.map(Number);
const { hostname, port, pathname } = new URL(url);
const requests = (await text(process.stdin))
  .split("\n")
  .map((value) => `GET ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: ${value}\r\n\r\n`);

const free: Socket[] = [];
const due: number[] = [];
const times: number[] = [];
let underWay = 0;
let sent = 0;

function open(): Promise<void> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let received = "";
  socket.setEncoding("latin1");
  socket.on("data", (data: string) => {
    received += data;
    const end = received.indexOf("\r\n\r\n");
    if (end === -1) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received)?.[1] ?? 0);
    if (received.length < end + 4 + length) return;
    if (!received.startsWith("HTTP/1.1 200")) fail(new Error(received.slice(0, 200)));
    received = "";
    times.push(performance.now() - (sentFor.get(socket) ?? 0));
    underWay -= 1;
    free.push(socket);
    send();
  });
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("a connection was closed")));
  return new Promise((done) => {
    socket.once("connect", () => {
      free.push(socket);
      done();
    });
  });
}

const sentFor = new Map<Socket, number>();

function send(): void {
  while (due.length > 0) {
    const socket = free.shift();
    if (socket === undefined) return;
    sentFor.set(socket, due.shift() ?? 0);
    underWay += 1;
    socket.write(requests[sent % requests.length] ?? "");
    sent += 1;
  }
}

function fail(error: Error): never {
  console.error(error);
  process.exit(1);
}

for (let n = 0; n < connections; n += 1) await open();
const startedAt = performance.now();
let made = 0;
await new Promise<void>((done) => {
  const timer = setInterval(() => {
    const now = performance.now();
    const passedMs = Math.min(durationMs, now - startedAt);
    for (; made < (passedMs * rate) / 1000; made += 1) due.push(now);
    send();
    if (passedMs < durationMs || underWay > 0 || due.length > 0) return;
    clearInterval(timer);
    done();
  }, 1);
});
const seconds = (performance.now() - startedAt) / 1000;
const [medianMs, p99Ms] = [percentile(times, 50), percentile(times, 99)];
console.log(JSON.stringify({ medianMs, p99Ms, requests: times.length, requestsPerSecond: times.length / seconds }));
process.exit(0);
