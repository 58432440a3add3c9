import type { Logger } from "pino";
import type { Closeable } from "./closeable.ts";

/** PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** The authorities of clients' certificates, for a server that asks for them. */
  readonly ca?: string | undefined;
}

const LOOK_EVERY_MS = 5_000;

/**
 * Makes a listening server use each new certificate. Connections that are open keep theirs. One that cannot be used, such as a certificate
 * whose key is not there yet, is logged once, and the last one stays.
 */
export function followCertificate(
  server: { setSecureContext(certificate: Certificate): void },
  { current, log, everyMs = LOOK_EVERY_MS }: { current: () => Certificate; log: Logger; everyMs?: number },
): Closeable {
  let used = current();
  let refused: Certificate | undefined;
  const isSame = (a: Certificate, b: Certificate | undefined) => a.cert === b?.cert && a.key === b.key && a.ca === b.ca;
  const timer = setInterval(() => {
    const now = { ...current() };
    if (isSame(now, used) || isSame(now, refused)) return;
    try {
      server.setSecureContext(now);
      used = now;
      log.info("serving with another certificate");
    } catch (error) {
      refused = now;
      log.error(
        { reason: error instanceof Error ? error.message : String(error) },
        "the new certificate is not usable",
      );
    }
  }, everyMs);
  timer.unref();
  return { close: async () => clearInterval(timer) };
}
