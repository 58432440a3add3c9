import * as z from "zod";

/*
 * Data exchanged between versions has two schemas. The strict one defines input from callers, and rejects unknown members. The tolerant one
 * defines data from another version: it ignores unknown members, gives a missing member the value that corresponds to the behavior before
 * the member was introduced, and does not check size limits. The tolerant schema is derived from the strict one, so that it has every
 * member.
 */

/** Reader defaults: values that tolerant schemas use for missing members. A member without a default is required. */
const missing = z.registry<{ readonly value: unknown }>();

/**
 * Sets the reader default of a member of a strict schema. Call it last, because every other zod method creates a new schema without the
 * default.
 */
export const whenMissing = <S extends z.ZodType>(schema: S, value: z.output<S>): S => {
  missing.add(schema, { value });
  return schema;
};

/** Derives the tolerant schema from a strict schema. Both schemas have the same output type. */
export const tolerant = <S extends z.ZodType>(schema: S): z.ZodType<z.output<S>> =>
  loosen(schema) as unknown as z.ZodType<z.output<S>>;

function loosen(schema: z.ZodType): z.ZodType {
  const loose = described(loosenWithin(schema), schema);
  const known = missing.get(schema);
  return known === undefined ? loose : described(loose.default(known.value), schema);
}

function loosenWithin(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodObject) {
    const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
    return z.looseObject(Object.fromEntries(Object.entries(shape).map(([name, member]) => [name, loosen(member)])));
  }
  if (schema instanceof z.ZodArray) return z.array(loosen(schema.element as z.ZodType));
  if (schema instanceof z.ZodOptional) return loosen(schema.unwrap() as z.ZodType).optional();
  if (schema instanceof z.ZodDefault) {
    return loosen(schema.unwrap() as z.ZodType).default(schema.def.defaultValue as never);
  }
  // Exactly one alternative must match: a value that has the distinguishing members of two alternatives would be ambiguous.
  if (schema instanceof z.ZodUnion) return z.xor((schema.options as z.ZodType[]).map(loosen));
  return schema;
}

function described(to: z.ZodType, from: z.ZodType): z.ZodType {
  const said = from.meta();
  return said === undefined ? to : to.meta(said);
}
