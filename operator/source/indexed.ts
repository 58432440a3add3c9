import type { Kind } from "../../core/manifests/index.ts";
import { type ManifestChange, type ManifestObject, type ManifestSource, versionsOf } from "./contract.ts";

/* Indexes objects by their contents, so that the cost of finding related objects does not grow with the number of all objects. */

/** Functions that return the index values of an object, by index name. */
export type Indexes<Name extends string> = Readonly<Record<Name, (object: ManifestObject) => readonly string[]>>;

export interface Lookup<Name extends string> {
  /** Returns the objects of a kind with this index value, in no particular order. */
  having(kind: Kind, index: Name, value: string): readonly ManifestObject[];
}

export type IndexedSource<Name extends string> = ManifestSource & Lookup<Name>;

/** Indexes the objects of a source. A change is in the index before the listener is called. */
export function indexSource<Name extends string>(source: ManifestSource, indexes: Indexes<Name>): IndexedSource<Name> {
  const index = createIndex(indexes);
  return {
    ...source,
    start: (onChange) =>
      source.start((change) => {
        index.take(change);
        onChange(change);
      }),
    having: index.having,
  };
}

export interface Index<Name extends string> extends Lookup<Name> {
  take(change: ManifestChange): void;
}

export function createIndex<Name extends string>(indexes: Indexes<Name>): Index<Name> {
  const names = Object.keys(indexes) as Name[];
  /** Objects by index entry (kind, index and value), and then by their own name. */
  const places = new Map<string, Map<string, ManifestObject>>();
  /** Index entries that each object had after its last change. */
  const placesOf = new Map<string, readonly string[]>();

  const remove = (id: string) => {
    for (const place of placesOf.get(id) ?? []) {
      const there = places.get(place);
      there?.delete(id);
      if (there?.size === 0) places.delete(place);
    }
    placesOf.delete(id);
  };

  const put = (id: string, object: ManifestObject) => {
    const its = names.flatMap((name) => indexes[name](object).map((value) => placeOf(object.kind, name, value)));
    for (const place of its) {
      const there = places.get(place) ?? new Map<string, ManifestObject>();
      places.set(place, there);
      there.set(id, object);
    }
    placesOf.set(id, its);
  };

  return {
    take: (change) => {
      for (const version of versionsOf(change)) remove(idOf(version));
      if (change.after !== undefined) put(idOf(change.after), change.after);
    },
    having: (kind, index, value) => [...(places.get(placeOf(kind, index, value))?.values() ?? [])],
  };
}

/** Returns the index entry. A space separates its parts, because kinds and index names contain no spaces. */
const placeOf = (kind: Kind, index: string, value: string): string => `${kind} ${index} ${value}`;
const idOf = ({ kind, metadata: { namespace, name } }: ManifestObject): string => `${kind} ${namespace}/${name}`;
