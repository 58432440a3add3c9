import { once } from "node:events";
import { request as requestHttp } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as requestHttps } from "node:https";
import { connect } from "node:net";
import type { GateProbe, GateProbes } from "../core/gates/probes.ts";

/*
 * Probes the app for kubelet, which has no key (core/gates/probes.ts). A probe uses no data from the request that triggers it, and reports
 * only success or failure. Concurrent requests share one probe, so that many requests to the admin port cause few requests to the app.
 */

const HOST = "127.0.0.1";

export interface ProbeResult {
  readonly ok: boolean;
  /** Text for the Event that kubelet records. It contains no data from the app. */
  readonly detail: string;
}

export interface Probes {
  /** Runs the probe; returns `undefined` if the path does not belong to a probe. */
  run(path: string): Promise<ProbeResult> | undefined;
}

export function createProbes(configured: GateProbes): Probes {
  const byPath = new Map(configured.map((probe) => [probe.path, probe]));
  const running = new Map<string, Promise<ProbeResult>>();
  return {
    run: (path) => {
      const probe = byPath.get(path);
      if (probe === undefined) return undefined;
      const shared = running.get(path) ?? runProbe(probe).finally(() => running.delete(path));
      running.set(path, shared);
      return shared;
    },
  };
}

async function runProbe({ probe, timeoutMs }: GateProbe): Promise<ProbeResult> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    if (probe.kind === "http") return await probeHttp(probe, signal);
    if (probe.kind === "tcp") return await probeTcp(probe, signal);
    return await probeGrpc(probe, signal);
  } catch (error) {
    if (signal.aborted) return { ok: false, detail: `no response within ${timeoutMs} ms` };
    return { ok: false, detail: `not reached: ${(error as NodeJS.ErrnoException).code ?? "the connection failed"}` };
  }
}

/** Ignores errors after the result is known; without a listener they would end the process. */
const ignoreError = (): void => undefined;

type Of<Kind extends GateProbe["probe"]["kind"]> = Extract<GateProbe["probe"], { kind: Kind }>;

/** Sends an HTTP probe. Like kubelet, it succeeds for statuses below 400, so a redirect is a success and is not followed. */
async function probeHttp({ port, target, isTls, headers }: Of<"http">, signal: AbortSignal): Promise<ProbeResult> {
  const given = Object.fromEntries(headers.map(({ name, value }) => [name, value]));
  const options = { host: HOST, port, path: target, headers: given, signal, agent: false };
  // Like kubelet, the probe does not verify the app's certificate.
  const call = isTls ? requestHttps({ ...options, rejectUnauthorized: false }) : requestHttp(options);
  call.on("error", ignoreError);
  call.end();
  const [response] = await once(call, "response", { signal });
  const status: number = response.statusCode;
  call.destroy();
  return { ok: status >= 200 && status < 400, detail: `answered ${status}` };
}

async function probeTcp({ port }: Of<"tcp">, signal: AbortSignal): Promise<ProbeResult> {
  const socket = connect({ host: HOST, port });
  socket.on("error", ignoreError);
  try {
    await once(socket, "connect", { signal });
    return { ok: true, detail: "connected" };
  } finally {
    socket.destroy();
  }
}

const HEALTH = "/grpc.health.v1.Health/Check";
/** Status field of a HealthCheckResponse: field 1, a varint with the value SERVING. */
const SERVING = Buffer.from([0x08, 0x01]);
const FRAME_HEAD_BYTES = 5;
const RESPONSE_BYTES_MAX = 1_024;

/** Sends a probe of grpc.health.v1. Both messages have one field, so they are encoded and decoded by hand. */
async function probeGrpc({ port, service }: Of<"grpc">, signal: AbortSignal): Promise<ProbeResult> {
  const session = connectHttp2(`http://${HOST}:${port}`);
  session.on("error", ignoreError);
  try {
    await once(session, "connect", { signal });
    const stream = session.request({
      ":method": "POST",
      ":path": HEALTH,
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("error", ignoreError);
    stream.end(grpcFrame(healthRequest(service)));
    const chunks: Buffer[] = [];
    let length = 0;
    stream.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > RESPONSE_BYTES_MAX) stream.destroy();
      else chunks.push(chunk);
    });
    await once(stream, "end", { signal });
    const ok = Buffer.concat(chunks).subarray(FRAME_HEAD_BYTES).equals(SERVING);
    return { ok, detail: ok ? "serving" : "not serving" };
  } finally {
    session.destroy();
  }
}

function healthRequest(service: string): Buffer {
  const name = Buffer.from(service);
  return name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a]), varint(name.length), name]);
}

function grpcFrame(message: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function varint(number: number): Buffer {
  const bytes: number[] = [];
  let rest = number;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}
