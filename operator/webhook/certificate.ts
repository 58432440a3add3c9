import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import * as der from "./der.ts";

/*
 * Creates a certificate authority and a serving certificate for the webhook, signed by this authority: X.509 v3 (RFC 5280), P-256, SHA-256.
 * This code creates certificates and never parses any; Node and the Kubernetes API server do.
 */

export interface KeyPair {
  /** PEM */
  readonly cert: string;
  /** Private key in PEM format, PKCS #8. */
  readonly key: string;
}

export interface Validity {
  readonly fromMs: number;
  readonly toMs: number;
}

const OID = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

/** Bits of the key usage extension, counted from the left. */
const DIGITAL_SIGNATURE = 0b1000_0000;
const SIGN_CERTIFICATES = 0b0000_0100;

/** Creates an authority that may sign server certificates, but no other authorities. */
export function makeAuthority(commonName: string, validity: Validity): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  // The suffix distinguishes two authorities of the same name while a new one replaces the old one.
  const name = `${commonName} ${randomBytes(4).toString("hex")}`;
  const id = keyIdOf(publicKey);
  const cert = certificate({
    issuer: name,
    subject: name,
    publicKey,
    signer: privateKey,
    validity,
    extensions: [
      extension(OID.basicConstraints, der.sequence(der.boolean(true), der.integer(Buffer.from([0]))), {
        critical: true,
      }),
      extension(OID.keyUsage, der.bits(Buffer.from([SIGN_CERTIFICATES]), 2), { critical: true }),
      extension(OID.subjectKeyId, der.octets(id)),
    ],
  });
  return { cert, key: pemOf(privateKey) };
}

/** Creates a certificate for a server with these names and addresses. */
export function makeServing(authority: KeyPair, hosts: readonly string[], validity: Validity): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = new X509Certificate(authority.cert);
  const cert = certificate({
    issuer: issuer.subject.replace(/^CN=/, ""),
    subject: hosts[0] ?? "webhook",
    publicKey,
    signer: createPrivateKey(authority.key),
    validity,
    extensions: [
      extension(OID.basicConstraints, der.sequence(), { critical: true }),
      extension(OID.keyUsage, der.bits(Buffer.from([DIGITAL_SIGNATURE]), 7), { critical: true }),
      extension(OID.extendedKeyUsage, der.sequence(der.objectId(OID.serverAuth))),
      extension(OID.subjectKeyId, der.octets(keyIdOf(publicKey))),
      extension(OID.authorityKeyId, der.sequence(der.tagged(0, keyIdOf(issuer.publicKey), { constructed: false }))),
      extension(OID.subjectAltName, der.sequence(...hosts.map(toGeneralName))),
    ],
  });
  return { cert, key: pemOf(privateKey) };
}

interface Certified {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

function certificate({ issuer, subject, publicKey, signer, validity, extensions }: Certified): string {
  const algorithm = der.sequence(der.objectId(OID.ecdsaWithSha256));
  const toBeSigned = der.sequence(
    // In X.509, the value 2 stands for version 3.
    der.tagged(0, der.integer(Buffer.from([2])), { constructed: true }),
    der.integer(randomBytes(16)),
    algorithm,
    nameOf(issuer),
    der.sequence(der.time(validity.fromMs), der.time(validity.toMs)),
    nameOf(subject),
    spkiOf(publicKey),
    der.tagged(3, der.sequence(...extensions), { constructed: true }),
  );
  const signed = der.sequence(toBeSigned, algorithm, der.bits(sign("sha256", toBeSigned, signer)));
  const lines = signed.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

const nameOf = (commonName: string): Buffer =>
  der.sequence(der.set(der.sequence(der.objectId(OID.commonName), der.utf8(commonName))));

const extension = (id: string, content: Buffer, { critical = false } = {}): Buffer =>
  der.sequence(der.objectId(id), ...(critical ? [der.boolean(true)] : []), der.octets(content));

function toGeneralName(host: string): Buffer {
  if (isIP(host) === 0) return der.tagged(2, Buffer.from(host), { constructed: false });
  if (isIP(host) === 6) throw new Error(`${host}: certificates for IPv6 addresses are not supported`);
  return der.tagged(7, Buffer.from(host.split(".").map(Number)), { constructed: false });
}

const spkiOf = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });
const keyIdOf = (key: KeyObject): Buffer => createHash("sha1").update(spkiOf(key)).digest();
const pemOf = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();
