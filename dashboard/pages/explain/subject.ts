import { hashKey } from "../../components/hash-key.ts";

/* Meaning of pasted text: a request id, a key id, or a key. For a key, `readSubject` returns only the hash. */

export type Subject =
  | { readonly kind: "request"; readonly requestId: string }
  | { readonly kind: "key"; readonly keyId: string }
  | { readonly kind: "secret"; readonly keyHash: string };

/** Classifies pasted text. Returns "NO_HASHING" if the text is a key and the browser cannot hash it. */
export async function readSubject(text: string): Promise<Subject | "NO_HASHING" | undefined> {
  const pasted = text.trim();
  if (pasted === "") return undefined;
  if (/^req_[A-Za-z0-9_.-]{1,124}$/.test(pasted)) return { kind: "request", requestId: pasted };
  if (/^key_[A-Za-z0-9]{10,40}$/.test(pasted)) return { kind: "key", keyId: pasted };
  const keyHash = await hashKey(pasted);
  return keyHash === undefined ? "NO_HASHING" : { kind: "secret", keyHash };
}
