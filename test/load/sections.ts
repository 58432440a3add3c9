import { connect } from "node:net";
import type { Environment } from "./environment.ts";
import { STRICT, untilPasses, untilStatus } from "./gate-load.ts";
import { compare, cpuMicros, median, percentile, residentMb } from "./measure.ts";
import {
  compareGates,
  contestant,
  type Figure,
  forEachKeyCount,
  type Section,
  type SectionOptions,
  timed,
  toFigures,
} from "./section.ts";
import { verifyKeyLoad } from "./verify-key-load.ts";

/* The sidecar, the verification and the propagation: what is measured, and the figure that each must not exceed. */

/** CPU of the sidecar per request, compared with the same proxy without checks, and of both with a bare pass-through. */
export const proxy: Section = async (environment, options) => {
  const keys = await environment.keys(1);
  const authorization = { authorization: `Bearer ${keys[0]?.key}` };
  const plainPolicy = await environment.createPolicy("verified", []);
  const limitedPolicy = await environment.createPolicy("limited", [STRICT]);
  const [bare, unchecked, verified, limited] = await Promise.all([
    environment.startChild("pass-through.ts", [environment.upstream.url]),
    environment.startChild("unchecked-sidecar.ts", [environment.upstream.url, environment.workspaceId, plainPolicy]),
    environment.startSidecar(plainPolicy),
    environment.startSidecar(limitedPolicy),
  ]);
  await Promise.all([untilPasses(verified.url, authorization), untilPasses(limited.url, authorization)]);
  // All get the same requests, so headers cost each of them the same.
  const as = contestant(options, (running) => ({ url: `${running.url}/orders/1`, headers: authorization }));
  const [passThrough, off, key, limit] = [
    as("bare node:http + undici", bare),
    as("checks off", unchecked),
    as("verified key", verified),
    as("key + strict limit", limited),
  ];
  const results = await compareGates(environment, options, "proxy", [
    { contestant: off, baseline: passThrough },
    { contestant: key, baseline: off },
    { contestant: limit, baseline: off },
    { contestant: key, baseline: passThrough },
    { contestant: limit, baseline: passThrough },
  ]);
  for (const running of [bare, unchecked, verified, limited]) await running.stop();
  // The last two are the products of the first bounds: the most that a request may cost in total.
  return toFigures(results, [1.15, 1.2, 1.6, 1.15 * 1.2, 1.15 * 1.6]);
};

/** CPU of `keys.verifyKey` compared with `/v2/liveness` on the same server. */
export const verifyKey: Section = async (environment, options) => {
  const server = environment.apiServer;
  const liveness = contestant(options, () => ({ url: `${server.url}/v2/liveness` }))("/v2/liveness", server);
  const figures = await forEachKeyCount(options, async (count) => {
    const { verifyPlain, verifyLimited, mixed } = await verifyKeyLoad(environment, options, count);
    const results = await compare({
      contestants: [
        { contestant: verifyPlain("verifyKey", server), baseline: liveness },
        { contestant: verifyLimited("verifyKey + strict limit", server), baseline: liveness },
        { contestant: mixed("nine verifyKey, one createKey", server), baseline: liveness },
      ],
      rounds: options.rounds,
      onRound: (round) => options.progress(`verifyKey: round ${round} of ${options.rounds}`),
    });
    return toFigures(results, [2.0, 2.6]);
  });
  return [...figures, await limitLatency(environment, options)];
};

