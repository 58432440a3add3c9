import * as z from "zod";
import { readObject, Text } from "./documents.ts";

/* Helpers for Kubernetes objects in which other systems store keys. */

const Values = z
  .record(z.string(), Text)
  .nullish()
  .transform((values) => values ?? {});

const KubeObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().default(""), labels: Values, annotations: Values }),
});
export type KubeObject = z.output<typeof KubeObject>;

const Secret = KubeObject.extend({ kind: z.literal("Secret"), data: Values, stringData: Values });
export type Secret = z.output<typeof Secret>;

/** Returns the documents that are Kubernetes objects. */
export const kubeObjectsOf = (documents: readonly unknown[]): KubeObject[] =>
  documents.map((document) => KubeObject.safeParse(document).data).filter((object) => object !== undefined);

/** Returns the Secrets among the objects. Throws `WrongImport` if one is invalid. */
export const secretsIn = (objects: readonly KubeObject[]): Secret[] =>
  objects
    .filter(({ kind }) => kind === "Secret")
    .map((object) => readObject(Secret, object, `Secret ${nameOf(object)}`));

/** Returns the Secrets, indexed by `fullName`. */
export const secretsByName = (objects: readonly KubeObject[]): Map<string, Secret> =>
  new Map(secretsIn(objects).map((secret) => [nameOf(secret), secret]));

/** Returns `namespace/name`, or only the name if the namespace is empty. */
export const fullName = (namespace: string, name: string): string => (namespace === "" ? name : `${namespace}/${name}`);

export const nameOf = ({ metadata: { name, namespace } }: KubeObject): string => fullName(namespace, name);

/** Returns a value of a Secret as text; `undefined` if it is missing. */
export function secretText({ data, stringData }: Secret, field: string): string | undefined {
  const plain = stringData[field];
  if (plain !== undefined) return plain;
  const encoded = data[field];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/** Returns the names of all values of a Secret. */
export const fieldsOf = ({ data, stringData }: Secret): string[] => [
  ...new Set([...Object.keys(data), ...Object.keys(stringData)]),
];
