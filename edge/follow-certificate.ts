import type { Logger } from "pino";
import type { Closeable } from "./closeable.ts";

/** Certificate files, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** CA bundle for client certificates, for a server that requires them. */
  readonly ca?: string | undefined;
}

const POLL_INTERVAL_MS = 5_000;

/**
 * Applies each new certificate to a listening server. Open connections keep the previous certificate. If a certificate is unusable, for
 * example because its key is missing, this is logged once and the previous one stays in use.
 */
export function followCertificate(
  server: { setSecureContext(certificate: Certificate): void },
  { current, log, everyMs = POLL_INTERVAL_MS }: { current: () => Certificate; log: Logger; everyMs?: number },
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
