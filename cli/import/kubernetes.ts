import * as z from "zod";
import { readObject, Text } from "./documents.ts";

/* The objects of a cluster in which other systems keep keys. */

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

/** Those of the documents that are objects of a cluster. */
export const kubeObjectsOf = (documents: readonly unknown[]): KubeObject[] =>
  documents.map((document) => KubeObject.safeParse(document).data).filter((object) => object !== undefined);

/** The Secrets among the objects. Throws `WrongImport` when one cannot be read. */
export const secretsIn = (objects: readonly KubeObject[]): Secret[] =>
  objects
    .filter(({ kind }) => kind === "Secret")
    .map((object) => readObject(Secret, object, `Secret ${nameOf(object)}`));

/** The same by `fullName`. */
export const secretsByName = (objects: readonly KubeObject[]): Map<string, Secret> =>
  new Map(secretsIn(objects).map((secret) => [nameOf(secret), secret]));

/** `namespace/name`, or the name alone where the file has no namespace. */
export const fullName = (namespace: string, name: string): string => (namespace === "" ? name : `${namespace}/${name}`);

export const nameOf = ({ metadata: { name, namespace } }: KubeObject): string => fullName(namespace, name);

/** A value of a Secret as text; undefined when it is not there. */
export function secretText({ data, stringData }: Secret, field: string): string | undefined {
  const plain = stringData[field];
  if (plain !== undefined) return plain;
  const encoded = data[field];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/** The names of the values that a Secret has. */
export const fieldsOf = ({ data, stringData }: Secret): string[] => [
  ...new Set([...Object.keys(data), ...Object.keys(stringData)]),
];
