import * as z from "zod";

/*
 * A thing that is sent between releases has two schemas. The strict one says what a caller may send, and refuses unknown members.
 * The tolerant one says what a reader accepts from another release: unknown members are ignored, missing ones get the value that
 * they had before they existed, and bounds of size are not checked. The tolerant schema is derived from the strict one, so that a new
 * member cannot be missing in it.
 */

/** The default that a reader uses for a missing member. A member without a default is required. */
const missing = z.registry<{ readonly value: unknown }>();

/** Marks a member of a strict schema. Call it last, because every other zod method makes a new schema without the mark. */
export const whenMissing = <S extends z.ZodType>(schema: S, value: z.output<S>): S => {
  missing.add(schema, { value });
  return schema;
};

/** Returns the tolerant schema of a strict one. Both have the same output type. */
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
  // Exactly one alternative must match: a value that has the distinguishing members of two could be read as either.
  if (schema instanceof z.ZodUnion) return z.xor((schema.options as z.ZodType[]).map(loosen));
  return schema;
}

function described(to: z.ZodType, from: z.ZodType): z.ZodType {
  const said = from.meta();
  return said === undefined ? to : to.meta(said);
}
