import { randomBytes } from "node:crypto";
import { policyBody } from "../../api-server/test/resources.ts";
import type { PolicyFields } from "../../core/manifests/from-store/policy-spec.ts";
import type { Edge } from "../../edge/open.ts";
import { startSidecar } from "../../sidecar/start.ts";
import { call, startApp, withKey } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import type { Api } from "./client.ts";
import type { System } from "./system.ts";

/** A gate with the app behind it. */
export interface Gate {
  /** Returns the status of a request with this key. */
  status(key: string, path?: string): Promise<number>;
  /** Returns the staleness in ms that the readiness probe reports; null before the first heartbeat. */
  stalenessMs(): Promise<number | null>;
  /** Returns the reported state of the projection source. */
  source(): Promise<unknown>;
  metrics(): Promise<string>;
  readonly edge: Edge;
  readonly policyId: string;
  close(): Promise<void>;
}

export interface GateOptions {
  readonly apiId: string;
  readonly policy?: PolicyFields;
  readonly workspaceId?: string;
  readonly rootKey?: string;
  /** Existing policy; the gate may then be unready. Default: a new one. */
  readonly policyId?: string;
  /** Another URL of the same Redis. */
  readonly redisUrl?: string;
}

const LOCAL = { host: "127.0.0.1", port: 0 };

/** Starts a gate of the system in front of an API with a policy of this test, and waits until it is ready. */
export async function startGate(system: System, api: Api, { apiId, policy, ...of }: GateOptions): Promise<Gate> {
  const body = policyBody(apiId, apiId, policy);
  const policyId: string = of.policyId ?? (await api.data("managed.applyObject", body, of.rootKey)).ids.policyId;
  const app = system.closing(await startApp());
  const edge = await system.edge("test-sidecar", of.redisUrl);
  const sidecar = await startSidecar({
    edge,
    workspaceId: of.workspaceId ?? (await system.workspaceId()),
    policyId,
    upstream: app.url,
    listen: LOCAL,
    admin: LOCAL,
    podId: `pod-${randomBytes(4).toString("hex")}`,
    region: "test",
    errorDocsUrl: "https://docs.test",
    logger: system.log,
  });
  system.closing(sidecar);
  const [port, adminPort] = [sidecar.url, sidecar.adminUrl].map((url = "") => Number(new URL(url).port)) as [
    number,
    number,
  ];
  const readyz = () => call(adminPort, { path: "/readyz" });
  if (of.policyId === undefined) {
    await waitFor("the sidecar to be ready", async () => (await readyz()).status === 200);
  }
  return {
    edge,
    policyId,
    status: async (key, path = "/") => (await call(port, { path, ...withKey(key) })).status,
    stalenessMs: async () => JSON.parse((await readyz()).body).stalenessMs,
    metrics: async () => (await call(adminPort, { path: "/metrics" })).body,
    source: async () => JSON.parse((await readyz()).body).source,
    close: () => sidecar.close(),
  };
}
