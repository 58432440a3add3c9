import type { Logger } from "pino";
import { followCertificate } from "../../edge/follow-certificate.ts";
import { Rarely } from "../../edge/rarely.ts";
import type { Address, DoorsConfig, Limits, Timeouts } from "../config.ts";
import { type DecisionParts, decide } from "../gate/decide.ts";
import type { ReceivedRequest } from "../gate/judge.ts";
import { listen } from "../http/serve.ts";
import type { Door } from "./door-connections.ts";
import { createHttpDoor, type TurnedAway } from "./http-door.ts";
import { type Descriptor, rateLimit } from "./rate-limit.ts";
import { TRUSTED_BY_CERTIFICATE, trustedAmong } from "./trusted.ts";

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
  const certificate = config.tls?.();
  const { requestHeadMs, certificateMs } = parts.timeouts;
  const clients = certificate?.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
  const tls = certificate && { ...certificate, ...clients, handshakeTimeout: requestHeadMs };
  const trust = certificate?.ca === undefined ? trustedAmong(config.trusted) : TRUSTED_BY_CERTIFICATE;
  const onTurnedAway = turnedAwayLog(parts);
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(closers.map((closeOne) => closeOne(graceMs)));
  };

  /** Listens, and follows the certificate. Returns the URL. */
  async function open({ server, setSecureContext, end }: Door, address: Address): Promise<string> {
    const url = await listen(server, address);
    closers.push(end);
    if (config.tls === undefined || setSecureContext === undefined) return url;
    const following = { current: config.tls, log: parts.logger, everyMs: certificateMs };
    const certificates = followCertificate({ setSecureContext }, following);
    closers.push(() => certificates.close());
    return url.replace(/^http:/, "https:");
  }

  async function openAuthorize(address: Address): Promise<string> {
    const { decision, docsUrl, isEnding, limits, timeouts } = parts;
    const httpParts = { decision, docsUrl, isEnding, trust, onTurnedAway };
    const door = createHttpDoor(httpParts, { ...limits, ...timeouts }, tls);
    const url = await open(door, address);
    idle.push(() => door.server.closeIdleConnections());
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
      ...{ trust, isReady, onFault, onTurnedAway },
    };
    const door = createGrpcDoor(grpcParts, { ...parts.limits, ...parts.timeouts }, tls);
    const url = await open(door, address);
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