/** How much longer a single verification takes with a limit than without, in round trips to Redis. */
async function limitLatency(environment: Environment, options: SectionOptions): Promise<Figure> {
  const { plain, limited, headers } = await verifyKeyLoad(environment, options, 1000);
  const times = { plain: [] as number[], limited: [] as number[], ping: [] as number[] };
  const url = `${environment.apiServer.url}/v2/keys.verifyKey`;
  const verifyMs = (key: string | undefined) =>
    timed(async () => {
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ key }) });
      await response.arrayBuffer();
    });
  const redis = await openPing(environment.redisUrl);
  for (let turn = 0; turn < 1000; turn += 1) {
    times.plain.push(await verifyMs(plain[turn % plain.length]?.key));
    times.limited.push(await verifyMs(limited[turn % limited.length]?.key));
    times.ping.push(await timed(redis.ping));
  }
  redis.close();
  const [plainMs, limitedMs, pingMs] = [median(times.plain), median(times.limited), median(times.ping)];
  return {
    name: "latency of a strict limit, one request at a time",
    unit: "round trips",
    value: (limitedMs - plainMs) / pingMs,
    max: 2,
    detail: `medians: ${limitedMs.toFixed(3)} ms with, ${plainMs.toFixed(3)} ms without, ${pingMs.toFixed(3)} ms a PING`,
  };
}

/** The time from the API's response to a change until the sidecar enforces it, 500 times. */
export const propagation: Section = async (environment, options) => {
  const [key] = await environment.keys(1);
  if (key === undefined) throw new Error("no key was made");
  const policyId = await environment.createPolicy("propagation", []);
  const sidecar = await environment.startSidecar(policyId);
  const headers = { authorization: `Bearer ${key.key}` };
  await untilPasses(sidecar.url, headers);
  const times: number[] = [];
  for (let change = 1; change <= 500; change += 1) {
    if (change % 100 === 0) options.progress(`propagation: change ${change} of 500`);
    const enabled = change % 2 === 0;
    await environment.call("keys.updateKey", { keyId: key.keyId, enabled });
    times.push(await timed(() => untilStatus(sidecar.url, headers, enabled ? 200 : 401)));
  }
  await sidecar.stop();
  return [
    {
      name: "change answered → enforced at a sidecar, p99 of 500",
      unit: "ms",
      value: percentile(times, 99),
      max: 250,
      detail: `median ${median(times).toFixed(1)} ms, slowest ${Math.max(...times).toFixed(1)} ms`,
    },
  ];
};

/** Memory of a sidecar process, and its CPU time until it is ready, from the sources and as one bundled file. */
export const footprint: Section = async (environment, options) => {
  const policyId = await environment.createPolicy("footprint", []);
  const figures: Figure[] = [];
  for (const [name, main, maxMb, maxMs] of [
    ["from sources", ["cli/main.ts", "sidecar"], 130, 700],
    // The goals of what is released.
    ["as one file", ["dist/sidecar/main.mjs"], 60, 120],
  ] as const) {
    const starts: number[] = [];
    const sizes: number[] = [];
    for (let turn = 1; turn <= 3; turn += 1) {
      options.progress(`footprint: ${name}, start ${turn} of 3`);
      const sidecar = await environment.startSidecar(policyId, main);
      await untilStatus(sidecar.url, {}, 401);
      starts.push(cpuMicros(sidecar.pid) / 1000);
      // Idle: the garbage of the start has been collected, and some heartbeats have arrived.
      await new Promise((done) => setTimeout(done, 5000));
      sizes.push(residentMb(sidecar.pid));
      await sidecar.stop();
    }
    const detail = (values: number[]) => `three starts: ${values.map((value) => value.toFixed(0)).join(", ")}`;
    figures.push({ name: `idle sidecar ${name}`, unit: "MB", value: median(sizes), max: maxMb, detail: detail(sizes) });
    figures.push({
      name: `CPU from start to ready ${name}`,
      unit: "ms",
      value: median(starts),
      max: maxMs,
      detail: detail(starts),
    });
  }
  return figures;
};

/** A bare connection to Redis, so that a round trip is measured without the cost of a client library. */
async function openPing(redisUrl: string): Promise<{ ping: () => Promise<void>; close: () => void }> {
  const { hostname, port } = new URL(redisUrl);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((done, fail) => socket.once("connect", done).once("error", fail));
  const ping = () =>
    new Promise<void>((done) => {
      socket.once("data", () => done());
      socket.write("PING\r\n");
    });
  return { ping, close: () => socket.destroy() };
}
