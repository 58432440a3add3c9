import * as z from "zod";

/*
 * A thing that travels has two schemas. The strict one says what a caller may send: it refuses what it does not know. The
 * tolerant one says what a reader can make of what another release wrote: unknown members stay and mean nothing, missing ones
 * get the value that they had before they were thought of, and sizes are the writer's business. The second is made from the
 * first, so that a new member is never forgotten in it.
 */

/** What a member that is missing means to a reader: its default. A member without a default must be there. */
const missing = z.registry<{ readonly value: unknown }>();

/** Marks a member of a strict schema; to be called last, because every other method makes another schema. */
export const whenMissing = <S extends z.ZodType>(schema: S, value: z.output<S>): S => {
  missing.add(schema, { value });
  return schema;
};

/** The tolerant schema of a strict one. The complete value that it reads is of the same type. */
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
  // One alternative exactly: a value that has what tells two of them apart would be read as either.
  if (schema instanceof z.ZodUnion) return z.xor((schema.options as z.ZodType[]).map(loosen));
  return schema;
}

function described(to: z.ZodType, from: z.ZodType): z.ZodType {
  const said = from.meta();
  return said === undefined ? to : to.meta(said);
}
