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

/** The value as an object of a cluster; undefined when it is none. */
export const asKubeObject = (value: unknown): KubeObject | undefined => {
  const parsed = KubeObject.safeParse(value);
  return parsed.success ? parsed.data : undefined;
};

/** Throws `WrongImport` when it is no Secret. */
export const asSecret = (object: KubeObject): Secret => readObject(Secret, object, `Secret ${nameOf(object)}`);

/** `namespace/name`, or the name alone where the file has no namespace. */
export const nameOf = ({ metadata: { name, namespace } }: KubeObject): string =>
  namespace === "" ? name : `${namespace}/${name}`;

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
