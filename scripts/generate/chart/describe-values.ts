import { stringify } from "yaml";
import { z } from "zod";

/* A value of the chart with its description and default, read from the schema of the chart values. */

export interface Leaf {
  /** Path such as `apiServer.image.tag`. */
  readonly path: string;
  readonly standard: unknown;
  readonly what: string;
}

const groupOf = (schema: z.ZodType): z.ZodObject | undefined => (schema instanceof z.ZodObject ? schema : undefined);

/** Returns all values with their paths, without groups. Throws if a value has no default or no description. */
export function leavesOf(schema: z.ZodObject, prefix = ""): Leaf[] {
  return Object.entries(schema.shape).flatMap(([name, child]) => {
    const path = `${prefix}${name}`;
    const inner = groupOf(child as z.ZodType);
    if (inner !== undefined) return leavesOf(inner, `${path}.`);
    return [{ path, standard: standardOf(child as z.ZodType, path), what: whatOf(child as z.ZodType, path) }];
  });
}

/** Returns `values.yaml`: all values with their defaults, each below its description. */
export function valuesYaml(schema: z.ZodObject, indent = "", prefix = ""): string {
  const lines = Object.entries(schema.shape).flatMap(([name, child]) => {
    const path = `${prefix}${name}`;
    const comment = `${indent}# ${whatOf(child as z.ZodType, path)}`;
    const inner = groupOf(child as z.ZodType);
    if (inner !== undefined) return ["", comment, `${indent}${name}:`, valuesYaml(inner, `${indent}  `, `${path}.`)];
    return [comment, indented(stringify({ [name]: standardOf(child as z.ZodType, path) }, { lineWidth: 0 }), indent)];
  });
  return `${lines.join("\n").replace(/\n+$/, "")}\n`.replace(/^\n/, "").replace(/\n$/, indent === "" ? "\n" : "");
}

const indented = (text: string, indent: string): string => text.trimEnd().replace(/^/gm, indent);

function standardOf(schema: z.ZodType, path: string): unknown {
  const parsed = schema.safeParse(undefined);
  if (!parsed.success) throw new Error(`the value ${path} has no default`);
  return parsed.data;
}

function whatOf(schema: z.ZodType, path: string): string {
  if (schema.description === undefined) throw new Error(`the value ${path} has no description`);
  return schema.description;
}
