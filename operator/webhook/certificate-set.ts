import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { makeAuthority, makeServing } from "./certificate.ts";

/*
 * Certificates that all replicas of a webhook share in one Secret: the authority with its key, the authorities that may still be in
 * use, and the serving certificate. `renewed` returns their desired state. Pure, except for the keys that it generates.
 *
 *   none, or unusable ──► new authority, new serving certificate
 *   serving certificate expires soon, or is for other hosts ──► new serving certificate, signed by the same authority
 *   authority expires soon ──► new authority, trusted in addition to the old one, and new serving certificate, signed by the new authority
 */

export interface CertificateSet {
  /** Certificate authority in PEM format, followed by its predecessor while that is valid. */
  readonly bundle: string;
  /** Private key of the first authority of the bundle, in PEM format. */
  readonly authorityKey: string;
  readonly cert: string;
  readonly key: string;
}

export interface Lifetimes {
  readonly authorityMs: number;
  readonly servingMs: number;
}

export const DEFAULT_LIFETIMES: Lifetimes = { authorityMs: 365 * 86_400_000, servingMs: 60 * 86_400_000 };

/** Fraction of its lifetime that remains when a certificate is replaced. */
const RENEW_WITH_LEFT = 1 / 3;
/** Time by which certificates are backdated, because the clocks of nodes differ. */
const BACKDATED_MS = 3_600_000;
const NAME = "postern webhook authority";

export interface Desired {
  readonly hosts: readonly string[];
  readonly lifetimes: Lifetimes;
  readonly nowMs: number;
}

/** Returns the set to use from now on: `current` itself if no change is necessary. */
export function renewed(current: CertificateSet | undefined, desired: Desired): CertificateSet {
  const { hosts, lifetimes, nowMs } = desired;
  if (current === undefined || !isCoherent(current)) return fresh(desired, []);
  const [authority = "", ...formers] = splitPem(current.bundle);
  if (isSoonOver(authority, nowMs)) return fresh(desired, [authority]);
  const bundle = [authority, ...formers.filter((pem) => validToMs(pem) > nowMs)].join("");
  if (!isSoonOver(current.cert, nowMs) && isFor(current.cert, hosts)) {
    return bundle === current.bundle ? current : { ...current, bundle };
  }
  // A certificate must not outlive its authority.
  const toMs = Math.min(nowMs + lifetimes.servingMs, validToMs(authority));
  const serving = makeServing({ cert: authority, key: current.authorityKey }, hosts, {
    fromMs: nowMs - BACKDATED_MS,
    toMs,
  });
  return { ...current, bundle, ...serving };
}

function fresh({ hosts, lifetimes, nowMs }: Desired, formers: readonly string[]): CertificateSet {
  const fromMs = nowMs - BACKDATED_MS;
  const authority = makeAuthority(NAME, { fromMs, toMs: nowMs + lifetimes.authorityMs });
  const toMs = nowMs + Math.min(lifetimes.servingMs, lifetimes.authorityMs);
  const serving = makeServing(authority, hosts, { fromMs, toMs });
  return { bundle: [authority.cert, ...formers].join(""), authorityKey: authority.key, ...serving };
}

/**
 * Returns whether the parts of a set belong together. This is checked because anyone with write access to the Secret can change single
 * parts.
 */
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
