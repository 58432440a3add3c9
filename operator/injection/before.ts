import * as z from "zod";
import { BEFORE_ANNOTATION, GATE_CONTAINER, GATE_VOLUMES, REDIRECT_CONTAINER } from "./names.ts";
import { type Container, Handler, HOOKS, type Pod, PROBES } from "./pod.ts";
import { restoreProbe } from "./probes.ts";

/*
 * Restores the app's containers to their state before injection, as recorded in an annotation of the pod. A pod may already have a gate:
 * the API server calls the webhook again after other webhooks have changed the pod (`reinvocationPolicy`), and a pod may be a copy of
 * another. Injection restores the original pod first, so that it is idempotent.
 */

/**
 * Maximum number of entries in the annotation; no guarded pod has more (inject.ts). The limit is necessary because anyone who creates a pod
 * may set its annotation.
 */
const ENTRIES_MAX = 2_000;

export const Before = z.object({
  /** Ports whose name the gate has taken over. `at` is the index of the port in its container. */
  ports: z
    .array(z.object({ container: z.string(), at: z.int(), number: z.int(), name: z.string() }))
    .max(ENTRIES_MAX)
    .default([]),
  probes: z
    .array(z.object({ container: z.string(), probe: z.enum(PROBES), handler: Handler }))
    .max(ENTRIES_MAX)
    .default([]),
  /** Hooks that used a port name that the gate has taken over. */
  hooks: z
    .array(z.object({ container: z.string(), hook: z.enum(HOOKS), port: z.string() }))
    .max(ENTRIES_MAX)
    .default([]),
});
export type Before = z.output<typeof Before>;

/**
 * Returns the pod without the injected gate; `undefined` if that is impossible, for example because another container has the gate's name.
 */
export function withoutGate(pod: Pod): Pod | undefined {
  const { initContainers = [], containers } = pod.spec;
  const written = pod.metadata.annotations?.[BEFORE_ANNOTATION];
  const isInjected = initContainers.some(({ name }) => isOurs(name));
  if (containers.some(({ name }) => isOurs(name))) return undefined;
  // A pod template that was copied from an injected pod may have the annotation but no gate.
  if (!isInjected) return { ...pod, metadata: withoutAnnotation(pod.metadata) };
  const before = readBefore(written);
  if (before === undefined) return undefined;
  const restored = (container: Container) => restore(container, before);
  return {
    ...pod,
    metadata: withoutAnnotation(pod.metadata),
    spec: {
      ...pod.spec,
      initContainers: initContainers.filter(({ name }) => !isOurs(name)).map(restored),
      containers: containers.map(restored),
      volumes: (pod.spec.volumes ?? []).filter(({ name }) => !GATE_VOLUMES.includes(name)),
    },
  };
}

const isOurs = (name: string): boolean => name === GATE_CONTAINER || name === REDIRECT_CONTAINER;

function withoutAnnotation({ annotations, ...metadata }: Pod["metadata"]): Pod["metadata"] {
  if (annotations === undefined) return metadata;
  const { [BEFORE_ANNOTATION]: _, ...kept } = annotations;
  return { ...metadata, annotations: kept };
}

function readBefore(text: string | undefined): Before | undefined {
  try {
    return Before.safeParse(JSON.parse(text ?? "")).data;
  } catch {
    return undefined;
  }
}

function restore(container: Container, { ports, probes, hooks }: Before): Container {
  const { name } = container;
  let restored = container;
  for (const taken of ports.filter((one) => one.container === name)) {
    restored = {
      ...restored,
      ports: restored.ports?.map((port, at) =>
        at === taken.at && port.containerPort === taken.number && port.name === undefined
          ? { ...port, name: taken.name }
          : port,
      ),
    };
  }
  for (const former of probes.filter((one) => one.container === name)) restored = restoreProbe(restored, former);
  for (const { hook, port } of hooks.filter((one) => one.container === name)) {
    restored = withHookPort(restored, hook, port);
  }
  return restored;
}

/** Returns the container with another port in its HTTP or TCP hook. */
export function withHookPort(container: Container, hook: (typeof HOOKS)[number], port: string | number): Container {
  const handler = container.lifecycle?.[hook];
  if (handler === undefined) return container;
  const { httpGet, tcpSocket } = handler;
  return {
    ...container,
    lifecycle: {
      ...container.lifecycle,
      [hook]: {
        ...handler,
        ...(httpGet === undefined ? {} : { httpGet: { ...httpGet, port } }),
        ...(tcpSocket === undefined ? {} : { tcpSocket: { ...tcpSocket, port } }),
      },
    },
  };
}
