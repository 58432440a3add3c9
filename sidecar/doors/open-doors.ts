import type { Server } from "node:http";
import type { Logger } from "pino";
import { Rarely } from "../../edge/rarely.ts";
import type { Address, DoorsConfig, Limits, Timeouts } from "../config.ts";
import { type DecisionParts, decide } from "../gate/decide.ts";
import type { ReceivedRequest } from "../gate/judge.ts";
import { listen } from "../http/serve.ts";
import { createHttpDoor, type TurnedAway } from "./http-door.ts";
import { type Descriptor, rateLimit } from "./rate-limit.ts";
import { trustedAmong } from "./trusted.ts";

/* The doors by which gateways ask for decisions on requests that do not pass through the gate. */

export interface DoorsParts {
  readonly decision: DecisionParts;
  readonly timeouts: Timeouts;
  readonly limits: Limits;
  readonly docsUrl: string;
  readonly isEnding: () => boolean;
  readonly isReady: () => boolean;
  /** Counts questions that were not decided. */
  readonly turnedAway: Record<TurnedAway, number>;
  /** Counts what the rate limit service answered. */
  readonly rateLimits: Record<"OK" | "OVER_LIMIT" | "UNDECIDED", number>;
  readonly logger: Logger;
}

export interface Doors {
  /** Of the HTTP door; undefined when it is not open. */
  readonly authorizeUrl: string | undefined;
  /** Of the gRPC door; undefined when it is not open. */
  readonly grpcUrl: string | undefined;
  closeIdle(): void;
  /** Answers what was asked, for at most `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Opens the doors that are configured. Throws when a port is not available; then none is open. */
export async function openDoors(parts: DoorsParts, config: DoorsConfig): Promise<Doors> {
  const closers: Array<(graceMs: number) => Promise<void>> = [];
  const idle: Array<() => void> = [];
  const isTrusted = trustedAmong(config.trusted);
  const onTurnedAway = turnedAwayLog(parts);
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(closers.map((closeOne) => closeOne(graceMs)));
  };

  async function openAuthorize(address: Address): Promise<string> {
    const { decision, docsUrl, isEnding, limits, timeouts } = parts;
    const server = createHttpDoor({ decision, docsUrl, isEnding, isTrusted, onTurnedAway }, { ...limits, ...timeouts });
    const url = await listen(server, address);
    idle.push(() => server.closeIdleConnections());
    closers.push((graceMs) => endHttpDoor(server, graceMs));
    return url;
  }

  async function openGrpc(address: Address): Promise<string> {
    const { decision, docsUrl, isReady } = parts;
    const { policy, verifying, recording, nextId, onFault } = decision;
    // Its libraries are loaded only here: a gate without this door pays nothing for it.
    const { createGrpcDoor } = await import("./grpc-door.ts");
    const limiting = { policy, counting: verifying, events: recording.events, nextId };
    const grpcParts = {
      checking: {
        decide: (request: ReceivedRequest, startedMs: number) => decide(decision, request, "request", startedMs),
        docsUrl,
      },
      rateLimit: async (domain: string, descriptors: readonly Descriptor[]) => {
        const limited = await rateLimit(limiting, domain, descriptors);
        parts.rateLimits[limited.kind !== "decided" ? "UNDECIDED" : limited.passed ? "OK" : "OVER_LIMIT"] += 1;
        return limited;
      },
      ...{ isTrusted, isReady, onFault, onTurnedAway },
    };
    const door = createGrpcDoor(grpcParts, { ...parts.limits, ...parts.timeouts });
    const url = await listen(door.server, address);
    closers.push(door.end);
    return url;
  }

  try {
    const authorizeUrl = config.authorize === undefined ? undefined : await openAuthorize(config.authorize);
    const grpcUrl = config.grpc === undefined ? undefined : await openGrpc(config.grpc);
    return {
      authorizeUrl,
      grpcUrl,
      closeIdle: () => {
        for (const closeIdle of idle) closeIdle();
      },
      close,
    };
  } catch (error) {
    await close(0);
    throw error;
  }
}

/** Stops accepting, and lets what was asked be answered for at most `graceMs`. */
async function endHttpDoor(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const cutOff = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cutOff);
}

const MESSAGES: Readonly<Record<TurnedAway, string>> = {
  untrusted: "an address that is not among the trusted gateways asked for a decision, and was refused",
  crowded: "there are more connections or questions at a door than it takes at once; one was refused",
  unclear: "a gateway asked for a decision and did not tell clearly about which request; it was refused",
};

/** Anyone who reaches the port can cause these, so they are logged rarely. */
function turnedAwayLog({ turnedAway, logger }: Pick<DoorsParts, "turnedAway" | "logger">) {
  const rarely = new Rarely();
  return (kind: TurnedAway, detail: { readonly address: string | undefined; readonly why?: string }): void => {
    turnedAway[kind] += 1;
    const times = rarely.note(kind);
    if (times !== undefined) logger.warn({ ...detail, times }, MESSAGES[kind]);
  };
}
