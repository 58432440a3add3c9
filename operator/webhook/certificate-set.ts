import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { makeAuthority, makeServing } from "./certificate.ts";

/*
 * What all replicas of a webhook share, in one Secret: the authority with its key, the authorities that may still be in use, and the
 * certificate that is served. `renewed` says what it must be now. Pure but for the keys that it makes.
 *
 *   nothing, or not usable ──► new authority, new serving certificate
 *   serving certificate soon over, or for other hosts ──► another one by the same authority
 *   authority soon over ──► another authority, trusted beside the old one, and a serving certificate by it
 */

export interface CertificateSet {
  /** PEM: the authority, and before it was replaced, the one before, while that is valid. */
  readonly bundle: string;
  /** PEM: of the first authority of the bundle. */
  readonly authorityKey: string;
  readonly cert: string;
  readonly key: string;
}

export interface Lifetimes {
  readonly authorityMs: number;
  readonly servingMs: number;
}

export const DEFAULT_LIFETIMES: Lifetimes = { authorityMs: 365 * 86_400_000, servingMs: 60 * 86_400_000 };

/** A certificate is replaced when this part of its time is left. */
const RENEW_WITH_LEFT = 1 / 3;
/** Clocks of nodes differ. */
const BACKDATED_MS = 3_600_000;
const NAME = "postern webhook authority";

export interface Wanted {
  readonly hosts: readonly string[];
  readonly lifetimes: Lifetimes;
  readonly nowMs: number;
}

/** Returns the set to use from now on; the same object when nothing must change. */
export function renewed(current: CertificateSet | undefined, wanted: Wanted): CertificateSet {
  const { hosts, lifetimes, nowMs } = wanted;
  if (current === undefined || !isCoherent(current)) return fresh(wanted, []);
  const [authority = "", ...formers] = splitPem(current.bundle);
  if (isSoonOver(authority, nowMs)) return fresh(wanted, [authority]);
  const bundle = [authority, ...formers.filter((pem) => validToMs(pem) > nowMs)].join("");
  if (!isSoonOver(current.cert, nowMs) && isFor(current.cert, hosts)) {
    return bundle === current.bundle ? current : { ...current, bundle };
  }
  // It must not outlive its authority.
  const toMs = Math.min(nowMs + lifetimes.servingMs, validToMs(authority));
  const serving = makeServing({ cert: authority, key: current.authorityKey }, hosts, {
    fromMs: nowMs - BACKDATED_MS,
    toMs,
  });
  return { ...current, bundle, ...serving };
}

function fresh({ hosts, lifetimes, nowMs }: Wanted, formers: readonly string[]): CertificateSet {
  const fromMs = nowMs - BACKDATED_MS;
  const authority = makeAuthority(NAME, { fromMs, toMs: nowMs + lifetimes.authorityMs });
  const toMs = nowMs + Math.min(lifetimes.servingMs, lifetimes.authorityMs);
  const serving = makeServing(authority, hosts, { fromMs, toMs });
  return { bundle: [authority.cert, ...formers].join(""), authorityKey: authority.key, ...serving };
}

/** Of a set that was read: anyone who may write the Secret may have written anything. */
function isCoherent({ bundle, authorityKey, cert, key }: CertificateSet): boolean {
  try {
    const [authority = ""] = splitPem(bundle);
    const issuer = new X509Certificate(authority);
    const serving = new X509Certificate(cert);
    return (
      issuer.checkPrivateKey(createPrivateKey(authorityKey)) &&
      serving.checkPrivateKey(createPrivateKey(key)) &&
      serving.verify(issuer.publicKey)
    );
  } catch {
    return false;
  }
}

export const splitPem = (bundle: string): string[] =>
  bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];

export const validToMs = (pem: string): number => new X509Certificate(pem).validToDate.getTime();

function isSoonOver(pem: string, nowMs: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(pem);
  const [fromMs, toMs] = [validFromDate.getTime() + BACKDATED_MS, validToDate.getTime()];
  return toMs - nowMs < (toMs - fromMs) * RENEW_WITH_LEFT;
}

function isFor(pem: string, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(pem);
  return hosts.every(
    (host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined,
  );
}
