import type { AppKind, Case, ExpectedRequest, ResponsePlan } from "./case.ts";
import { mutate, split } from "./mutate.ts";
import { Random } from "./random.ts";
import { handshake, oddRequest, soundRequest } from "./requests.ts";
import { responsePlan, upgradePlan } from "./responses.ts";
import { streamsCase } from "./streams.ts";

const APPS: readonly AppKind[] = ["node", "raw", "stream"];

/** One case of so many is over HTTP/2. With another divisor than the number of apps, each gets some. */
const HTTP2_EVERY = 4;

/** Returns the case with this number. It depends only on the seed and the number, not on the order of play. */
export function makeCase(seed: number, number: number): Case {
  const random = new Random(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const id = `${seed.toString(36)}-${number}`;
  const app = APPS[number % APPS.length] as AppKind;
  if (number % HTTP2_EVERY === HTTP2_EVERY - 1) return streamsCase(random, id, app);
  if (random.oneIn(6)) return upgradeCase(random, id, app);
  return random.oneIn(2) ? soundCase(random, id, app) : oddCase(random, id, app);
}

function soundCase(random: Random, id: string, app: AppKind): Case {
  const count = 1 + random.int(4);
  const responses: Record<string, ResponsePlan> = {};
  const requests: ExpectedRequest[] = [];
  let text = "";
  for (let at = 0; at < count; at++) {
    const made = soundRequest(random, `${id}.${at}`, at === count - 1);
    text += made.text;
    requests.push(made.expected);
    const plan = responsePlan(random, made.expected.id);
    // What an app sends after the head of a response to HEAD is not a body.
    responses[made.expected.id] = made.expected.method === "HEAD" ? { ...plan, expect: "any" } : plan;
  }
  const planned = app === "raw" ? responses : {};
  if (random.oneIn(4)) return cutCase(random, { id, app, text, responses: planned });
  // A client that has sent everything may end its direction, and gets all responses.
  const ends = random.oneIn(3) ? "half-close" : "wait";
  return { id, app, client: split(random, text), ends, requests, responses: planned };
}

/** Valid requests of a client that goes away at any byte: their connections to the app, and those who wait for these, must not suffer. */
function cutCase(
  random: Random,
  { id, app, text, responses }: Pick<Case, "id" | "app" | "responses"> & { text: string },
): Case {
  const sent = text.slice(0, 1 + random.int(text.length));
  const ends = random.pick(["half-close", "destroy", "reset"] as const);
  return { id, app, client: split(random, withoutHead(sent)), ends, requests: undefined, responses };
}

function oddCase(random: Random, id: string, app: AppKind): Case {
  const count = 1 + random.int(3);
  const responses: Record<string, ResponsePlan> = {};
  let text = "";
  for (let at = 0; at < count; at++) {
    const requestId = `${id}.${at}`;
    const isOdd = random.oneIn(2);
    text += isOdd ? oddRequest(random, requestId) : withoutHead(soundRequest(random, requestId, false).text);
    responses[requestId] = responsePlan(random, requestId);
  }
  if (random.oneIn(2)) text = mutate(random, text);
  const ends = random.pick(["half-close", "half-close", "destroy", "reset", "wait"] as const);
  return { id, app, client: split(random, text), ends, requests: undefined, responses: app === "raw" ? responses : {} };
}

/** A response to HEAD can be parsed only if the method is known, and of odd bytes it is not. */
const withoutHead = (text: string): string => text.replaceAll("HEAD /", "GET /");

function upgradeCase(random: Random, id: string, app: AppKind): Case {
  const requestId = `${id}.0`;
  let text = handshake(requestId);
  const isSound = app === "stream" && random.oneIn(2);
  const tunnel = isSound ? random.letters(1 + random.int(30_000)) : undefined;
  if (!isSound && random.oneIn(2)) text = mutate(random, text);
  // Bytes after the handshake, before its response.
  if (!isSound && random.oneIn(3)) text += random.oneIn(2) ? handshake(requestId) : "early bytes";
  const responses = app === "raw" ? { [requestId]: upgradePlan(random, requestId) } : {};
  const ends = isSound ? "wait" : random.pick(["half-close", "destroy", "reset", "wait"] as const);
  return { id, app, client: split(random, text), ends, requests: undefined, responses, tunnel };
}
