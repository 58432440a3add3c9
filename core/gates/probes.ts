import * as z from "zod";

/*
 * Probes of a guarded port of the app. The guarded port requires a key, so kubelet sends the probes to the gate's admin port, where each
 * probe has its own path. The gate sends exactly that probe to the app and returns the result; the admin port forwards no other request.
 * The operator writes the probes into the gate's environment. The operator and the gate may have different versions.
 */

const Port = z.int().min(1).max(65_535);

export const GateProbe = z.object({
  /** Path on the gate's admin port: `/probes/<container>/<probe>`. */
  path: z.string().regex(/^\/probes\/[a-z0-9-]{1,63}\/[A-Za-z]{1,32}$/),
  timeoutMs: z.int().min(1).max(3_600_000),
  probe: z.discriminatedUnion("kind", [
    z.object({
      kind: z.literal("http"),
      port: Port,
      /** Request target of the probe, such as `/healthz?full=1`. */
      target: z.string().max(8_192),
      isTls: z.boolean().default(false),
      headers: z
        .array(z.object({ name: z.string().max(256), value: z.string().max(8_192) }))
        .max(64)
        .default([]),
    }),
    z.object({ kind: z.literal("tcp"), port: Port }),
    z.object({ kind: z.literal("grpc"), port: Port, service: z.string().max(1_024).default("") }),
  ]),
});
export type GateProbe = z.output<typeof GateProbe>;

export const GateProbes = z.array(GateProbe).max(300);
export type GateProbes = z.output<typeof GateProbes>;

export const probePath = (container: string, probe: string): string => `/probes/${container}/${probe}`;
