import { type AppKind, type Case, FUZZ_KEY, type FuzzStream, type ResponsePlan } from "./case.ts";
import { split } from "./mutate.ts";
import type { Random } from "./random.ts";
import { digest, ODD_TARGETS } from "./requests.ts";
import { responsePlan } from "./responses.ts";

/* Cases over HTTP/2: several requests at once on one connection, some of which their client resets, and some of which are odd. */

const FORGED: readonly (readonly [string, string])[] = [
  ["x-postern-key-id", "forged"],
  ["x_postern_roles", "forged"],
  ["te", "trailers"],
  ["cookie", "a=b"],
  ["expect", "200-maybe"],
  ["x-long", "l".repeat(3_000)],
];

const ODD: typeof FORGED = [
  ...FORGED,
  ["host", "denied.test"],
  ["x-denied", "1"],
  ["x_denied", "1"],
  ["x.denied", "\xff"],
];

export function streamsCase(random: Random, id: string, app: AppKind): Case {
  const responses: Record<string, ResponsePlan> = {};
  const streams: FuzzStream[] = [];
  const count = 1 + random.int(4);
  for (let at = 0; at < count; at++) {
    const stream = random.oneIn(6) ? oddStream(random, `${id}.${at}`) : soundStream(random, `${id}.${at}`);
    const plan = responsePlan(random, `${id}.${at}`);
    streams.push(stream);
    responses[`${id}.${at}`] = stream.method === "HEAD" ? { ...plan, expect: "any" } : plan;
  }
  const ends = random.oneIn(8) ? "destroy" : "wait";
  return { id, app, client: [], ends, requests: undefined, streams, responses: app === "raw" ? responses : {} };
}

function soundStream(random: Random, id: string): FuzzStream {
  const method = random.pick(["GET", "POST", "POST", "PUT", "HEAD", "DELETE", "PATCH"]);
  const access = random.pick(["open", "key", "key", "none"] as const);
  const path = `${access === "open" ? "/open" : "/closed"}/${random.letters(1 + random.int(20))}${random.pick(["", "?a=b"])}`;
  const hasBody = method !== "GET" && method !== "HEAD";
  const body = hasBody ? random.letters(random.oneIn(8) ? random.int(200_000) : random.int(300)) : "";
  const fields: [string, string][] = [["x-case", id]];
  if (access === "key") fields.push(["authorization", `Bearer ${FUZZ_KEY}`]);
  for (const [name, value] of random.some(FORGED, 4)) if (name !== "expect") fields.push([name, value]);
  if (hasBody && random.oneIn(2)) fields.push(["content-length", String(body.length)]);
  const pieces = hasBody ? split(random, body) : undefined;
  const isReset = random.oneIn(5);
  return {
    method,
    path,
    fields,
    body: pieces,
    hasTrailers: hasBody && random.oneIn(4),
    resetAfter: isReset ? random.int((pieces?.length ?? 0) + 2) : undefined,
    expected: isReset ? undefined : { id, method, status: access === "none" ? 401 : undefined, body: digest(body) },
  };
}

/** One whose response cannot be predicted: only the apps and the gate's process are looked at. */
function oddStream(random: Random, id: string): FuzzStream {
  return {
    method: random.pick(["GET", "POST", "get", "PRI", "TRACE", "GE T", "CONNECT"]),
    path: random.pick(ODD_TARGETS),
    fields: [["x-case", id], ...random.some(ODD, 2)],
    body: random.oneIn(2) ? undefined : ["1", "2345"],
    hasTrailers: false,
    resetAfter: random.oneIn(4) ? random.int(3) : undefined,
    expected: undefined,
  };
}
